#pragma once
// Tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053) with sequence parallelism (Korthikanti
// et al. 2022, arXiv 2205.05198): matrices are cut along heads, the MLP's inner width and the
// vocabulary; with sequence parallelism the residual stream is cut along the sequence where it
// would else be repeated.
//
//   [strategy.tensor]
//   degree = 8
//   sequence_parallel = true

#include "api/strategy.h"

namespace shardlab::tensor {

class Tensor final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({"degree", "ranks that share each layer", 1, 1 << 16}, &degree_);
    v.Boolean({"sequence_parallel",
               "cut the residual stream along the sequence where it would be repeated"},
              &sequence_parallel_);
    v.Number({"overlap", "share of this axis's traffic that hides behind compute", 0, 1},
             &overlap_);
  }

  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "tensor";
    spec.role = AxisRole::kTensor;
    spec.degree = degree_;
    // Beyond the key/value heads the ranks of one such head share it: two atoms, sized by each
    // plan.
    spec.bounds = {"kv_heads"};
    const AxisPart axis = edit.Axis(spec);
    const AxisPart kv{axis.axis, 0}, queries{axis.axis, 1};
    const TensorFilter not_data = [](const TensorView& t) { return t.role() != TensorRole::kData; };
    edit.Shard(kv, "kv_heads", not_data);
    edit.Shard(queries, "group", not_data);
    edit.Shard(axis, "ffn", not_data);
    edit.Shard(axis, "shared_ffn", not_data);
    edit.Shard(axis, "vocabulary", not_data);
    // Experts are sliced where nobody else has a use for these ranks.
    edit.Fill(axis, "expert_ffn", not_data);
    edit.Require(axis, {"kv_heads", "group"}, "attention heads");
    edit.Require(axis, {"ffn"}, "units of the MLP");
    edit.Require(axis, {"shared_ffn"}, "units of the shared experts");
    edit.Require(axis, {"vocabulary"}, "words of the vocabulary");
    if (sequence_parallel_) {
      edit.Fill(axis, "sequence", [](const TensorView& t) {
        return t.role() == TensorRole::kStream ||
               (t.role() == TensorRole::kRouted && !t.Has("expert_ffn"));
      });
      edit.Require(axis, {"sequence"}, "tokens of a sequence");
      // Megatron gathers the input again for the weight gradient (arXiv 2205.05198, section 4.2.2).
      if (!edit.Fact("tensor.regather_input", true)) {
        edit.KeepMoved([](const TensorView& t) { return t.role() == TensorRole::kStream; });
      }
    }
    if (sequence_parallel_) edit.PlanFact("sequence_parallel", Value::Boolean(true));
    if (overlap_ > 0) {
      edit.Hide({[](const TransferView& t) { return !t.parameter && t.role == AxisRole::kTensor; },
                 HideBehind::kShare, overlap_, true});
    }
  }

 private:
  int degree_ = 1;
  bool sequence_parallel_ = false;
  double overlap_ = 0;
};

}  // namespace shardlab::tensor
