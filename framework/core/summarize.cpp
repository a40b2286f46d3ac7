#include "core/summarize.h"

#include <algorithm>
#include <array>

#include "core/overlapped_pairs.h"
#include "core/travel.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

double RecomputeShare(const Composition& c, const Plan& plan, const CompiledOrder* order,
                      const Workspace& w) {
  const auto replays = [](const OpRow& row) { return row.bucket == Bucket::kReplay; };
  if (std::none_of(c.form.ops.begin(), c.form.ops.end(), replays)) return 0;
  std::array<double, kMaxClasses> layers{};
  const int stages = order == nullptr ? 1 : order->stages;
  for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
    for (int stage = 0; stage < stages; ++stage) layers[k] += LayersOn(c, plan, stage, k);
  }
  double replayed = 0, needed = 0;
  for (const OpRow& row : c.form.ops) {
    (replays(row) ? replayed : needed) +=
        layers[row.layer_class] * ShapeOf(c, c.form.op_prices[row.price], w).flops;
  }
  return needed > 0 ? replayed / needed : 0;
}

// Seconds of a pass that no other of its rank comes before.
double FirstPass(const CompiledOrder& order, const Workspace& w, std::size_t cost) {
  const auto seconds = [&w](std::size_t at) { return w.passes[at].lead + w.passes[at].body; };
  if (cost < order.ZeroCost()) return seconds(cost);
  if (cost == order.ZeroCost()) return 0;
  const std::pair<int, int>& pair = order.pairs[cost - order.ZeroCost() - 1];
  return seconds(Size(pair.first) * 4) + seconds(Size(pair.second) * 4 + 3);
}

// Both bubble definitions need the order played, closed form or not. Waiting for a message is
// traffic, here as in the bubble until the step ends: messages take no time.
double OwnBubble(const Composition& c, const Plan& plan, const CompiledOrder& order,
                 const Summary& s, Workspace& w) {
  const int r = s.evaluation.time_rank;
  const std::size_t first = Size(order.first[Size(r)]), last = Size(order.last[Size(r)]);
  double own = 0;
  if (Travels(c, w)) {
    const bool pairs = PairsOverlap(c, &order);
    PlayTravelling(plan, &order, 0, w,
                   pairs ? absl::MakeConstSpan(w.pair_hidden) : absl::Span<const double>());
    const PlayingRank& rank = w.playing[Size(r)];
    own = rank.free - (w.ends[first] - FirstPass(order, w, order.events[first].cost)) - rank.busy;
  } else {
    PlayToEnd(order, w.stage_cost, 0, absl::MakeSpan(w.ends));
    const double start = w.ends[first] - w.stage_cost[order.events[first].cost];
    const int passes = plan.micro_batches / w.copies;
    own = w.ends[last] - start - (passes * w.slot[Size(r)] - w.hidden_in_pairs[Size(r)]);
  }
  const double until_end = s.evaluation.time.bubble - s.exposed_pipeline;
  return own > 1e-12 * s.evaluation.step ? std::min(own, until_end) : 0;  // else rounding
}

}  // namespace

Summary Summarize(const Composition& c, const Plan& plan, const CompiledOrder* order,
                  Workspace& w) noexcept {
  Summary s;
  // Messages that take no time or are not there cost nothing.
  const bool hops = plan.pipeline > 1 && c.exposed_transfers;
  const double without = hops ? Evaluate(c, plan, order, w, false).step : 0;
  w.keeps_costs = hops;
  w.keeps_ranks = hops && !c.rules.equal_passes;
  s.evaluation = Evaluate(c, plan, order, w);
  w.keeps_costs = w.keeps_ranks = false;
  if (hops) {
    // No more than its own messages take: what it waits beyond that it waits for others, idle.
    const std::size_t rank = Size(s.evaluation.time_rank);
    const double sent = (order->sends[2 * rank] + order->sends[2 * rank + 1]) * HopSeconds(c, w);
    s.exposed_pipeline =
        std::clamp(s.evaluation.step - without, 0.0, std::min(s.evaluation.time.bubble, sent));
    s.hidden_pipeline = sent - s.exposed_pipeline;
  }
  s.worst = w.memory[Size(s.evaluation.worst_rank)];
  s.recompute_flops_share = RecomputeShare(c, plan, order, w);
  if (plan.pipeline > 1) s.own_bubble = OwnBubble(c, plan, *order, s, w);
  return s;
}

}  // namespace shardlab
