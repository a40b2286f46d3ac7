#include "core/evaluate.h"

#include <algorithm>
#include <cmath>

#include "core/evaluate_memory.h"
#include "core/overlapped_pairs.h"
#include "core/travel.h"

namespace shardlab {
namespace {

constexpr std::size_t kF = 0, kI = 1, kW = 2, kB = 3;  // as WorkKind

std::size_t Index(AxisRole role) { return static_cast<std::size_t>(role); }
std::size_t Index(Bucket bucket) { return static_cast<std::size_t>(bucket); }
std::size_t Index(Account account) { return static_cast<std::size_t>(account); }
std::size_t Size(int n) { return static_cast<std::size_t>(n); }

template <std::size_t N>
double Sum(const std::array<double, N>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

// What one pipeline rank does for one micro-batch, and at the end of the step.
struct RankWork {
  double forward = 0, backward = 0, recompute = 0;  // compute
  std::array<double, kAxisRoles> exposed_forward{}, exposed_backward{}, hidden{};
  std::array<double, kAxisRoles> step_exposed{}, step_hidden{};
  double travelling = 0;  // gathers and reductions of a micro-batch, seen or not
  double SlotForward() const { return forward + Sum(exposed_forward); }
  double Slot() const { return SlotForward() + SlotBackward(); }
  double SlotBackward() const { return backward + recompute + Sum(exposed_backward); }
};

// Layers of cost class k on a stage; behind the layer classes stands what a rank does once, on its
// first stage.
double CountOf(const Composition& c, const Plan& plan, int stage, bool first, std::size_t k) {
  return k < c.form.classes.size() ? LayersOn(c, plan, stage, k) : first ? 1 : 0;
}

void AddScaled(const Composition& c, std::array<double, kAxisRoles>& to,
               const std::array<double, kAxisRoles>& from, double n) {
  for (const std::uint8_t r : c.form.roles) to[r] += n * from[r];
}

// The classroom's rule: per micro-batch the longer of (compute and blocking traffic) and (gathers
// and reduction).
void HideInSlot(double prefetched, double slot, RankWork& work) {
  const double shown = std::max(0.0, prefetched - slot);
  work.exposed_backward[Index(AxisRole::kData)] += shown;
  work.hidden[Index(AxisRole::kData)] += prefetched - shown;
}

struct StageSum {
  RankWork work;
  std::array<double, kAxisRoles> trailing{};
};

void AddStage(const Composition& c, const Plan& plan, int stage, bool first, const Workspace& w,
              StageSum& sum) {
  for (std::size_t k = 0, classes = w.costs.size(); k < classes; ++k) {
    const double n = CountOf(c, plan, stage, first, k);
    if (n == 0) continue;
    const ClassCosts& cost = w.costs[k];
    RankWork& work = sum.work;
    work.forward += n * cost.seconds[Index(Bucket::kForward)];
    work.backward += n * (cost.seconds[Index(Bucket::kInputGradient)] +
                          cost.seconds[Index(Bucket::kWeightGradient)]);
    work.recompute += n * cost.seconds[Index(Bucket::kReplay)];
    AddScaled(c, work.exposed_forward, cost.blocking_forward, n);
    AddScaled(c, work.exposed_backward, cost.blocking_backward, n);
    AddScaled(c, work.hidden, cost.hidden, n);
    AddScaled(c, work.step_exposed, cost.step_blocking, n);
    AddScaled(c, work.step_hidden, cost.step_ignored, n);
    AddScaled(c, sum.trailing, cost.step_trailing, n);
    work.travelling += n * (cost.gather_forward + cost.gather_backward + cost.scatter);
  }
}

// Of what trails behind the last backward pass all but the last block's share travels while that
// pass lasts.
double Trailing(double total, double blocks, double backward) {
  return total <= 0 ? 0 : std::max(total / std::max(1.0, blocks), total - backward);
}

double BlocksOn(const Composition& c, const Plan& plan, int stage) {
  double blocks = 0;
  for (std::size_t k = 0, classes = c.form.classes.size(); k < classes; ++k) {
    if (c.form.classes[k].position == StagePosition::kLayer) blocks += LayersOn(c, plan, stage, k);
  }
  return blocks;
}

// Calls in which the gradients of a stage are reduced.
double PiecesOn(const Composition& c, const Plan& plan, int stage, const Workspace& w) {
  if (!c.form.buckets) return BlocksOn(c, plan, stage);
  double pieces = 0;
  for (std::size_t k = 0, classes = c.form.classes.size(); k < classes; ++k)
    pieces += LayersOn(c, plan, stage, k) * w.costs[k].pieces;
  return pieces;
}

int StageOf(const Plan& plan, int rank, int chunk, const CompiledOrder* order) {
  const int slot = rank * plan.chunks + chunk;
  return order == nullptr ? slot : order->stage_of[Size(slot)];
}

// The classroom takes the largest gathers and reductions of any stage for all of them.
double LargestPrefetch(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order,
                       const Workspace& w) {
  double largest = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    double stage = 0;
    for (std::size_t k = 0, classes = w.costs.size(); k < classes; ++k) {
      const ClassCosts& cost = w.costs[k];
      stage += CountOf(c, plan, StageOf(plan, rank, chunk, order), chunk == 0, k) *
               (cost.gather_forward + cost.gather_backward + cost.scatter);
    }
    largest = std::max(largest, stage);
  }
  return largest;
}

// Ranks that hold the same stage add up their gradients before anything else is done with them.
double CopiesSeconds(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order,
                     const Workspace& w) {
  return order == nullptr || order->copies == 1
             ? 0
             : c.network
                   ->TransferTime(
                       {Collective::kAllReduce, Bytes(CopiedBytes(c, plan, rank, *order, w))},
                       CopiesSpan(*order, w))
                   .value();
}

// The fast pass: what a rank's micro-batch and step end take, in sum. Fills the stages' costs and
// what trails the last backward pass; returns the seconds that the rank spends after that.
double Time(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order,
            double prefetch, bool travels, Workspace& w) {
  double now = 0, late = 0, blocks = 0, backward = 0, slot = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = StageOf(plan, rank, chunk, order);
    double forward_slot = 0, backward_slot = 0, weights = 0, chunk_late = 0;
    for (std::size_t k = 0, classes = w.costs.size(); k < classes; ++k) {
      const double n = CountOf(c, plan, stage, chunk == 0, k);
      if (n == 0) continue;
      const ClassCosts& cost = w.costs[k];
      forward_slot += n * cost.slot_forward;
      backward_slot += n * cost.slot_backward;
      weights += n * cost.seconds[Index(Bucket::kWeightGradient)];
      now += n * cost.step_now;
      chunk_late += n * cost.step_late;
    }
    late += chunk_late;
    w.chunk_late[Size(rank * plan.chunks + chunk)] = chunk_late;
    if (travels) FillPasses(c, plan, stage, chunk == 0, w);
    if (prefetch > 0) backward_slot += std::max(0.0, prefetch - (forward_slot + backward_slot));
    double* cost = &w.stage_cost[Size(stage) * 4];
    cost[kF] = forward_slot;
    cost[kB] = backward_slot;
    // A split backward: recomputation and blocking traffic belong to the input gradient.
    cost[kW] = weights;
    cost[kI] = backward_slot - weights;
    slot += forward_slot + backward_slot;
    // Weight gradients are what is reduced: of a split backward they alone last long enough.
    const bool split = order != nullptr && order->splits_backward;
    if (travels) {
      const PassCost& pass = w.passes[Size(stage) * 4 + (split ? kW : kB)];
      backward += pass.lead + pass.body;
    } else {
      backward += split ? weights : backward_slot;
    }
    if (late > 0) blocks += PiecesOn(c, plan, stage, w);
  }
  w.slot[Size(rank)] = slot;
  if (c.exposed_transfers) now += CopiesSeconds(c, plan, rank, order, w);
  const double behind = Trailing(late, blocks, backward);
  w.trailing[Size(rank)] = behind;
  w.bucket[Size(rank)] = late / std::max(1.0, blocks);
  // What hides slows down the pass that hides it.
  return now + (1 - c.overlap_share) * (late - behind);
}

// Where all ranks lie alike: this one's stages have the layers that the rank before has.
bool AsTheOneBefore(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order) {
  const std::vector<std::int32_t>& alike = c.splits[Size(plan.split)].alike;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    if (alike[Size(StageOf(plan, rank, chunk, order))] !=
        alike[Size(StageOf(plan, rank - 1, chunk, order))])
      return false;
  }
  return true;
}

// What Time found for the rank before holds for this one.
void TimeAgain(const Plan& plan, int rank, const CompiledOrder* order, bool travels, Workspace& w) {
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const std::size_t from = Size(StageOf(plan, rank - 1, chunk, order)) * 4,
                      to = Size(StageOf(plan, rank, chunk, order)) * 4;
    std::copy_n(&w.stage_cost[from], 4, &w.stage_cost[to]);
    if (travels) std::copy_n(&w.passes[from], 4, &w.passes[to]);
  }
  w.slot[Size(rank)] = w.slot[Size(rank - 1)];
  w.trailing[Size(rank)] = w.trailing[Size(rank - 1)];
  w.bucket[Size(rank)] = w.bucket[Size(rank - 1)];
  std::copy_n(&w.chunk_late[Size((rank - 1) * plan.chunks)], plan.chunks,
              &w.chunk_late[Size(rank * plan.chunks)]);
  w.step_end[Size(rank)] = w.step_end[Size(rank - 1)];
}

// Reductions of a chunk begin with its last pass, and go one after another; of the chunk that ends
// last the last bucket is full when that pass ends. Seconds behind it.
double PlayedTrailing(const Plan& plan, int rank, const CompiledOrder& order, const Workspace& w) {
  const std::int32_t* const last = &order.chunk_last[Size(rank * plan.chunks)];
  const double* const late = &w.chunk_late[Size(rank * plan.chunks)];
  const std::int32_t end = *std::max_element(last, last + plan.chunks);
  double stream = 0;
  std::int32_t done = -1;
  while (done < end) {
    std::int32_t event = end;  // events of a rank are in its order of work
    for (int i = 0; i < plan.chunks; ++i) {
      if (last[i] > done) event = std::min(event, last[i]);
    }
    done = event;
    const double seconds = late[std::find(last, last + plan.chunks, event) - last];
    const double waits = event == end ? std::min(w.bucket[Size(rank)], seconds) : 0;
    const double ends = w.ends[Size(event)];
    const double begins = ends - w.stage_cost[order.events[Size(event)].cost];
    if (seconds > waits) stream = std::max(stream, begins) + seconds - waits;
    if (waits > 0) stream = std::max(stream, ends) + waits;
  }
  return std::max(0.0, stream - w.finish[Size(rank)]);
}

// And as much of each chunk is in flight.
bool HoldsAsMuch(const Plan& plan, int rank, const CompiledOrder* order) {
  if (order == nullptr) return true;
  const std::int32_t* const held = &order->in_flight[Size(rank * plan.chunks)];
  return std::equal(held, held + plan.chunks, held - plan.chunks) &&
         (order->states.empty() || order->states[Size(rank)] == order->states[Size(rank - 1)]);
}

// The same with its parts, for the one rank that is reported.
void Parts(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order,
           double prefetch, const Workspace& w, StageSum& sum) {
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = StageOf(plan, rank, chunk, order);
    const double before = sum.work.Slot();
    AddStage(c, plan, stage, chunk == 0, w, sum);
    if (prefetch > 0) HideInSlot(prefetch, sum.work.Slot() - before, sum.work);
  }
  const double copies = CopiesSeconds(c, plan, rank, order, w);
  (c.exposed_transfers ? sum.work.step_exposed
                       : sum.work.step_hidden)[Index(AxisRole::kPipeline)] += copies;
  const double late = Sum(sum.trailing), behind = w.behind[Size(rank)];
  const double shown = behind + (1 - c.overlap_share) * (late - behind);
  for (std::size_t r = 0; r < kAxisRoles && late > 0; ++r) {
    sum.work.step_exposed[r] += sum.trailing[r] / late * shown;
    sum.work.step_hidden[r] += sum.trailing[r] / late * (late - shown);
  }
}

// One micro-batch per slot, equal on all ranks: the schedule's closed form is exact.
double EqualMakespan(const Plan& plan, const CompiledOrder& order, double slots,
                     const Workspace& w) {
  if (slots < 0) return -1;
  for (int s = 1; s < order.stages; ++s) {
    for (const std::size_t kind : {kF, kB}) {
      if (w.stage_cost[Size(s) * 4 + kind] != w.stage_cost[kind]) return -1;
    }
  }
  return slots * plan.chunks * (w.stage_cost[kF] + w.stage_cost[kB]);
}

// The classroom has one time for a micro-batch's whole work on a stage: F : I : W = 1 : 1 : 1.
void SplitEvenly(const CompiledOrder& order, Workspace& w) {
  for (std::size_t at = 0; at < order.ZeroCost(); at += 4) {
    double* const cost = &w.stage_cost[at];
    const double third = (cost[kF] + cost[kB]) / 3;
    cost[kF] = cost[kI] = cost[kW] = third;
    cost[kB] = 2 * third;
  }
}

absl::Span<const double> PairsHide(const Composition& c, const CompiledOrder* order,
                                   const Workspace& w) {
  return PairsOverlap(c, order) ? absl::MakeConstSpan(w.pair_hidden) : absl::Span<const double>();
}

// What the order takes at the least, and then what its ranks do at the end of the step.
double LeastStep(const Composition& c, const Plan& plan, const CompiledOrder* order, double hop,
                 bool travels, Workspace& w) {
  const double passes = plan.micro_batches / w.copies;
  const auto behind = [&w](int r) { return w.step_end[Size(r)] + w.update[Size(r)]; };
  double step = 0;
  const bool pairs = PairsOverlap(c, order);
  if (order == nullptr || pairs || !order->pairs.empty()) {
    // No rank ends before all of its own work is done. An outline does not say which of it is in
    // pairs: any of what they may hide is left out.
    for (int r = 0; r < plan.pipeline; ++r) {
      const double hidden = !pairs                 ? 0
                            : order->pairs.empty() ? passes * PairTraffic(plan, r, *order, w)
                                                   : w.hidden_in_pairs[Size(r)];
      step = std::max(step, passes * w.slot[Size(r)] - hidden + behind(r));
    }
    return step;
  }
  const bool thirds = c.rules.equal_passes &&
                      c.schedule->EqualSlots({plan.pipeline, plan.chunks, plan.micro_batches}) < 0;
  const auto seconds = [&](int stage) -> PassSeconds {
    const double* const cost = &w.stage_cost[Size(stage) * 4];
    if (!travels) {
      const double third = (cost[kF] + cost[kB]) / 3;
      return thirds ? PassSeconds{third, third, third} : PassSeconds{cost[kF], cost[kI], cost[kW]};
    }
    const auto takes = [&](std::size_t kind) {
      const PassCost& pass = w.passes[Size(stage) * 4 + kind];
      return pass.lead + pass.body;
    };
    if (!order->splits_backward) return {takes(kF), takes(kB), 0};
    // Some of its backward passes may be whole.
    const double input = std::min(takes(kI), takes(kB));
    return {takes(kF), input, std::min(takes(kI) + takes(kW), takes(kB)) - input};
  };
  const double drained = LeastFinish({plan.pipeline, plan.chunks, order->stages,
                                      order->stage_of.data(), passes, order->splits_backward, hop},
                                     seconds, &w.fill_and_drain);
  const std::vector<double>& finish = w.fill_and_drain.finish;
  const double latest =
      std::max(drained, *std::max_element(finish.begin(), finish.begin() + plan.pipeline));
  for (int r = 0; r < plan.pipeline; ++r) {
    const bool last = c.rules.reductions_after_pipeline;
    step = std::max(step, (last ? latest : finish[Size(r)]) + behind(r));
  }
  if (order->copies > 1) return std::max(step, drained);
  return std::max(step, drained + behind(w.fill_and_drain.rank_of[0]));
}

double PlayPipeline(const Composition& c, const Plan& plan, const CompiledOrder* order, double hop,
                    Workspace& w) {
  if (plan.pipeline == 1) {
    w.finish[0] = plan.micro_batches * w.slot[0];
    return w.finish[0];
  }
  const double slots = c.schedule->EqualSlots({plan.pipeline, plan.chunks, plan.micro_batches});
  if (slots < 0 && c.rules.equal_passes) SplitEvenly(*order, w);
  AddPairCosts(*order, absl::MakeSpan(w.stage_cost), PairsHide(c, order, w));
  const double equal = hop == 0 ? EqualMakespan(plan, *order, slots, w) : -1;
  if (equal >= 0 && c.rules.reductions_after_pipeline) {
    for (int r = 0; r < plan.pipeline; ++r) w.finish[Size(r)] = equal;
    return equal;
  }
  PlayToEnd(*order, w.stage_cost, hop, absl::MakeSpan(w.ends));
  double makespan = 0;
  for (int r = 0; r < plan.pipeline; ++r) {
    w.finish[Size(r)] = w.ends[Size(order->last[Size(r)])];
    makespan = std::max(makespan, w.finish[Size(r)]);
  }
  return makespan;
}

}  // namespace

void Workspace::Reserve(const Plan& plan, const CompiledOrder* order) {
  const std::size_t ranks = Size(plan.pipeline);
  if (memory.size() < ranks) {
    memory.resize(ranks);
    finish.resize(ranks);
    slot.resize(ranks);
    trailing.resize(ranks);
    behind.resize(ranks);
    bucket.resize(ranks);
    playing.resize(ranks);
    step_end.resize(ranks);
    update.resize(ranks);
  }
  if (order != nullptr) fill_and_drain.Reserve(ranks, Size(order->stages));
  const std::size_t cost = order == nullptr ? ranks * Size(plan.chunks) * 4 : order->CostCount();
  if (chunk_bytes.size() < 3 * Size(plan.chunks)) chunk_bytes.resize(3 * Size(plan.chunks));
  if (chunk_late.size() < ranks * Size(plan.chunks)) chunk_late.resize(ranks * Size(plan.chunks));
  if (stage_cost.size() < cost) {
    stage_cost.resize(cost);
    passes.resize(cost);
  }
  if (hidden_in_pairs.size() < ranks) hidden_in_pairs.resize(ranks);
  if (order != nullptr) {
    if (pair_traffic.size() < 2 * Size(order->stages)) pair_traffic.resize(2 * Size(order->stages));
    if (pair_hidden.size() < order->pairs.size()) pair_hidden.resize(order->pairs.size());
  }
  if (order != nullptr && ends.size() < order->events.size()) ends.resize(order->events.size());
}

Span CopiesSpan(const CompiledOrder& order, const Workspace& w) noexcept {
  Span span = w.spans.PipelineHop();
  // Two copies may be as far apart as two neighbours; more of them share no domain that two do not.
  const bool together = span.domains[0] == 1;
  span.size = order.copies;
  for (std::size_t tier = 0; tier < span.ranks.size(); ++tier) {
    if (span.ranks[tier] > 1) span.ranks[tier] = order.copies;
    if (!together && span.domains[tier] > 1) span.domains[tier] = order.copies;
  }
  return span;
}

double CopiedBytes(const Composition& c, const Plan& plan, int rank, const CompiledOrder& order,
                   const Workspace& w) noexcept {
  double bytes = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = order.stage_of[Size(rank * plan.chunks + chunk)];
    for (std::size_t k = 0; k < c.form.classes.size(); ++k)
      bytes += LayersOn(c, plan, stage, k) * w.costs[k].bytes[Index(Account::kGradients)];
  }
  return bytes;
}

double HopSeconds(const Composition& c, const Workspace& w) noexcept {
  return c.network
      ->TransferTime({Collective::kSendRecv, Bytes(w.blocks[c.form.boundary])},
                     w.spans.PipelineHop())
      .value();
}

Evaluation Evaluate(const Composition& c, const Plan& plan, const CompiledOrder* order,
                    Workspace& w, bool hops) noexcept {
  w.spans.Set(plan);
  w.copies = order == nullptr ? 1 : order->copies;
  const bool uniform = w.spans.Uniform();
  if (!w.keeps_costs || !uniform) ComputeCosts(c, plan, 0, w);
  const auto costs_of = [&](int rank) {
    if (!uniform) ComputeCosts(c, plan, rank, w);
  };

  double prefetch = 0;
  for (int r = 0; r < plan.pipeline && c.rules.prefetch_hides_in_slot; ++r) {
    costs_of(r);
    prefetch = std::max(prefetch, LargestPrefetch(c, plan, r, order, w));
  }
  const bool travels = Travels(c, w), pairs = PairsOverlap(c, order);
  Evaluation e;
  e.capacity = c.hardware->machine().memory.value();
  for (int r = 0; r < plan.pipeline; ++r) {
    RankMemory& memory = w.memory[Size(r)];
    if (!w.keeps_ranks) {
      costs_of(r);
      const bool again = uniform && r > 0 && AsTheOneBefore(c, plan, r, order);
      if (again) {
        TimeAgain(plan, r, order, travels, w);
      } else {
        w.step_end[Size(r)] = Time(c, plan, r, order, prefetch, travels, w);
      }
      if (pairs) AddPairTraffic(c, plan, r, *order, w);
      if (again && HoldsAsMuch(plan, r, order)) {
        memory = w.memory[Size(r - 1)];
      } else {
        FillMemory(c, plan, r, order, w, memory);
      }
      w.update[Size(r)] = again ? w.update[Size(r - 1)] : OptimizerSeconds(c, memory);
    }
    if (memory.total > e.peak) {
      e.peak = memory.total;
      e.worst_rank = r;
    }
  }
  if (c.form.on_host) {
    e.host_capacity = c.hardware->machine().host_memory.value();
    for (int r = 0; r < plan.pipeline; ++r)
      e.host_peak = std::max(e.host_peak, w.memory[Size(r)].host);
  }
  e.fits = e.peak <= e.capacity && (e.host_capacity == 0 || e.host_peak <= e.host_capacity);
  if (e.peak > w.most_bytes) {
    e.stopped = Stopped::kMemory;
    return e;
  }
  const double hop = hops && plan.pipeline > 1 && c.exposed_transfers ? HopSeconds(c, w) : 0;
  std::fill_n(w.hidden_in_pairs.begin(), plan.pipeline, 0.0);
  if (pairs) FillPairs(c, plan, *order, w);
  if (w.most_seconds < std::numeric_limits<double>::infinity()) {
    e.step = kRounding * LeastStep(c, plan, order, hop, travels, w);
    if (e.step > w.most_seconds) {
      e.stopped = Stopped::kTime;
      return e;
    }
    e.step = 0;
  }
  if (!w.plays) {
    e.stopped = Stopped::kUnplayed;
    return e;
  }

  e.pipeline = travels ? PlayTravelling(plan, order, hop, w, PairsHide(c, order, w))
                       : PlayPipeline(c, plan, order, hop, w);
  for (int r = 0; r < plan.pipeline; ++r) {
    const double optimizer = w.update[Size(r)];
    const double begin = c.rules.reductions_after_pipeline ? e.pipeline : w.finish[Size(r)];
    // The last pass's own reductions, and those of the step, travel side by side.
    const PlayingRank& playing = w.playing[Size(r)];
    const double tail = travels ? std::max(0.0, playing.tail_end - playing.free) : 0;
    const bool played = order != nullptr && !order->chunk_last.empty() && !travels &&
                        !c.rules.reductions_after_pipeline;
    w.behind[Size(r)] = played ? PlayedTrailing(plan, r, *order, w) : w.trailing[Size(r)];
    // What hides slows down the pass that hides it.
    const double slower = (1 - c.overlap_share) * (w.trailing[Size(r)] - w.behind[Size(r)]);
    const double end =
        begin + std::max(w.behind[Size(r)], tail) + w.step_end[Size(r)] + slower + optimizer;
    if (r > 0 && end <= e.step) continue;
    e.step = end;
    e.time_rank = r;
    e.time.optimizer = optimizer;
  }
  costs_of(e.time_rank);
  StageSum sum;
  Parts(c, plan, e.time_rank, order, prefetch, w, sum);
  const RankWork& work = sum.work;
  const int passes = plan.micro_batches / w.copies;  // that each of a rank's stages sees
  const double m = passes;
  e.time.forward = m * work.forward;
  e.time.backward = m * work.backward;
  e.time.recompute = m * work.recompute;
  for (std::size_t r = 0; r < kAxisRoles; ++r) {
    e.time.exposed[r] =
        m * (work.exposed_forward[r] + work.exposed_backward[r]) + work.step_exposed[r];
    e.time.hidden[r] = m * work.hidden[r] + work.step_hidden[r];
  }
  if (pairs) {
    const auto hidden = HiddenInPairs(c, plan, e.time_rank, *order, w);
    for (const std::uint8_t r : c.form.roles) {
      e.time.exposed[r] -= hidden[r];
      e.time.hidden[r] += hidden[r];
    }
  }
  if (travels) {
    const PlayingRank& rank = w.playing[Size(e.time_rank)];
    const double tail = std::max(0.0, rank.tail_end - rank.free - w.behind[Size(e.time_rank)]);
    const std::size_t data = Index(AxisRole::kData);
    // What the passes took beyond their own work.
    const double own = m * w.slot[Size(e.time_rank)] - w.hidden_in_pairs[Size(e.time_rank)];
    const double shown = std::max(0.0, rank.busy - own) + tail;
    e.time.exposed[data] += shown;
    e.time.hidden[data] += std::max(0.0, m * work.travelling - shown);
  }
  const double busy =
      e.time.forward + e.time.backward + e.time.recompute + e.time.optimizer + Sum(e.time.exposed);
  // What is left of sums of many terms is rounding, not idleness.
  e.time.bubble = e.step - busy > 1e-12 * e.step ? e.step - busy : 0;
  e.approximate = c.form.copies_overlap;
  for (const std::uint8_t mask : c.form.overlapping) e.approximate |= w.degrees[mask] > 1;
  return e;
}

}  // namespace shardlab
