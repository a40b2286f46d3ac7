// Playing a compiled order: see core/order.h.

#include <algorithm>

#include "core/order.h"
#include "core/play_periods.h"

namespace shardlab {

void AddPairCosts(const CompiledOrder& order, absl::Span<double> costs,
                  absl::Span<const double> hidden) {
  if (order.pairs.empty()) return;
  const std::size_t zero = order.ZeroCost();
  const auto cost = [&](int stage, WorkKind kind) {
    return costs[static_cast<std::size_t>(stage) * 4 + static_cast<std::size_t>(kind)];
  };
  costs[zero] = 0;
  for (std::size_t i = 0; i < order.pairs.size(); ++i) {
    costs[zero + 1 + i] = cost(order.pairs[i].first, WorkKind::kF) +
                          cost(order.pairs[i].second, WorkKind::kB) -
                          (hidden.empty() ? 0 : hidden[i]);
  }
}

namespace {

// Plays events [from, to).
inline void PlayRange(const CompiledOrder& order, std::size_t from, std::size_t to,
                      const double* cost, double hop, double* end) {
  const double lag[2] = {0, hop};
  for (std::size_t i = from; i < to; ++i) {
    const CompiledOrder::Event& e = order.events[i];
    end[i] = std::max(end[e.before], end[e.waits] + lag[e.hop]) + cost[e.cost];
  }
}

}  // namespace

void PlayOrder(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends) {
  for (const std::int32_t first : order.first) ends[static_cast<std::size_t>(first)] = 0;
  PlayRange(order, 0, order.events.size(), costs.data(), hop, ends.data());
}

void PlayToEnd(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends) {
  for (const std::int32_t first : order.first) ends[static_cast<std::size_t>(first)] = 0;
  PlayPeriods(
      order, ends.data(),
      [&](std::size_t from, std::size_t to) {
        PlayRange(order, from, to, costs.data(), hop, ends.data());
      },
      [] {}, [](double, double) {});
}

}  // namespace shardlab
