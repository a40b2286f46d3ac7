#pragma once
// Hierarchical ZeRO: weights are cut over neighbouring replicas only (those of one server),
// gradients and optimizer state over all of them. So stage 3's gathers never leave the server; once
// a step the updated weights are gathered between servers. ZeRO++'s hpZ (Wang et al., arXiv
// 2306.10209) keeps its secondary partition so; FSDP's hybrid sharding (Zhao et al., arXiv
// 2304.11277) its weights.
//
//   [strategy.hierarchical-zero]
//   group = 8

#include "api/strategy.h"

namespace shardlab::hierarchical_zero {

class HierarchicalZero final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer(
        {"group", "replicas, neighbours, that keep one copy of the weights together", 1, 1 << 16},
        &group_);
  }

  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "inner";
    spec.role = AxisRole::kData;
    spec.degree = group_;
    spec.parameter = "group";
    // The innermost ranks of the data axis, whatever the batch does with them.
    spec.borrow_from = {AxisRole::kData};
    const AxisPart inner = edit.Axis(spec);

    StateEdit state;
    // Not over context ranks: their cut would nest outside the server's, and its gather could not
    // stay inside.
    state.roles = {AxisRole::kData};
    state.shard_gradient = true;
    state.shard_home = true;
    state.home_over = {inner};
    state.reduce_each_micro_batch = true;
    edit.State(state);
    edit.PlanFact("zero_stage", Value::Integer(3));
    edit.PlanFact("fsdp_shard", Value::Integer(group_));
    edit.Hide({[](const TransferView& t) {
                 return t.parameter && t.when == When::kMicroBatch &&
                        (t.role == AxisRole::kData || t.role == AxisRole::kContext);
               },
               HideBehind::kPrefetch, 0, true});
    if (edit.Fact("optimizer.gradient_norm", true)) {
      Declared norm;
      norm.name = "gradient norm";
      norm.why =
          "clipping needs the sum of squares over all shards of the gradient, one fp32 number";
      norm.bytes = 4;
      edit.Declare(norm, {AxisRole::kData, AxisRole::kContext}, {});
    }
  }

 private:
  int group_ = 8;
};

}  // namespace shardlab::hierarchical_zero
