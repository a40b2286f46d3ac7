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

// Where an accounting takes thirds of all for each kind of pass.
bool TakesThirds(const Composition& c, const Plan& plan) {
  return c.rules.equal_passes &&
         c.schedule->EqualSlots({plan.pipeline, plan.chunks, plan.micro_batches}) < 0;
}

// A rank is then busy for less than the sum of its passes.
bool MayHideInPairs(const Composition& c) { return c.rules.pairs_overlap && c.schedule->Pairs(); }

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

void Bounds::Stages(const Composition& c, const Plan& plan, const Workspace& w) {
  const std::size_t classes = c.form.classes.size();
  const LayerSplit& split = c.splits[static_cast<std::size_t>(plan.split)];
  const std::size_t stages = split.counts.size() / classes;
  const bool thirds = TakesThirds(c, plan), pairs = MayHideInPairs(c);
  stage_.resize(stages);
  before_.resize(stages + 1);
  before_[0] = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    if (s > 0 && split.alike[s] == split.alike[s - 1]) {
      stage_[s] = stage_[s - 1];
    } else {
      PassSeconds pass;
      double gathers = 0, gathers_again = 0, first = 0, first_again = 0;
      double blocks = 0, blocks_again = 0;  // collectives that a pair may hide
      for (std::size_t k = 0; k < classes; ++k) {
        const double n = split.counts[s * classes + k];
        if (n == 0) continue;
        const ClassCosts& cost = w.costs[k];
        const double weight = cost.seconds[static_cast<std::size_t>(Bucket::kWeightGradient)];
        pass.forward += n * cost.slot_forward;
        pass.input += n * std::max(0.0, cost.slot_backward - weight);
        pass.weight += n * std::min(weight, cost.slot_backward);
        const double together = std::min<double>(c.form.classes[k].unit, n);
        gathers += n * cost.gather_forward;
        gathers_again += n * cost.gather_backward;
        first += together * cost.gather_forward;
        first_again += together * cost.gather_backward;
        for (std::size_t r = 0; pairs && r < kAxisRoles; ++r) {
          blocks += n * cost.blocking_forward[r];
          blocks_again += n * cost.blocking_backward[r];
        }
      }
      // The first gather of each class is seen, and all are within the pass (travel.h).
      if (!c.rules.prefetch_hides_in_slot) {
        pass.forward = std::max(pass.forward + first, gathers);
        pass.input = std::max(pass.input + first_again, gathers_again);
      }
      if (pairs) {
        pass.forward = std::max(0.0, pass.forward - blocks);
        pass.input = std::max(0.0, pass.input - blocks_again);
      }
      if (thirds) {
        const double third = (pass.forward + pass.input + pass.weight) / 3;
        pass = {third, third, third};
      }
      stage_[s] = pass;
    }
    before_[s + 1] = before_[s] + stage_[s].forward + stage_[s].input;
  }
}

double Bounds::Pipeline(const Composition& c, const Plan& plan, double hop) {
  const ScheduleShape shape{plan.pipeline, plan.chunks, plan.micro_batches};
  const auto slots =
      static_cast<std::size_t>(plan.pipeline) * static_cast<std::size_t>(plan.chunks);
  stage_of_.resize(slots);
  for (int rank = 0, slot = 0; rank < plan.pipeline; ++rank) {
    for (int chunk = 0; chunk < plan.chunks; ++chunk, ++slot)
      stage_of_[static_cast<std::size_t>(slot)] = c.schedule->StageOf(shape, rank, chunk);
  }
  fill_and_drain_.Reserve(static_cast<std::size_t>(plan.pipeline), stage_.size());
  const double passes =
      plan.micro_batches * static_cast<double>(stage_.size()) / static_cast<double>(slots);
  const double drained = LeastFinish(
      {plan.pipeline, plan.chunks, static_cast<int>(stage_.size()), stage_of_.data(), passes, true,
       hop},
      [this](int stage) { return stage_[static_cast<std::size_t>(stage)]; }, &fill_and_drain_);
  return std::max(drained, *std::max_element(fill_and_drain_.finish.begin(),
                                             fill_and_drain_.finish.begin() + plan.pipeline));
}

double Bounds::FirstRank(const Composition& c, const Plan& plan, const Workspace& w) {
  const std::size_t classes = c.form.classes.size(), stages = stage_.size();
  const double passes = plan.micro_batches * static_cast<double>(stages) /
                        (static_cast<double>(plan.pipeline) * plan.chunks);
  double state = 0, waits = 0, least = std::numeric_limits<double>::infinity();
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = stage_of_[static_cast<std::size_t>(chunk)];
    double kept = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const double n = LayersOn(c, plan, stage, k);
      if (n == 0) continue;
      state += n * StateBytes(w.costs[k]);
      kept += KeptBytes(c.form.classes[k], w.costs[k], n);
    }
    waits += passes * (before_[stages] - before_[static_cast<std::size_t>(stage)]);
    least = std::min(least, kept);
  }
  if (least == 0) return 0;
  // Whole micro-batches; those of the chunk that keeps least.
  const Machine& machine = c.hardware->machine();
  const double room =
      (w.most_bytes / kRounding - machine.outside_allocator.value()) / (1 + machine.fragmentation);
  const double held = std::floor((room - state) / least / kRounding);
  return held < 1 ? std::numeric_limits<double>::infinity() : kRounding * waits / held;
}

PlanBound Bounds::Of(const Composition& c, const Plan& plan, const Workspace& w, double hop,
                     double most_seconds) {
  const std::vector<double>& layers = Layers(c, static_cast<std::size_t>(plan.split));
  const bool pairs = plan.pipeline > 1 && MayHideInPairs(c);
  PlanBound bound;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const ClassCosts& cost = w.costs[k];
    bound.seconds += layers[k] * Busy(c, cost, pairs);
    bound.bytes += layers[k] * StateBytes(cost);
  }
  bound.seconds *= kRounding * plan.micro_batches / plan.pipeline;
  if (bound.seconds > most_seconds) return bound;
  bound.bytes /= plan.pipeline;
  if (plan.pipeline > 1) {
    Stages(c, plan, w);
    bound.seconds = std::max(bound.seconds, kRounding * Pipeline(c, plan, hop));
    if (bound.seconds > most_seconds) return bound;
    bound.seconds = std::max(bound.seconds, FirstRank(c, plan, w));
  }
  const Machine& machine = c.hardware->machine();
  bound.bytes =
      kRounding * ((1 + machine.fragmentation) * bound.bytes + machine.outside_allocator.value());
  return bound;
}

}  // namespace shardlab
