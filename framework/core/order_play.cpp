// Playing a compiled order: see core/order.h.

#include <algorithm>

#include "core/order.h"

namespace shardlab {

void AddPairCosts(const CompiledOrder& order, absl::Span<double> costs) {
  if (order.pairs.empty()) return;
  const std::size_t zero = order.ZeroCost();
  const auto cost = [&](int stage, WorkKind kind) {
    return costs[static_cast<std::size_t>(stage) * 4 + static_cast<std::size_t>(kind)];
  };
  costs[zero] = 0;
  for (std::size_t i = 0; i < order.pairs.size(); ++i) {
    costs[zero + 1 + i] =
        cost(order.pairs[i].first, WorkKind::kF) + cost(order.pairs[i].second, WorkKind::kB);
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
  double* const end = ends.data();
  const CompiledOrder::Period& period = order.period;
  std::size_t at = 0;
  if (period.length > 0) {
    const std::size_t length = period.length, reach = period.reach;
    // The window of `reach` events before `at` and the one a period earlier must lie in the
    // periodic stretch.
    at = period.begin + reach + length;
    PlayRange(order, 0, std::min<std::size_t>(at, period.end), costs.data(), hop, end);
    for (; at + length <= period.end; at += length) {
      const double shift = end[at - 1] - end[at - 1 - length];
      const double allowed = 1e-14 * end[at - 1];
      bool repeats = true;
      for (std::size_t i = at - reach; i < at && repeats; ++i) {
        const double off = end[i] - end[i - length] - shift;
        repeats = off <= allowed && -off <= allowed;
      }
      if (repeats) {
        const std::size_t skipped = (period.end - at) / length;
        const std::size_t to = at + skipped * length;
        for (std::size_t i = 1; i <= reach; ++i)
          end[to - i] = end[at - i] + static_cast<double>(skipped) * shift;
        at = to;
        break;
      }
      PlayRange(order, at, at + length, costs.data(), hop, end);
    }
    at = std::min<std::size_t>(at, period.end);
  }
  PlayRange(order, at, order.events.size(), costs.data(), hop, end);
}

}  // namespace shardlab
