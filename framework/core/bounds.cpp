#include "core/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardlab {
namespace {

std::size_t Index(Account account) { return static_cast<std::size_t>(account); }

double StateBytes(const ClassCosts& cost) {
  return cost.bytes[Index(Account::kParameters)] + cost.bytes[Index(Account::kGradients)] +
         cost.bytes[Index(Account::kOptimizer)];
}

// Forward and input gradient of one layer; where an accounting takes thirds of all, those if less.
double ThereAndBack(const Composition& c, const ClassCosts& cost) {
  const double weight = cost.seconds[static_cast<std::size_t>(Bucket::kWeightGradient)];
  const double forward = cost.slot_forward, back = std::max(0.0, cost.slot_backward - weight);
  if (!c.rules.equal_passes) return forward + back;
  const double third = (forward + cost.slot_backward) / 3;
  return std::min(forward, third) + std::min(back, third);
}

// Of one layer what keeps a rank busy at the least. Collectives of an overlapped pair may hide.
double Busy(const Composition& c, const ClassCosts& cost, bool pairs) {
  double seconds = cost.slot_forward + cost.slot_backward;
  if (!pairs) return seconds;
  for (const std::uint8_t r : c.form.roles)
    seconds -= cost.blocking_forward[r] + cost.blocking_backward[r];
  return std::max(0.0, seconds);
}

// Activations of one micro-batch that wait for its backward pass.
double KeptBytes(const Form::ClassRow& row, const ClassCosts& cost, double n) {
  return n * cost.bytes[kAccounts] +
         (row.replays ? std::ceil(n / row.segment) * cost.bytes[kAccounts + 1] : 0);
}

}  // namespace

const std::vector<double>& Bounds::Layers(const Composition& c, std::size_t split) {
  const std::size_t classes = c.form.classes.size();
  for (std::size_t i = layers_.size(); i <= split; ++i) {
    std::vector<double> layers(classes, 0);
    const std::vector<double>& counts = c.splits[i].counts;
    for (std::size_t at = 0; at < counts.size(); ++at) layers[at % classes] += counts[at];
    layers_.push_back(std::move(layers));
  }
  return layers_[split];
}

double Bounds::FirstRank(const Composition& c, const Plan& plan, const Workspace& w,
                         double most_seconds) {
  const std::size_t classes = c.form.classes.size();
  const LayerSplit& split = c.splits[static_cast<std::size_t>(plan.split)];
  const std::size_t stages = split.counts.size() / classes;
  there_and_back_.resize(classes);
  for (std::size_t k = 0; k < classes; ++k) there_and_back_[k] = ThereAndBack(c, w.costs[k]);
  before_.resize(stages + 1);
  before_[0] = 0;
  double seconds = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    if (s == 0 || split.alike[s] != split.alike[s - 1]) {
      seconds = 0;
      for (std::size_t k = 0; k < classes; ++k)
        seconds += split.counts[s * classes + k] * there_and_back_[k];
    }
    before_[s + 1] = before_[s] + seconds;
  }
  const ScheduleShape shape{plan.pipeline, plan.chunks, plan.micro_batches};
  const double copies =
      static_cast<double>(plan.pipeline) * plan.chunks / static_cast<double>(stages);
  double state = 0, held = 0, least = std::numeric_limits<double>::infinity();
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = c.schedule->StageOf(shape, 0, chunk);
    double kept = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const double n = LayersOn(c, plan, stage, k);
      if (n == 0) continue;
      state += n * StateBytes(w.costs[k]);
      kept += KeptBytes(c.form.classes[k], w.costs[k], n);
    }
    held += plan.micro_batches / copies *
            (before_[stages] - before_[static_cast<std::size_t>(stage)]) / most_seconds;
    least = std::min(least, kept);
  }
  // Whole micro-batches; those of the chunk that keeps least.
  return state + std::ceil(kRounding * held) * least;
}

PlanBound Bounds::Of(const Composition& c, const Plan& plan, const Workspace& w,
                     double most_seconds) {
  const std::vector<double>& layers = Layers(c, static_cast<std::size_t>(plan.split));
  const bool pairs = plan.pipeline > 1 && c.rules.pairs_overlap && c.schedule->Pairs();
  PlanBound bound;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const ClassCosts& cost = w.costs[k];
    bound.seconds += layers[k] * Busy(c, cost, pairs);
    bound.bytes += layers[k] * StateBytes(cost);
  }
  bound.seconds *= kRounding * plan.micro_batches / plan.pipeline;
  if (bound.seconds > most_seconds) return bound;
  bound.bytes /= plan.pipeline;
  if (plan.pipeline > 1 && most_seconds < std::numeric_limits<double>::infinity())
    bound.bytes = std::max(bound.bytes, FirstRank(c, plan, w, most_seconds));
  const Machine& machine = c.hardware->machine();
  bound.bytes =
      kRounding * ((1 + machine.fragmentation) * bound.bytes + machine.outside_allocator.value());
  return bound;
}

}  // namespace shardlab
