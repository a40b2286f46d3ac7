#pragma once
// Context parallelism: the sequence is cut over ranks through the whole model, and only attention
// needs more than its own piece. Three ways to give it that: gather keys and values, pass them
// round a ring under attention's own work (Liu et al. 2023, arXiv 2310.01889), or exchange
// sequence for heads and back (Ulysses: Jacobs et al. 2023, arXiv 2309.14509).
//
//   [strategy.context]
//   degree = 4
//   method = "ring"

#include <set>
#include <string>

#include "api/strategy.h"

namespace shardlab::context {

class Context final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({"degree", "ranks that share each sequence", 1, 1 << 16}, &degree_);
    v.Text({"method",
            "how attention sees all of the sequence: keys and values round a \"ring\" under its "
            "work, by a \"gather\" before it, or heads instead by \"all-to-all\"",
            0,
            0,
            {"ring", "gather", "all-to-all"}},
           &method_);
  }

  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "context";
    spec.role = AxisRole::kContext;
    spec.degree = degree_;
    const bool heads = method_ == "all-to-all";
    // Beyond the key/value heads that tensor cuts leave, ranks share one: two atoms.
    if (heads) spec.bounds = {"kv_heads"};
    const AxisPart axis = edit.Axis(spec);
    if (heads) ExchangeHeads(edit, axis);
    // Fill, not shard: ranks that another strategy has borrowed for something else keep that cut.
    edit.Fill(axis, "sequence", [](const TensorView& t) { return t.role() != TensorRole::kData; });
    edit.Require(axis, {"sequence"}, "tokens of a sequence");
    if (method_ == "ring") {
      edit.Hide({[](const TransferView& t) { return !t.parameter && t.role == AxisRole::kContext; },
                 HideBehind::kOp, 0, true,
                 [](const OpView& op) { return op.kind() == OpKind::kAttention; }});
    }
    edit.PlanFact("context_method", Value::Text(method_));
  }

 private:
  // What attention makes is cut along heads, and so is its work.
  void ExchangeHeads(Editor& edit, const AxisPart& axis) const {
    std::set<TensorId> made;
    for (const Op& op : edit.program().ops) {
      if (op.kind != OpKind::kAttention) continue;
      made.insert(op.output);
      made.insert(op.stash.begin(), op.stash.end());
    }
    const TensorFilter of_attention = [made](const TensorView& t) {
      return made.count(t.id()) > 0;
    };
    const bool grouped = edit.program().FindDimension("kv_heads").valid();
    edit.Shard({axis.axis, 0}, "kv_heads", of_attention);
    edit.Shard({axis.axis, 1}, grouped ? "group" : "heads", of_attention);
    if (degree_ == 1) return;
    const std::vector<AxisRole> with = {AxisRole::kTensor};
    if (grouped) {
      edit.Require(axis, {"kv_heads", "group"}, "attention heads", with);
    } else {
      edit.Require(axis, {"heads"}, "attention heads", with);
    }
  }

  int degree_ = 1;
  std::string method_ = "ring";
};

}  // namespace shardlab::context
