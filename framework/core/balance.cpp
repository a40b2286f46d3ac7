#include "core/balance.h"

#include <algorithm>
#include <limits>

#include "core/evaluate.h"
#include "core/order.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// Seconds, or bytes with so many micro-batches in flight, of one layer of a class.
double SecondsOf(const ClassCosts& cost) {
  return cost.slot_forward + cost.slot_backward + cost.gather_forward + cost.gather_backward +
         cost.scatter;
}

double BytesOf(const ClassCosts& cost, const Form::ClassRow& row, double held, double pinned) {
  double bytes = held * cost.bytes[kAccounts];  // kept
  for (const Account account : {Account::kParameters, Account::kGradients, Account::kOptimizer})
    bytes += cost.bytes[static_cast<std::size_t>(account)];
  if (row.replays) bytes += held * cost.bytes[kAccounts + 1] / row.segment;
  return bytes + pinned * cost.bytes[kAccounts + 2];
}

}  // namespace

std::vector<int> LeastLargest(int parts, int items,
                              const std::function<double(int part, int begin, int end)>& cost) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::size_t row = Size(items) + 1;
  if (Size(parts) * row > std::size_t{1} << 24) {  // no model is as deep; near enough and at once
    std::vector<int> sizes(Size(parts), items / parts);
    for (int i = 0; i < items % parts; ++i) ++sizes[Size(i)];
    return sizes;
  }
  // largest[part][end]: the least possible largest cost of parts 0..part over the first `end`.
  std::vector<double> largest(Size(parts) * row, kNever);
  for (int part = 0; part < parts; ++part) {
    for (int end = 0; end <= items; ++end) {
      double& best = largest[Size(part) * row + Size(end)];
      if (part == 0) {
        best = cost(0, 0, end);
        continue;
      }
      for (int begin = end; begin >= 0; --begin) {
        const double own = cost(part, begin, end);
        best = std::min(best, std::max(largest[Size(part - 1) * row + Size(begin)], own));
        if (own >= best) break;  // longer parts cost more still
      }
    }
  }
  const double limit = largest.back() * (1 + 1e-12);
  std::vector<double> squares(largest.size(), kNever);
  std::vector<int> from(largest.size(), 0);
  for (int part = 0; part < parts; ++part) {
    for (int end = 0; end <= items; ++end) {
      for (int begin = part == 0 ? 0 : end; begin >= 0; --begin) {
        const double own = cost(part, begin, end);
        if (own > limit) break;
        const double before = part > 0     ? squares[Size(part - 1) * row + Size(begin)]
                              : begin == 0 ? 0
                                           : kNever;
        const std::size_t at = Size(part) * row + Size(end);
        if (before + own * own < squares[at]) {
          squares[at] = before + own * own;
          from[at] = begin;
        }
      }
    }
  }
  std::vector<int> sizes(Size(parts), 0);
  for (int part = parts - 1, end = items; part >= 0; --part) {
    const int begin = from[Size(part) * row + Size(end)];
    sizes[Size(part)] = end - begin;
    end = begin;
  }
  return sizes;
}

std::vector<int> BalancedLayers(const Composition& c, const Plan& plan, Balance balance, int stages,
                                int layers) {
  Workspace w(c);
  w.spans.Set(plan);
  ComputeCosts(c, plan, 0, w);
  // What a stage holds follows from the order; without one (or with a wrong one, which is told
  // elsewhere) one micro-batch is in flight.
  std::vector<double> held(Size(stages), 1), pinned(Size(stages), 0);
  if (plan.pipeline > 1 && c.schedule != nullptr && balance == Balance::kMemory) {
    const absl::StatusOr<CompiledOrder> order =
        CompileOrder(*c.schedule, {plan.pipeline, plan.chunks, plan.micro_batches});
    for (std::size_t i = 0; order.ok() && i < order->stage_of.size(); ++i) {
      const auto stage = Size(order->stage_of[i]);
      held[stage] = std::max<double>(held[stage], order->in_flight[i]);
      pinned[stage] = std::max<double>(pinned[stage], order->pinned[i]);
    }
  }
  const auto weight = [&](std::size_t k, int stage) {
    return balance == Balance::kTime
               ? SecondsOf(w.costs[k])
               : BytesOf(w.costs[k], c.form.classes[k], held[Size(stage)], pinned[Size(stage)]);
  };
  const auto cost = [&](int stage, int begin, int end) {
    double sum = 0;
    int first = 0;
    for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
      const Form::ClassRow& row = c.form.classes[k];
      double n = 0;
      switch (row.position) {
        case StagePosition::kFirst:
          n = stage == 0 ? 1 : 0;
          break;
        case StagePosition::kLast:
          n = stage + 1 == stages ? 1 : 0;
          break;
        case StagePosition::kSpread:
          n = 1.0 / stages;
          break;
        case StagePosition::kLayer:
          n = std::max(0, std::min(end, first + row.repeat) - std::max(begin, first));
          first += row.repeat;
          break;
      }
      if (n > 0) sum += n * weight(k, stage);
    }
    return sum;
  };
  return LeastLargest(stages, layers, cost);
}

}  // namespace shardlab
