#include "core/evaluate.h"

#include <algorithm>
#include <cmath>

namespace shardlab {
namespace {

constexpr std::size_t kF = 0, kI = 1, kW = 2, kB = 3;  // as WorkKind

std::size_t Index(AxisRole role) { return static_cast<std::size_t>(role); }
std::size_t Index(Account account) { return static_cast<std::size_t>(account); }
std::size_t Size(int n) { return static_cast<std::size_t>(n); }

template <std::size_t N>
double Sum(const std::array<double, N>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

void FillSizes(const Composition& c, const Plan& plan, Workspace& w) {
  const Form& form = c.form;
  for (std::size_t i = 0; i < form.masks.size(); ++i) w.degrees[i] = plan.Size(form.masks[i]);
  const double replicas = plan.Size(form.batch_atoms);
  for (std::size_t i = 0; i < form.locals.size(); ++i) {
    const LocalSize& local = form.locals[i];
    const double whole = local.batch ? plan.micro_batch_size * replicas : local.size;
    const double cut = whole / w.degrees[local.mask];
    w.locals[i] = c.rules.ceiling_division ? std::ceil(cut) : cut;
  }
  for (std::size_t i = 0; i < form.blocks.size(); ++i) {
    const Block& block = form.blocks[i];
    double bytes = block.coefficient;
    for (std::uint8_t d = 0; d < block.count; ++d) bytes *= w.locals[block.local[d]];
    w.blocks[i] = bytes / w.degrees[block.flat];
  }
}

void AddMemory(const Composition& c, Workspace& w) {
  for (const StateRow& row : c.form.state) {
    w.costs[row.layer_class].bytes[Index(row.account)] += w.blocks[row.block];
  }
  for (const SavedRow& row : c.form.saved) {
    ClassCosts& cost = w.costs[row.layer_class];
    const double bytes = w.blocks[row.block];
    switch (row.residency) {
      case Residency::kKept: cost.kept += bytes; break;
      case Residency::kBoundary: cost.boundary += bytes; break;
      case Residency::kReplayed: (row.of_inner_layers ? cost.replayed_inner : cost.replayed) += bytes; break;
    }
  }
}

void AddOps(const Composition& c, Workspace& w) {
  for (const OpRow& row : c.form.ops) {
    ClassCosts& cost = w.costs[row.layer_class];
    const double seconds = c.hardware->OpTime(ShapeOf(c, row, w)).value();
    switch (row.bucket) {
      case Bucket::kForward: cost.forward += seconds; break;
      case Bucket::kReplay: cost.replay += seconds; break;
      case Bucket::kInputGradient: cost.input_gradient += seconds; break;
      case Bucket::kWeightGradient: cost.weight_gradient += seconds; break;
    }
  }
}

void AddTransfer(const Composition& c, const Plan& plan, const TransferRow& row, double seconds, ClassCosts& cost) {
  const std::size_t role = Index(row.role);
  const bool blocks = row.hide == HideBehind::kNothing && row.phase == Phase::kReduce;
  if (c.rules.reductions_after_pipeline && blocks && row.when == When::kMicroBatch) {
    // Counted after the pipeline, once for each micro-batch, and not stretched by its bubble.
    cost.step_blocking[role] += plan.micro_batches * seconds;
    return;
  }
  if (row.when == When::kStep) {
    switch (row.hide) {
      case HideBehind::kLastBackward: cost.step_trailing[role] += seconds; break;
      case HideBehind::kIgnored: cost.step_ignored[role] += seconds; break;
      default: cost.step_blocking[role] += seconds; break;
    }
    return;
  }
  const bool forward = row.phase == Phase::kForward;
  switch (row.hide) {
    case HideBehind::kPrefetch:
      (forward ? cost.gather_forward : row.phase == Phase::kReduce ? cost.scatter : cost.gather_backward) += seconds;
      return;
    case HideBehind::kIgnored: cost.hidden[role] += seconds; return;
    // A reduction of each micro-batch trails behind that micro-batch's backward pass as the last one does.
    case HideBehind::kLastBackward: cost.scatter += seconds; return;
    case HideBehind::kShare:
      cost.hidden[role] += row.share * seconds;
      seconds -= row.share * seconds;
      break;
    case HideBehind::kNothing: break;
  }
  (forward ? cost.blocking_forward : cost.blocking_backward)[role] += seconds;
}

void AddTransfers(const Composition& c, const Plan& plan, Workspace& w) {
  for (const TransferRow& row : c.form.transfers) {
    if (w.degrees[row.mask] <= 1) continue;
    AddTransfer(c, plan, row, TransferSeconds(c, row, w), w.costs[row.layer_class]);
  }
}

// What one pipeline rank does for one micro-batch, and at the end of the step.
struct RankWork {
  double forward = 0, backward = 0, recompute = 0;  // compute
  std::array<double, kAxisRoles> exposed_forward{}, exposed_backward{}, hidden{};
  std::array<double, kAxisRoles> step_exposed{}, step_hidden{};
  double SlotForward() const { return forward + Sum(exposed_forward); }
  double SlotBackward() const { return backward + recompute + Sum(exposed_backward); }
};

void AddScaled(std::array<double, kAxisRoles>& to, const std::array<double, kAxisRoles>& from, double n) {
  for (std::size_t r = 0; r < kAxisRoles; ++r) to[r] += n * from[r];
}

// Gathers one block ahead and reductions one block behind, hidden under the compute of the neighbouring blocks.
void AddPrefetched(const AccountingRules& rules, const ClassCosts& cost, double n, RankWork& work) {
  const double gather_f = cost.gather_forward, behind = cost.gather_backward + cost.scatter;
  if (gather_f + behind == 0 || rules.prefetch_hides_in_slot) return;
  const std::size_t data = Index(AxisRole::kData);
  const double forward = cost.forward + Sum(cost.blocking_forward);
  const double backward =
      cost.input_gradient + cost.weight_gradient + cost.replay + Sum(cost.blocking_backward);
  // The first gather of a pass has nothing before it and the last reduction nothing behind it.
  const double shown_f = n * std::max(0.0, gather_f - forward) + std::min(gather_f, forward);
  const double shown_b = n * std::max(0.0, behind - backward) + std::min(std::max(cost.gather_backward, cost.scatter), backward);
  work.exposed_forward[data] += shown_f;
  work.exposed_backward[data] += shown_b;
  work.hidden[data] += n * (gather_f + behind) - shown_f - shown_b;
}

// The classroom's rule: per micro-batch the longer of (compute and blocking traffic) and (gathers and reduction).
void HideInSlot(double prefetched, RankWork& work) {
  const double slot = work.SlotForward() + work.SlotBackward();
  const double shown = std::max(0.0, prefetched - slot);
  work.exposed_backward[Index(AxisRole::kData)] += shown;
  work.hidden[Index(AxisRole::kData)] += prefetched - shown;
}

struct StageSum {
  RankWork work;
  double blocks = 0;  // layers
  std::array<double, kAxisRoles> trailing{};
};

void AddStage(const Composition& c, const Plan& plan, int stage, const Workspace& w, StageSum& sum) {
  for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
    const double n = LayersOn(c, plan, stage, k);
    if (n == 0) continue;
    const ClassCosts& cost = w.costs[k];
    RankWork& work = sum.work;
    work.forward += n * cost.forward;
    work.backward += n * (cost.input_gradient + cost.weight_gradient);
    work.recompute += n * cost.replay;
    AddScaled(work.exposed_forward, cost.blocking_forward, n);
    AddScaled(work.exposed_backward, cost.blocking_backward, n);
    AddScaled(work.hidden, cost.hidden, n);
    AddScaled(work.step_exposed, cost.step_blocking, n);
    AddScaled(work.step_hidden, cost.step_ignored, n);
    AddScaled(sum.trailing, cost.step_trailing, n);
    AddPrefetched(c.rules, cost, n, work);
    if (c.form.classes[k].position == StagePosition::kLayer) sum.blocks += n;
  }
}

// Splits what trails behind the last backward pass: all but the last block's share hides while that pass lasts.
void SettleTrailing(StageSum& sum) {
  RankWork& work = sum.work;
  const double total = Sum(sum.trailing);
  if (total <= 0) return;
  const double cover = work.SlotBackward();
  const double shown = std::max(total / std::max(1.0, sum.blocks), total - cover);
  for (std::size_t r = 0; r < kAxisRoles; ++r) {
    const double part = sum.trailing[r] / total;
    work.step_exposed[r] += part * shown;
    work.step_hidden[r] += part * (total - shown);
  }
}

int StageOf(const Plan& plan, int rank, int chunk, const CompiledOrder* order) {
  const int slot = rank * plan.chunks + chunk;
  return order == nullptr ? slot : order->stage_of[Size(slot)];
}

// The classroom takes the largest gathers and reductions of any stage for all of them.
double LargestPrefetch(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order, const Workspace& w) {
  double largest = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    double stage = 0;
    for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
      const ClassCosts& cost = w.costs[k];
      stage += LayersOn(c, plan, StageOf(plan, rank, chunk, order), k) *
               (cost.gather_forward + cost.gather_backward + cost.scatter);
    }
    largest = std::max(largest, stage);
  }
  return largest;
}

StageSum WorkOf(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order, double prefetch, Workspace& w) {
  StageSum sum;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = StageOf(plan, rank, chunk, order);
    StageSum one;
    AddStage(c, plan, stage, w, one);
    if (c.rules.prefetch_hides_in_slot && prefetch > 0) HideInSlot(prefetch, one.work);
    double* cost = &w.stage_cost[Size(stage) * 4];
    cost[kF] = one.work.SlotForward();
    cost[kB] = one.work.SlotBackward();
    // A split backward: recomputation and blocking traffic belong to the input gradient.
    double weights = 0;
    for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
      weights += LayersOn(c, plan, stage, k) * w.costs[k].weight_gradient;
    }
    cost[kW] = weights;
    cost[kI] = cost[kB] - weights;
    sum.work.forward += one.work.forward;
    sum.work.backward += one.work.backward;
    sum.work.recompute += one.work.recompute;
    AddScaled(sum.work.exposed_forward, one.work.exposed_forward, 1);
    AddScaled(sum.work.exposed_backward, one.work.exposed_backward, 1);
    AddScaled(sum.work.hidden, one.work.hidden, 1);
    AddScaled(sum.work.step_exposed, one.work.step_exposed, 1);
    AddScaled(sum.work.step_hidden, one.work.step_hidden, 1);
    AddScaled(sum.trailing, one.trailing, 1);
    sum.blocks += one.blocks;
  }
  SettleTrailing(sum);
  return sum;
}

RankMemory MemoryOf(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order, const Workspace& w) {
  RankMemory memory;
  double working = 0, kept = 0, in_flight = 0, gathered = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = StageOf(plan, rank, chunk, order);
    const double held = order == nullptr ? 1 : order->in_flight[Size(rank * plan.chunks + chunk)];
    in_flight += held;
    for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
      const double n = LayersOn(c, plan, stage, k);
      if (n == 0) continue;
      const ClassCosts& cost = w.costs[k];
      for (const Account account : {Account::kParameters, Account::kGradients, Account::kOptimizer}) {
        memory.bytes[Index(account)] += n * cost.bytes[Index(account)];
      }
      gathered = std::max(gathered, cost.bytes[Index(Account::kGathered)]);
      const double segment = c.form.classes[k].segment;
      kept += held * (n * cost.kept + std::ceil(n / segment) * cost.boundary);
      const double together = std::min(n, segment);
      working = std::max(working, together * cost.replayed + (together - 1) * cost.replayed_inner);
    }
  }
  memory.in_flight = in_flight / plan.chunks;
  memory.bytes[Index(Account::kActivations)] = kept + working;
  // One block in use and one gathered ahead.
  if (c.rules.count_gathered) memory.bytes[Index(Account::kGathered)] = 2 * gathered;
  const Machine& machine = c.hardware->machine();
  memory.bytes[Index(Account::kFragmentation)] = machine.fragmentation * Sum(memory.bytes);
  memory.bytes[Index(Account::kOutsideAllocator)] = machine.outside_allocator.value();
  memory.total = Sum(memory.bytes);
  return memory;
}

// One micro-batch per slot, equal on all ranks: the schedule's closed form is exact.
double EqualMakespan(const Composition& c, const Plan& plan, const Workspace& w) {
  if (c.schedule == nullptr) return -1;
  const int stages = plan.pipeline * plan.chunks;
  for (int s = 1; s < stages; ++s) {
    for (const std::size_t kind : {kF, kB}) {
      if (w.stage_cost[Size(s) * 4 + kind] != w.stage_cost[kind]) return -1;
    }
  }
  const double slots = c.schedule->EqualSlots({plan.pipeline, plan.chunks, plan.micro_batches});
  return slots < 0 ? -1 : slots * plan.chunks * (w.stage_cost[kF] + w.stage_cost[kB]);
}

double PlayPipeline(const Composition& c, const Plan& plan, const CompiledOrder* order, double hop, Workspace& w) {
  if (plan.pipeline == 1) {
    w.finish[0] = plan.micro_batches * w.slot[0];
    return w.finish[0];
  }
  const double equal = hop == 0 ? EqualMakespan(c, plan, w) : -1;
  if (equal >= 0 && c.rules.reductions_after_pipeline) {
    for (int r = 0; r < plan.pipeline; ++r) w.finish[Size(r)] = equal;
    return equal;
  }
  PlayOrder(*order, w.stage_cost, hop, absl::MakeSpan(w.ends));
  double makespan = 0;
  for (int r = 0; r < plan.pipeline; ++r) {
    w.finish[Size(r)] = w.ends[Size(order->last[Size(r)])];
    makespan = std::max(makespan, w.finish[Size(r)]);
  }
  return makespan;
}

bool Overlaps(const Composition& c) {
  return std::any_of(c.form.transfers.begin(), c.form.transfers.end(), [&](const TransferRow& t) {
    return t.hide == HideBehind::kLastBackward || (t.hide == HideBehind::kPrefetch && !c.rules.prefetch_hides_in_slot);
  });
}

}  // namespace

Workspace::Workspace(const Composition& c)
    : spans(c.edited.mesh, c.hardware->machine().tiers),
      degrees(c.form.masks.size()),
      locals(c.form.locals.size()),
      blocks(c.form.blocks.size()),
      span_of(c.form.masks.size()),
      costs(c.form.classes.size()) {}

void Workspace::Reserve(const Plan& plan, const CompiledOrder* order) {
  const std::size_t ranks = Size(plan.pipeline);
  if (memory.size() < ranks) {
    memory.resize(ranks);
    finish.resize(ranks);
    slot.resize(ranks);
  }
  if (stage_cost.size() < ranks * Size(plan.chunks) * 4) stage_cost.resize(ranks * Size(plan.chunks) * 4);
  if (order != nullptr && ends.size() < order->events.size()) ends.resize(order->events.size());
}

double LayersOn(const Composition& c, const Plan& plan, int stage, std::size_t layer_class) {
  const Form::ClassRow& row = c.form.classes[layer_class];
  const int stages = plan.pipeline * plan.chunks;
  switch (row.position) {
    case StagePosition::kFirst: return stage == 0 ? 1 : 0;
    case StagePosition::kLast: return stage == stages - 1 ? 1 : 0;
    case StagePosition::kSpread: return 1.0 / stages;
    case StagePosition::kLayer: break;
  }
  // Classes of layers follow one another; a stage holds a run of the whole sequence.
  const std::vector<int>& split = c.splits[Size(plan.split)];
  int begin = 0, first = 0;
  for (int s = 0; s < stage; ++s) begin += split[Size(s)];
  for (std::size_t k = 0; k < layer_class; ++k) {
    if (c.form.classes[k].position == StagePosition::kLayer) first += c.form.classes[k].repeat;
  }
  const int low = std::max(begin, first), high = std::min(begin + split[Size(stage)], first + row.repeat);
  return std::max(0, high - low);
}

OpShape ShapeOf(const Composition& c, const OpRow& row, const Workspace& w) noexcept {
  OpShape shape;
  shape.kind = row.kind;
  shape.phase = row.phase;
  std::size_t at = 0;
  for (std::uint8_t i = 0; i < row.m; ++i) shape.m *= w.locals[row.local[at++]];
  for (std::uint8_t i = 0; i < row.n; ++i) shape.n *= w.locals[row.local[at++]];
  for (std::uint8_t i = 0; i < row.k; ++i) shape.k *= w.locals[row.local[at++]];
  shape.flops = row.flops * shape.m * shape.n * shape.k;
  for (std::uint8_t i = 0; i < row.bytes; ++i) shape.bytes += w.blocks[row.block[i]];
  shape.tokens = w.blocks[c.form.tokens];
  return shape;
}

double TransferSeconds(const Composition& c, const TransferRow& row, const Workspace& w) noexcept {
  return c.network->TransferTime({row.collective, Bytes(w.blocks[row.block])}, w.span_of[row.mask]).value();
}

double HopSeconds(const Composition& c, const Workspace& w) noexcept {
  return c.network->TransferTime({Collective::kSendRecv, Bytes(w.blocks[c.form.boundary])}, w.spans.PipelineHop()).value();
}

double OptimizerSeconds(const Composition& c, const RankMemory& memory) noexcept {
  if (!c.rules.count_optimizer_time) return 0;
  const double state = memory.bytes[Index(Account::kOptimizer)], gradients = memory.bytes[Index(Account::kGradients)];
  double width = 0;
  for (const OptimizerState& s : c.states) width += BytesPerElement(s.dtype) * s.per_parameter;
  const double updated = width > 0 ? state / width : 0;  // parameters that this rank updates
  OpShape shape;
  shape.kind = OpKind::kAdd;
  shape.phase = Phase::kUpdate;
  shape.m = updated;
  shape.flops = updated * c.optimizer->FlopsPerParameter();
  // State is read and written, the gradient read, the parameter written.
  shape.bytes = 2 * state + std::min(gradients, updated * BytesOf(c.precision, DtypeSlot::kGradients)) +
                updated * BytesOf(c.precision, DtypeSlot::kParameters);
  return c.hardware->OpTime(shape).value();
}

void ComputeCosts(const Composition& c, const Plan& plan, int pipeline_rank, Workspace& w) noexcept {
  FillSizes(c, plan, w);
  for (std::size_t i = 0; i < c.form.masks.size(); ++i) {
    if (w.degrees[i] > 1) w.span_of[i] = w.spans.Of(c.form.masks[i], pipeline_rank);
  }
  std::fill(w.costs.begin(), w.costs.end(), ClassCosts());
  AddMemory(c, w);
  AddOps(c, w);
  AddTransfers(c, plan, w);
}

Evaluation Evaluate(const Composition& c, const Plan& plan, const CompiledOrder* order, Workspace& w,
                    bool hops) noexcept {
  w.spans.Set(plan);
  bool uniform = true;
  for (const AtomMask mask : c.form.masks) uniform &= w.spans.Uniform(mask);

  Evaluation e;
  e.capacity = c.hardware->machine().memory.value();
  double prefetch = 0;
  const auto prepare = [&](int rank) {
    if (!uniform) ComputeCosts(c, plan, rank, w);
    return WorkOf(c, plan, rank, order, prefetch, w);
  };
  ComputeCosts(c, plan, 0, w);
  for (int r = 0; r < plan.pipeline && c.rules.prefetch_hides_in_slot; ++r) {
    if (!uniform) ComputeCosts(c, plan, r, w);
    prefetch = std::max(prefetch, LargestPrefetch(c, plan, r, order, w));
  }
  for (int r = 0; r < plan.pipeline; ++r) {
    const StageSum sum = prepare(r);
    w.slot[Size(r)] = sum.work.SlotForward() + sum.work.SlotBackward();
    w.memory[Size(r)] = MemoryOf(c, plan, r, order, w);
    if (w.memory[Size(r)].total > e.peak) {
      e.peak = w.memory[Size(r)].total;
      e.worst_rank = r;
    }
  }
  e.fits = e.peak <= e.capacity;

  const double hop = hops && plan.pipeline > 1 && c.exposed_transfers ? HopSeconds(c, w) : 0;
  e.pipeline = PlayPipeline(c, plan, order, hop, w);
  StageSum last;
  double last_optimizer = 0;
  for (int r = 0; r < plan.pipeline; ++r) {
    const StageSum sum = prepare(r);
    const double optimizer = OptimizerSeconds(c, w.memory[Size(r)]);
    const double begin = c.rules.reductions_after_pipeline ? e.pipeline : w.finish[Size(r)];
    const double end = begin + Sum(sum.work.step_exposed) + optimizer;
    if (r == 0 || end > e.step) {
      e.step = end;
      e.time_rank = r;
      last = sum;
      last_optimizer = optimizer;
    }
  }
  const double m = plan.micro_batches;
  e.time.forward = m * last.work.forward;
  e.time.backward = m * last.work.backward;
  e.time.recompute = m * last.work.recompute;
  e.time.optimizer = last_optimizer;
  for (std::size_t r = 0; r < kAxisRoles; ++r) {
    e.time.exposed[r] = m * (last.work.exposed_forward[r] + last.work.exposed_backward[r]) + last.work.step_exposed[r];
    e.time.hidden[r] = m * last.work.hidden[r] + last.work.step_hidden[r];
  }
  const double busy = e.time.forward + e.time.backward + e.time.recompute + e.time.optimizer + Sum(e.time.exposed);
  // What is left of sums of many terms is rounding, not idleness.
  e.time.bubble = e.step - busy > 1e-12 * e.step ? e.step - busy : 0;
  e.approximate = Overlaps(c);
  return e;
}

}  // namespace shardlab
