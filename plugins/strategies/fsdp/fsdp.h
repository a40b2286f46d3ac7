#pragma once
// Fully sharded data parallelism (Zhao et al. 2023, arXiv 2304.11277): weights, gradients and
// optimizer state are cut over the replicas; each unit of blocks is gathered just before its use
// and freed after it. Hybrid: N ranks hold one copy, and their groups are replicas.
//
//   [strategy.fsdp]
//   shard = 8

#include <string>

#include "api/strategy.h"

namespace shardlab::fsdp {

class Fsdp final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.IntegerOr({"shard", "data ranks that hold one copy; the others repeat it", 1, 1 << 20}, "all",
                &shard_);
    v.Boolean({"reshard_after_forward", "free the weights between the forward and backward pass"},
              &reshard_after_forward_);
    v.Integer({"prefetch", "units gathered ahead of their use; 0 waits for each", 0, 64},
              &prefetch_);
    v.Integer({"blocks_per_unit", "blocks that are gathered and freed as one", 1, 4096},
              &blocks_per_unit_);
    v.Text({"init_device",
            "where the model is made: on the \"meta\" device, which holds nothing, so that each "
            "rank makes its shards alone; or whole on each \"device\" and sharded then",
            0,
            0,
            {"meta", "device"}},
           &init_device_);
    v.Text({"offload",
            "what lies in the memory of the host, where the optimizer then works",
            0,
            0,
            {"none", "optimizer", "all"}},
           &offload_);
  }

  void Apply(Editor& edit) const override {
    if (shard_ == 1) return;  // every rank holds a copy: plain data parallelism
    edit.PlanFact("zero_stage", Value::Integer(3));
    if (init_device_ == "device") edit.PlanFact("initialised_whole", Value::Boolean(true));
    StateEdit state;
    state.shard_gradient = state.reduce_each_micro_batch = true;
    // Kept weights are whole all step long in the classroom, and gathered in the forward pass.
    state.shard_home = reshard_after_forward_ || !edit.Fact("fsdp.kept_weights_are_whole", false);
    state.keep_after_forward = state.shard_home && !reshard_after_forward_;
    Offload(edit, state);
    state.unit = blocks_per_unit_;
    state.ahead = prefetch_;
    if (shard_ == 0) {
      state.roles = {AxisRole::kData, AxisRole::kContext};
      edit.PlanDegree("fsdp_shard", {AxesOf(AxisRole::kData), AxesOf(AxisRole::kContext)});
      edit.PlanFact("replicate", Value::Integer(1));
    } else {
      AxisSpec spec;
      spec.name = "shard";
      spec.role = AxisRole::kData;
      spec.parameter = "shard";
      spec.degree = shard_;
      spec.borrow_from = {AxisRole::kData};
      const AxisPart group = edit.Axis(spec);
      state.over = {group};
      state.roles = {AxisRole::kContext};
      edit.PlanDegree("fsdp_shard", {group, AxesOf(AxisRole::kContext)});
      edit.PlanDegree("replicate", {AxesOf(AxisRole::kData)}, {group});
    }
    edit.State(state);
    // Reductions trail behind the backward pass by themselves; gathers must be started early.
    for (const bool gradient : {true, false}) {
      edit.Hide({[gradient](const TransferView& t) {
                   return t.parameter && t.when == When::kMicroBatch && t.gradient == gradient &&
                          (t.role == AxisRole::kData || t.role == AxisRole::kContext ||
                           t.role == AxisRole::kHost);
                 },
                 gradient || prefetch_ > 0 ? HideBehind::kPrefetch : HideBehind::kNothing, 0,
                 true});
    }
    if (!edit.Fact("optimizer.gradient_norm", true)) return;
    Declared norm;
    norm.name = "gradient norm";
    norm.why = "clipping needs the sum of squares over all shards of the gradient, one fp32 number";
    norm.collective = Collective::kAllReduce;
    norm.bytes = 4;
    edit.Declare(norm, {AxisRole::kData, AxisRole::kContext}, {});
  }

 private:
  // CPUOffloadPolicy of fully_shard for "all": shards are copied to the device before each gather,
  // shards of gradients to the host after each reduction.
  void Offload(Editor& edit, StateEdit& state) const {
    if (offload_ == "none") return;
    if (!edit.Fact("state.on_host", true)) {
      edit.Refuse("offload", "this accounting has no memory of the host, nor time to copy to it",
                  "write offload = \"none\", or accounting = \"operator\"");
      return;
    }
    edit.PlanFact("offload", Value::Text(offload_));
    state.state_on_host = true;
    state.home_on_host = state.gradient_on_host = offload_ == "all";
  }

  int shard_ = 0;
  bool reshard_after_forward_ = true;
  int prefetch_ = 1;
  int blocks_per_unit_ = 1;
  std::string init_device_ = "meta";
  std::string offload_ = "none";
};

}  // namespace shardlab::fsdp
