#pragma once
// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174): a block keeps its input alone and
// replays its forward pass inside the backward pass; K blocks may share one kept input.
//
//   [strategy.checkpointing]
//   mode = "full"
//   segment = 2

#include <string>
#include <utility>

#include "api/strategy.h"

namespace shardlab::checkpointing {

class Checkpointing final : public Strategy {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Text({"mode", "what is replayed in the backward pass", 0, 0, {"none", "full"}}, &mode_);
    v.Integer(
        {"segment", "full: layers that share one kept input and are replayed together", 1, 4096},
        &segment_);
  }

  void Init(const InitContext& context) override {
    if (mode_ == "none" && context.is_given("segment") && segment_ != 1) {
      context.diagnostics->Error("checkpointing.segment", context.place_of("segment"),
                                 "segment has no meaning without recomputation (mode is \"none\")",
                                 "set mode = \"full\" or leave segment out");
    }
  }

  void Apply(Editor& edit) const override {
    if (mode_ == "none") return;
    Value recompute;
    recompute.kind = Value::kTable;
    recompute.table.emplace_back("mode", Value::Text(mode_));
    recompute.table.emplace_back("segment", Value::Integer(segment_));
    edit.PlanFact("recompute", std::move(recompute));
    RecomputeEdit all;
    all.which = [](const OpView& op) { return op.InBlock(); };
    all.whole_block = true;
    all.segment = segment_;
    edit.Recompute(all);
  }

 private:
  std::string mode_ = "none";
  int segment_ = 1;
};

}  // namespace shardlab::checkpointing
