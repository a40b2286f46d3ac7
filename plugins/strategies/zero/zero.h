#pragma once
// ZeRO (Rajbhandari et al. 2020, arXiv 1910.02054): optimizer state (stage 1), gradients (2) and
// weights (3) are cut over the replicas instead of being stored by each of them.
//
//   [strategy.zero]
//   stage = 1

#include <string>

#include "api/strategy.h"

namespace shardlab::zero {

class Zero final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({"stage", "0 nothing, 1 optimizer state, 2 and gradients, 3 and weights", 0, 3},
              &stage_);
    v.Text({"reduce", "when stage 2 reduces gradients", 0, 0, {"micro_batch", "step"}}, &reduce_);
    v.Integer({"bucket_size",
               "elements that replicas reduce, or gather after the update, in one call",
               1024,
               1 << 30,
               {},
               "those of a layer"},
              &bucket_size_);
    v.Text({"offload",
            "what lies in the memory of the host, where the optimizer then works",
            0,
            0,
            {"none", "optimizer", "all"}},
           &offload_);
  }

  void Apply(Editor& edit) const override {
    if (stage_ == 0) {
      if (bucket_size_ > 0) {
        edit.Warn("bucket_size", "stage 0 shards nothing: its reductions have no buckets here",
                  "leave bucket_size out, or write stage = 1 or 2");
      }
      return;
    }
    edit.PlanFact("zero_stage", Value::Integer(stage_));
    const bool each = stage_ == 3 || (stage_ == 2 && reduce_ == "micro_batch");
    StateEdit state;
    state.roles = {AxisRole::kData, AxisRole::kContext};
    state.shard_home = stage_ == 3;
    // Gradients that wait whole for the end of the step save no memory until then.
    state.shard_gradient =
        stage_ >= 2 && (each || !edit.Fact("zero.whole_gradients_until_reduced", true));
    state.reduce_each_micro_batch = each;
    Offload(edit, state);
    Bucket(edit, state);
    edit.State(state);
    if (stage_ == 3) {
      edit.Hide({[](const TransferView& t) {
                   return t.parameter && t.when == When::kMicroBatch &&
                          (t.role == AxisRole::kData || t.role == AxisRole::kContext ||
                           t.role == AxisRole::kHost);
                 },
                 HideBehind::kPrefetch, 0, true});
    }
    if (edit.Fact("optimizer.gradient_norm", true)) {
      Declared norm;
      norm.name = "gradient norm";
      norm.why =
          "clipping needs the sum of squares over all shards of the gradient, one fp32 number";
      norm.collective = Collective::kAllReduce;
      norm.bytes = 4;
      edit.Declare(norm, {AxisRole::kData, AxisRole::kContext}, {});
    }
  }

 private:
  // ZeRO-Offload (arXiv 2101.06840) for the optimizer, ZeRO-Infinity (arXiv 2104.07857) for all.
  void Offload(Editor& edit, StateEdit& state) const {
    if (offload_ == "none") return;
    if (!edit.Fact("state.on_host", true)) {
      edit.Refuse("offload", "this accounting has no memory of the host, nor time to copy to it",
                  "write offload = \"none\", or accounting = \"operator\"");
      return;
    }
    if (offload_ == "all" && stage_ < 3) {
      edit.Refuse("offload", "weights can lie in the memory of the host in stage 3 alone",
                  "write offload = \"optimizer\", or stage = 3");
      return;
    }
    edit.PlanFact("offload", Value::Text(offload_));
    state.state_on_host = true;
    state.home_on_host = state.gradient_on_host = offload_ == "all";
  }

  void Bucket(Editor& edit, StateEdit& state) const {
    if (bucket_size_ == 0) return;
    if (stage_ == 3) {
      edit.Refuse("bucket_size", "stage 3 gathers and reduces block by block, not in buckets",
                  "leave bucket_size out, or write stage = 1 or 2");
      return;
    }
    state.bucket = bucket_size_;
    // Where gradients lie side by side until the end of the step a bucket is a part of them.
    state.bucket_copied =
        state.reduce_each_micro_batch || edit.Fact("zero.copies_to_buckets", true);
  }

  int stage_ = 1;
  int bucket_size_ = 0;
  std::string reduce_ = "micro_batch";
  std::string offload_ = "none";
};

}  // namespace shardlab::zero
