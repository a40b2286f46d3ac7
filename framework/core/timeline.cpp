#include "core/timeline.h"

#include <algorithm>

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// What event i, which has a hop before it, waits for.
TimedMessage MessageTo(const CompiledOrder& order, std::size_t i, const std::vector<double>& ends,
                       double hop) {
  const CompiledOrder::Event &event = order.events[i], &from = order.events[event.waits];
  TimedMessage message;
  message.from_rank = from.rank;
  message.to_rank = event.rank;
  message.from = order.works[event.waits];
  message.to = order.works[i];
  const auto stage = [&](int rank, int chunk) {
    return order.stage_of[Size(rank * order.shape.chunks + chunk)];
  };
  const Work& to = message.to;
  message.forward = to.kind == WorkKind::kF;
  if (order.OnlyWaits(event)) {
    message.forward = true;
  } else if (to.kind == WorkKind::kFB && !order.OnlyWaits(order.events[event.before])) {
    // One of the two inputs comes from another rank: the forward of the stage before, if that is
    // what was made there. Where both do, an event that only waits took the forward's.
    const int before = stage(event.rank, to.chunk) - 1;
    const bool makes_forward =
        message.from.kind == WorkKind::kF || message.from.kind == WorkKind::kFB;
    message.forward = makes_forward && message.from.micro_batch == to.micro_batch &&
                      stage(from.rank, message.from.chunk) == before;
  }
  message.start = ends[event.waits];
  message.end = message.start + hop;
  return message;
}

}  // namespace

std::vector<double> StageCosts(const CompiledOrder& order, const ChunkTimes& t) {
  std::vector<double> costs;
  const double input = t.recompute + t.input_gradient;
  for (int stage = 0; stage < order.stages; ++stage)
    costs.insert(costs.end(), {t.forward, input, t.weight_gradient, input + t.weight_gradient});
  costs.resize(order.CostCount());
  AddPairCosts(order, absl::MakeSpan(costs));
  for (std::size_t i = 0; i < order.pairs.size() && t.pair >= 0; ++i)
    costs[order.ZeroCost() + 1 + i] = t.recompute + t.pair;
  return costs;
}

Timeline PlayTimeline(const CompiledOrder& order, const std::vector<double>& costs, double hop) {
  Timeline out;
  std::vector<double> ends(order.events.size(), 0);
  PlayOrder(order, costs, hop, absl::MakeSpan(ends));
  const std::size_t ranks = Size(order.shape.ranks);
  out.ranks.resize(ranks);
  std::vector<double> first(ranks, -1), last(ranks, 0);
  std::vector<int> held(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    RankTimeline& rank = out.ranks[r];
    for (int c = 0; c < order.shape.chunks; ++c)
      rank.peak_in_flight += order.in_flight[r * Size(order.shape.chunks) + Size(c)];
    rank.peak_in_flight_until_i = order.in_flight_until_i[r];
  }
  for (std::size_t i = 0; i < order.events.size(); ++i) {
    const CompiledOrder::Event& event = order.events[i];
    const std::size_t r = event.rank;
    if (event.hop != 0 && hop > 0) out.messages.push_back(MessageTo(order, i, ends, hop));
    if (order.OnlyWaits(event)) continue;
    RankTimeline& rank = out.ranks[r];
    const double cost = costs[event.cost], start = std::max(0.0, ends[i] - cost);
    out.works.push_back({event.rank, order.works[i], start, ends[i]});
    rank.busy += cost;
    if (first[r] < 0) first[r] = start;
    last[r] = ends[i];
    out.makespan = std::max(out.makespan, ends[i]);
    const WorkKind kind = order.works[i].kind;
    if (kind == WorkKind::kF || kind == WorkKind::kFB) {
      if (++held[r] == rank.peak_in_flight && rank.peak_at == 0) rank.peak_at = start;
    }
    if (kind == WorkKind::kW || kind == WorkKind::kB || kind == WorkKind::kFB) --held[r];
  }
  double idle = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    RankTimeline& rank = out.ranks[r];
    // Sums of many terms: what is left of them is rounding, not idleness.
    const auto clean = [&](double s) { return s > 1e-12 * out.makespan ? s : 0; };
    rank.idle = clean(out.makespan - rank.busy);
    rank.own_bubble = clean(last[r] - first[r] - rank.busy);
    idle += rank.idle;
  }
  if (out.makespan > 0)
    out.bubble_fraction = idle / out.makespan / static_cast<double>(order.shape.ranks);
  std::stable_sort(out.works.begin(), out.works.end(),
                   [](const TimedWork& a, const TimedWork& b) { return a.rank < b.rank; });
  return out;
}

}  // namespace shardlab
