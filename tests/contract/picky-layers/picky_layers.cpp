// A strategy that replays so many layers of a rank as it is told, and refuses one number.

#include "api/strategy.h"

namespace {

class PickyLayers final : public shardlab::Strategy {
 public:
  void Visit(shardlab::ParameterVisitor& v) override {
    v.Integer({"count", "layers of each pipeline rank", 0, 100000}, &count_);
  }
  void Init(const shardlab::InitContext& context) override {
    if (count_ == REFUSED_COUNT)
      context.diagnostics->Error("picky.count", context.place_of("count"), "any number but this");
  }
  void Apply(shardlab::Editor& edit) const override {
    if (count_ == 0) return;
    shardlab::RecomputeEdit some;
    some.whole_block = true;
    some.which = [](const shardlab::OpView& op) { return op.InBlock(); };
    some.per_rank = count_;
    edit.Recompute(some);
  }

 private:
  int count_ = 0;
};

}  // namespace

SHARDLAB_PLUGIN(PICKY_NAME, PickyLayers, "refuses one number of layers")
