#include "core/evaluate_memory.h"

#include <algorithm>
#include <cmath>

namespace shardlab {
namespace {

constexpr std::size_t kKeptSlot = kAccounts, kBoundarySlot = kAccounts + 1,
                      kReplayedSlot = kAccounts + 2, kInnerSlot = kAccounts + 3;

std::size_t Index(Account account) { return static_cast<std::size_t>(account); }
std::size_t Size(int n) { return static_cast<std::size_t>(n); }

int StageOf(const Plan& plan, int rank, int chunk, const CompiledOrder* order) {
  const int slot = rank * plan.chunks + chunk;
  return order == nullptr ? slot : order->stage_of[Size(slot)];
}

double Sum(const std::array<double, kAccounts>& bytes) {
  double sum = 0;
  for (const double b : bytes) sum += b;
  return sum;
}

// Beyond what is kept: all that is recomputed of n layers, and the inputs of the layers inside the
// segments; or what the weight gradients need, where that is more.
double PinnedBytes(const Form::ClassRow& row, const ClassCosts& cost, double n, double keeps) {
  const double inner = row.replays ? n - std::ceil(n / row.segment) : 0;
  const double replayed = n * cost.bytes[kReplayedSlot] + inner * cost.bytes[kInnerSlot];
  return std::max(replayed, n * cost.bytes[kWaitingSlot] - keeps);
}

// The most activations at one time of a rank some of whose weight gradients wait, or whose chunks
// hold different amounts. What is most of each is so at different times: all states are looked at.
double MostHeld(const CompiledOrder& order, int rank, int chunks, const Workspace& w,
                RankMemory* memory) {
  const std::vector<std::int32_t>& states = order.states[Size(rank)];
  const std::size_t width = 3 * Size(chunks);
  double most = 0;
  for (std::size_t at = 0; at < states.size(); at += width) {
    double bytes = 0;
    for (std::size_t i = 0; i < width; ++i) bytes += states[at + i] * w.chunk_bytes[i];
    if (memory->state >= 0 && bytes <= most) continue;
    most = bytes;
    memory->state = static_cast<int>(at / width);
  }
  return most;
}

// Then most is held when most chunks are in flight.
bool ChunksAlike(const CompiledOrder& order, int chunks, const Workspace& w) {
  if (order.splits_backward) return false;
  const double* const first = w.chunk_bytes.data();
  for (int chunk = 1; chunk < chunks; ++chunk) {
    if (!std::equal(first, first + 3, first + 3 * chunk)) return false;
  }
  return true;
}

}  // namespace

void FillMemory(const Composition& c, const Plan& plan, int rank, const CompiledOrder* order,
                Workspace& w, RankMemory& memory) noexcept {
  memory = RankMemory();
  const bool pins = order != nullptr && !order->states.empty();
  double working = 0, kept = 0, in_flight = 0, gathered = 0, stays = 0;
  double unsharded = 0, buffer = 0, spare = 0;
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int stage = StageOf(plan, rank, chunk, order);
    const double held = order == nullptr ? 1 : order->in_flight[Size(rank * plan.chunks + chunk)];
    double* const bytes = w.chunk_bytes.data() + 3 * Size(chunk);
    if (pins) bytes[0] = bytes[1] = bytes[2] = 0;
    in_flight += held;
    for (std::size_t k = 0, classes = c.form.classes.size(); k < classes; ++k) {
      const double n = LayersOn(c, plan, stage, k);
      if (n == 0) continue;
      const ClassCosts& cost = w.costs[k];
      for (const Account account :
           {Account::kParameters, Account::kGradients, Account::kOptimizer}) {
        memory.bytes[Index(account)] += n * cost.bytes[Index(account)];
      }
      memory.updated += n * cost.bytes[kUpdatedSlot];
      memory.update += n * cost.update;
      if (c.form.on_host) {
        memory.host += n * cost.bytes[kHostSlot];
        memory.host_state += n * cost.bytes[kHostStateSlot];
        memory.host_updated += n * cost.bytes[kHostUpdatedSlot];
      }
      const Form::ClassRow& row = c.form.classes[k];
      // Those in use and those gathered ahead.
      gathered = std::max(gathered, (1 + row.ahead) * std::min<double>(row.unit, n) *
                                        cost.bytes[Index(Account::kGathered)]);
      stays += n * cost.bytes[kGatheredKeptSlot];
      unsharded = std::max(unsharded,
                           std::min<double>(row.unit, n) * cost.bytes[Index(Account::kTransient)]);
      buffer = std::max(buffer, cost.bytes[kBufferSlot]);
      double keeps = n * cost.bytes[kKeptSlot], works = cost.bytes[kReplayedSlot];
      if (row.replays) {
        keeps += std::ceil(n / row.segment) * cost.bytes[kBoundarySlot];
        const double together = std::min(n, static_cast<double>(row.segment));
        works = together * cost.bytes[kReplayedSlot] + (together - 1) * cost.bytes[kInnerSlot];
      }
      if (pins) {
        bytes[0] += keeps;
        bytes[1] += PinnedBytes(row, cost, n, keeps);
        bytes[2] = std::max(bytes[2], works);
      } else {
        kept += held * keeps;
        working = std::max(working, works);
      }
    }
  }
  for (std::size_t k = 0; c.form.spares && k < c.form.classes.size(); ++k) {
    double layers = 0;
    for (int chunk = 0; chunk < plan.chunks; ++chunk)
      layers += LayersOn(c, plan, StageOf(plan, rank, chunk, order), k);
    if (layers > 0) spare += w.costs[k].bytes[kSpareSlot];
  }
  memory.in_flight = in_flight / plan.chunks;
  memory.bytes[Index(Account::kActivations)] =
      !pins                                 ? kept + working
      : ChunksAlike(*order, plan.chunks, w) ? in_flight * w.chunk_bytes[0] + w.chunk_bytes[2]
                                            : MostHeld(*order, rank, plan.chunks, w, &memory);
  if (c.rules.count_gathered) {
    memory.bytes[Index(Account::kGathered)] = gathered + stays;
    const double bucket = c.form.buckets ? w.bucket_bytes : 0;
    memory.bytes[Index(Account::kTransient)] = unsharded + buffer + spare + bucket;
  }
  const Machine& machine = c.hardware->machine();
  memory.bytes[Index(Account::kFragmentation)] = machine.fragmentation * Sum(memory.bytes);
  memory.bytes[Index(Account::kOutsideAllocator)] = machine.outside_allocator.value();
  memory.total = Sum(memory.bytes);
}

double OptimizerSeconds(const Composition& c, const RankMemory& memory) noexcept {
  if (!c.rules.count_optimizer_time) return 0;
  const double state = memory.bytes[Index(Account::kOptimizer)], width = c.form.state_width;
  OpShape shape;
  shape.kind = OpKind::kAdd;
  shape.phase = Phase::kUpdate;
  // Parameters that this rank updates.
  shape.m = width > 0 ? state / width : memory.updated;
  shape.flops = shape.m * c.optimizer->FlopsPerParameter();
  // State is read and written, the gradient read, the parameter written.
  shape.bytes = 2 * state + shape.m * c.form.update_width;
  if (memory.host == 0) return c.hardware->OpTime(shape).value() + memory.update;
  return memory.update + (shape.m > 0 ? c.hardware->OpTime(shape).value() : 0) +
         HostOptimizerSeconds(c, memory);
}

double UpdateSeconds(const Composition& c, const UpdateRow& row, const Workspace& w) noexcept {
  OpShape shape;
  shape.kind = OpKind::kProduct;
  shape.phase = Phase::kUpdate;
  if (row.cast) {
    shape.bytes = w.blocks[row.rows];
    return c.hardware->OpTime(shape).value();
  }
  shape.m = w.blocks[row.rows];
  shape.n = w.blocks[row.columns];
  // The products of such a matrix with itself and with what comes of that.
  shape.k = std::min(shape.m, shape.n);
  shape.flops = c.optimizer->FlopsOfMatrix(row.kind, shape.m, shape.n);
  return w.blocks[row.matrices] * c.hardware->OpTime(shape).value();
}

double HostOptimizerSeconds(const Composition& c, const RankMemory& memory) noexcept {
  const double updated =
      c.form.state_width > 0 ? memory.host_state / c.form.state_width : memory.host_updated;
  return (2 * memory.host_state + updated * c.form.update_width) /
         c.hardware->machine().host_memory_bandwidth.value();
}

}  // namespace shardlab
