#include "oracle/toy_strategies.h"

#include <functional>
#include <utility>

namespace shardlab::oracle {
namespace {

class Recorded final : public Strategy {
 public:
  explicit Recorded(std::function<void(Editor&)> apply) : apply_(std::move(apply)) {}
  void Apply(Editor& edit) const override { apply_(edit); }

 private:
  std::function<void(Editor&)> apply_;
};

Choice Make(std::string name, std::function<void(Editor&)> apply) {
  return {std::move(name), std::make_shared<Recorded>(std::move(apply))};
}

bool IsExpertWeight(const TensorView& t) {
  return t.role() == TensorRole::kParameter && t.Has("expert") && t.Has("expert_ffn");
}
bool IsRouted(const TensorView& t) { return t.role() == TensorRole::kRouted; }
bool IsStream(const TensorView& t) { return t.role() == TensorRole::kStream; }
bool NotData(const TensorView& t) { return t.role() != TensorRole::kData; }
bool All(const TensorView&) { return true; }
bool StartsWith(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

void CutByTensor(Editor& edit, const AxisPart& axis, TensorOptions options) {
  edit.Shard({axis.axis, 0}, "kv_heads", All);
  edit.Shard({axis.axis, 1}, "group", All);
  edit.Shard(axis, "ffn", All);
  edit.Shard(axis, "shared_ffn", All);
  edit.Shard(axis, "vocabulary", NotData);
  const auto experts = [](const TensorView& t) { return IsExpertWeight(t) || IsRouted(t); };
  if (options.experts == ExpertTensor::kSliced) edit.Shard(axis, "expert_ffn", All);
  if (options.experts == ExpertTensor::kSpread) edit.Shard(axis, "expert", experts);
  if (options.sequence_parallel) {
    edit.Fill(axis, "sequence", [](const TensorView& t) { return IsStream(t) || IsRouted(t); });
  }
}

StateEdit FullyCut() {
  StateEdit edit;
  edit.shard_state = edit.shard_gradient = edit.shard_home = edit.reduce_each_micro_batch = true;
  return edit;
}

// A flat cut inside another one could need elements from outside of the group: such transfers stay
// as they are.
bool IsOpenToRealise(const TransferView& t) {
  return t.collective == Collective::kAllReduce && t.tensor->state.Flat() == 0 &&
         t.tensor->role != TensorRole::kStatistic;
}

}  // namespace

Choice DataParallel() {
  return Make("data", [](Editor& edit) {
    const AxisPart axis = edit.Axis({.name = "data", .role = AxisRole::kData});
    edit.Fill(axis, "batch", NotData);
  });
}

Choice TensorParallel(TensorOptions options) {
  std::string name = options.sequence_parallel ? "tensor+sequence" : "tensor";
  if (options.experts == ExpertTensor::kWhole) name += " (experts whole)";
  if (options.experts == ExpertTensor::kSpread) name += " (experts spread)";
  return Make(std::move(name), [options](Editor& edit) {
    CutByTensor(edit,
                edit.Axis({.name = "tensor", .role = AxisRole::kTensor, .bounds = {"kv_heads"}}),
                options);
  });
}

Choice ContextGather() {
  return Make("context gather", [](Editor& edit) {
    const AxisPart axis = edit.Axis({.name = "context", .role = AxisRole::kContext});
    edit.Shard(axis, "sequence", NotData);
  });
}

Choice ContextUlysses() {
  return Make("context all-to-all", [](Editor& edit) {
    const AxisPart axis = edit.Axis({.name = "context", .role = AxisRole::kContext});
    const auto heads = [](const TensorView& t) { return StartsWith(t.name(), "attention"); };
    edit.Shard(axis, "kv_heads", heads);
    edit.Shard(axis, "sequence", [heads](const TensorView& t) { return NotData(t) && !heads(t); });
  });
}

Choice ExpertParallel() {
  return Make("expert", [](Editor& edit) {
    const AxisPart axis =
        edit.Axis({.name = "expert", .role = AxisRole::kExpert, .borrow_from = {AxisRole::kData}});
    edit.Shard(axis, "expert",
               [](const TensorView& t) { return IsExpertWeight(t) || IsRouted(t); });
  });
}

Choice ZeroStage(int stage, bool keep_after_forward, OnHost host) {
  const std::string name = "zero-" + std::to_string(stage) + (keep_after_forward ? " kept" : "") +
                           (host == OnHost::kNothing ? ""
                            : host == OnHost::kAll   ? " all on host"
                                                     : " state on host");
  return Make(name, [stage, keep_after_forward, host](Editor& edit) {
    StateEdit state;
    state.roles = {AxisRole::kData, AxisRole::kContext};
    state.shard_state = true;
    state.shard_gradient = state.reduce_each_micro_batch = stage >= 2;
    state.shard_home = stage >= 3;
    state.keep_after_forward = keep_after_forward;
    state.state_on_host = host != OnHost::kNothing;
    state.home_on_host = host == OnHost::kAll;
    state.gradient_on_host = stage >= 2 && state.state_on_host;
    edit.State(state);
  });
}

Choice HybridShard() {
  return Make("hybrid shard", [](Editor& edit) {
    const AxisPart axis =
        edit.Axis({.name = "shard", .role = AxisRole::kData, .borrow_from = {AxisRole::kData}});
    StateEdit state = FullyCut();
    state.over = {axis};
    edit.State(state);
  });
}

Choice RecomputeSome(int every, int per_rank) {
  return Make("recompute every " + std::to_string(every) + ", a rank " + std::to_string(per_rank),
              [every, per_rank](Editor& edit) {
                RecomputeEdit recompute;
                recompute.which = [](const OpView& op) { return op.InBlock(); };
                recompute.whole_block = true;
                recompute.every = every;
                recompute.per_rank = per_rank;
                edit.Recompute(recompute);
              });
}

Choice RecomputeBlock(int segment) {
  return Make("recompute block/" + std::to_string(segment), [segment](Editor& edit) {
    RecomputeEdit recompute;
    recompute.which = [](const OpView& op) { return op.InBlock(); };
    recompute.whole_block = true;
    recompute.segment = segment;
    edit.Recompute(recompute);
  });
}

Choice RecomputeSelective() {
  return Make("recompute by need", [](Editor& edit) {
    RecomputeEdit recompute;
    recompute.which = [](const OpView& op) {
      return op.InBlock() && (op.kind() == OpKind::kAttention || op.kind() == OpKind::kGatedSilu ||
                              op.kind() == OpKind::kNorm);
    };
    edit.Recompute(recompute);
  });
}

Choice OpenCombine() {
  return Make("open combine", [](Editor& edit) {
    edit.Open({"tensor", -1},
              [](const TensorView& t) { return StartsWith(t.name(), "expert_down"); });
  });
}

Choice KeepGathered() {
  return Make("keep gathered", [](Editor& edit) {
    edit.KeepMoved([](const TensorView& t) { return t.role() != TensorRole::kParameter; });
  });
}

Choice ScatterThenGather() {
  return Make("scatter then gather", [](Editor& edit) {
    edit.Realise(IsOpenToRealise, [](AtomId, Layout, Layout) { return Layout::Flat(); });
  });
}

Choice TwoLevel() {
  return Make("two-level", [](Editor& edit) {
    edit.Realise(
        [](const TransferView& t) { return IsOpenToRealise(t) && t.parameter; },
        [](AtomId atom, Layout from, Layout) { return atom.value() == 0 ? Layout::Flat() : from; });
  });
}

}  // namespace shardlab::oracle
