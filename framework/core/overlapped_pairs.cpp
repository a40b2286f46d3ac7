#include "core/overlapped_pairs.h"

#include <algorithm>

namespace shardlab {
namespace {

constexpr std::size_t kF = 0, kB = 3;  // as WorkKind

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

double Of(const Composition& c, const std::array<double, kAxisRoles>& blocking) {
  double sum = 0;
  for (const std::uint8_t r : c.form.roles) sum += blocking[r];
  return sum;
}

// Visits the cost classes of a stage that a rank holds: behind the layers what it does once, on
// its first chunk.
template <class Visitor>
void EachClass(const Composition& c, const Plan& plan, int rank, int stage,
               const CompiledOrder& order, const Workspace& w, Visitor visit) {
  const std::size_t classes = c.form.classes.size();
  for (std::size_t k = 0; k < classes; ++k) {
    const double n = LayersOn(c, plan, stage, k);
    if (n > 0) visit(w.costs[k], n);
  }
  if (order.stage_of[Size(rank * plan.chunks)] == stage) visit(w.costs[classes], 1.0);
}

// What of a pass's traffic hides, as a share of it.
struct Hidden {
  double forward = 0, backward = 0;  // seconds
};
Hidden HiddenOf(const Composition& c, const std::pair<int, int>& pair, const Workspace& w) {
  const double f = w.pair_traffic[2 * Size(pair.first)];
  const double b = w.pair_traffic[2 * Size(pair.second) + 1];
  const double f_computes = std::max(0.0, w.stage_cost[Size(pair.first) * 4 + kF] - f);
  const double b_computes = std::max(0.0, w.stage_cost[Size(pair.second) * 4 + kB] - b);
  // What hides slows down what hides it.
  return {c.overlap_share * std::min(f, b_computes), c.overlap_share * std::min(b, f_computes)};
}

std::int32_t Count(const CompiledOrder& order, int rank, std::size_t pair) {
  return order.pair_counts[Size(rank) * order.pairs.size() + pair];
}

}  // namespace

bool PairsOverlap(const Composition& c, const CompiledOrder* order) noexcept {
  return order != nullptr && c.rules.pairs_overlap && c.schedule->Pairs();
}

void AddPairTraffic(const Composition& c, const Plan& plan, int rank, const CompiledOrder& order,
                    Workspace& w) noexcept {
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = order.stage_of[Size(rank * plan.chunks + chunk)];
    double* const traffic = &w.pair_traffic[2 * Size(stage)];
    traffic[0] = traffic[1] = 0;
    EachClass(c, plan, rank, stage, order, w, [&](const ClassCosts& cost, double n) {
      traffic[0] += n * Of(c, cost.blocking_forward);
      traffic[1] += n * Of(c, cost.blocking_backward);
    });
  }
}

double PairTraffic(const Plan& plan, int rank, const CompiledOrder& order,
                   const Workspace& w) noexcept {
  double seconds = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const std::size_t stage = Size(order.stage_of[Size(rank * plan.chunks + chunk)]);
    seconds += w.pair_traffic[2 * stage] + w.pair_traffic[2 * stage + 1];
  }
  return seconds;
}

void FillPairs(const Composition& c, const Plan& plan, const CompiledOrder& order,
               Workspace& w) noexcept {
  std::fill_n(w.hidden_in_pairs.begin(), plan.pipeline, 0.0);
  for (std::size_t i = 0; i < order.pairs.size(); ++i) {
    const Hidden hidden = HiddenOf(c, order.pairs[i], w);
    w.pair_hidden[i] = hidden.forward + hidden.backward;
    for (int r = 0; r < plan.pipeline; ++r)
      w.hidden_in_pairs[Size(r)] += Count(order, r, i) * w.pair_hidden[i];
  }
}

std::array<double, kAxisRoles> HiddenInPairs(const Composition& c, const Plan& plan, int rank,
                                             const CompiledOrder& order,
                                             const Workspace& w) noexcept {
  std::array<double, kAxisRoles> roles{};
  for (std::size_t i = 0; i < order.pairs.size(); ++i) {
    const double count = Count(order, rank, i);
    if (count == 0) continue;
    const auto [f, b] = order.pairs[i];
    const Hidden hidden = HiddenOf(c, order.pairs[i], w);
    const double of_f = w.pair_traffic[2 * Size(f)], of_b = w.pair_traffic[2 * Size(b) + 1];
    const double f_share = of_f > 0 ? hidden.forward / of_f : 0;
    const double b_share = of_b > 0 ? hidden.backward / of_b : 0;
    for (const std::uint8_t r : c.form.roles) {
      EachClass(c, plan, rank, f, order, w, [&](const ClassCosts& cost, double n) {
        roles[r] += count * f_share * n * cost.blocking_forward[r];
      });
      EachClass(c, plan, rank, b, order, w, [&](const ClassCosts& cost, double n) {
        roles[r] += count * b_share * n * cost.blocking_backward[r];
      });
    }
  }
  return roles;
}

}  // namespace shardlab
