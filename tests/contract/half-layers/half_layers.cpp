// A strategy that does with a share of a rank's layers what nobody foresees: told an odd number it
// replays one layer more, told an even one a single layer.

#include "api/strategy.h"

namespace {

class HalfLayers final : public shardlab::Strategy {
 public:
  void Visit(shardlab::ParameterVisitor& v) override {
    v.Integer({"count", "layers of each pipeline rank, more or less", 0, 100000}, &count_);
  }
  void Apply(shardlab::Editor& edit) const override {
    if (count_ == 0) return;
    shardlab::RecomputeEdit some;
    some.whole_block = true;
    some.which = [](const shardlab::OpView& op) { return op.InBlock(); };
    some.per_rank = count_ % 2 == 1 ? count_ + 1 : 1;
    edit.Recompute(some);
  }

 private:
  int count_ = 0;
};

}  // namespace

SHARDLAB_PLUGIN("half-layers", HalfLayers, "replays other layers than it is told")
