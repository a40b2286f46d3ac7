#include "core/simulate_memory.h"

#include <algorithm>
#include <cmath>

#include "core/simulate_pass.h"

namespace shardlab {
namespace {

constexpr std::size_t kKept = kAccounts, kBoundary = kAccounts + 1, kReplayed = kAccounts + 2,
                      kInner = kAccounts + 3;  // as MemoryTerm says

std::size_t At(Account account) { return static_cast<std::size_t>(account); }

ChunkHoldings ChunkOf(const Composition& c, const Plan& plan, int stage, const RankPrices& prices) {
  ChunkHoldings chunk;
  for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
    const double n = LayersOfClass(c, plan, stage, false, k);
    if (n == 0) continue;
    const auto& bytes = prices.layers[k].bytes;
    const Form::ClassRow& row = c.form.classes[k];
    double held = n * bytes[kKept], pinned = n * bytes[kReplayed], working = bytes[kReplayed];
    if (row.replays) {
      const double segments = std::ceil(n / row.segment);
      const double together = std::min<double>(n, row.segment);
      held += segments * bytes[kBoundary];
      pinned += (n - segments) * bytes[kInner];
      working = together * bytes[kReplayed] + (together - 1) * bytes[kInner];
    }
    chunk.held += held;
    // A weight gradient that waits needs inputs and gradients of outputs, whatever was saved.
    chunk.pinned += std::max(pinned, n * bytes[kWaitingSlot] - held);
    chunk.working = std::max(chunk.working, working);
  }
  return chunk;
}

}  // namespace

RankHoldings HoldingsOf(const Composition& c, const Plan& plan, int rank, const RankPrices& prices,
                        const CompiledOrder* order) {
  RankHoldings holds;
  double gathered = 0, stays = 0, unsharded = 0, buffer = 0, spare = 0;
  std::vector<bool> present(c.form.classes.size(), false);
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const auto slot = static_cast<std::size_t>(rank) * static_cast<std::size_t>(plan.chunks) +
                      static_cast<std::size_t>(chunk);
    const int stage = order == nullptr ? static_cast<int>(slot) : order->stage_of[slot];
    holds.chunks.push_back(ChunkOf(c, plan, stage, prices));
    for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
      const double n = LayersOfClass(c, plan, stage, false, k);
      if (n == 0) continue;
      const auto& bytes = prices.layers[k].bytes;
      const Form::ClassRow& row = c.form.classes[k];
      for (const Account account : {Account::kParameters, Account::kGradients, Account::kOptimizer})
        holds.fixed[At(account)] += n * bytes[At(account)];
      holds.updated += n * bytes[kUpdatedSlot];
      holds.update += n * prices.layers[k].update;
      holds.host += n * bytes[kHostSlot];
      holds.host_state += n * bytes[kHostStateSlot];
      holds.host_updated += n * bytes[kHostUpdatedSlot];
      const double unit = std::min<double>(row.unit, n);
      gathered = std::max(gathered, (1 + row.ahead) * unit * bytes[At(Account::kGathered)]);
      stays += n * bytes[kGatheredKeptSlot];
      unsharded = std::max(unsharded, unit * bytes[At(Account::kTransient)]);
      buffer = std::max(buffer, bytes[kBufferSlot]);
      if (!present[k]) spare += bytes[kSpareSlot];
      present[k] = true;
    }
  }
  if (c.rules.count_gathered) {
    holds.fixed[At(Account::kGathered)] = gathered + stays;
    holds.fixed[At(Account::kTransient)] = unsharded + buffer + spare + prices.bucket;
  }
  return holds;
}

double UpdateStep(const Composition& c, const RankHoldings& holds) {
  if (!c.rules.count_optimizer_time) return 0;
  const double width = c.form.state_width, state = holds.fixed[At(Account::kOptimizer)];
  const double updated = width > 0 ? state / width : holds.updated;
  OpShape shape;
  shape.kind = OpKind::kAdd;
  shape.phase = Phase::kUpdate;
  shape.m = updated;
  shape.flops = updated * c.optimizer->FlopsPerParameter();
  // State is read and written, the gradient read, the parameter written.
  shape.bytes = 2 * state + updated * c.form.update_width;
  double seconds = holds.update;
  if (holds.host == 0 || updated > 0) seconds += c.hardware->OpTime(shape).value();
  if (holds.host == 0) return seconds;
  const double there = width > 0 ? holds.host_state / width : holds.host_updated;
  return seconds + (2 * holds.host_state + there * c.form.update_width) /
                       c.hardware->machine().host_memory_bandwidth.value();
}

void TrackMemory(const Composition& c, const RankHoldings& holds,
                 const std::vector<const SimulatedPass*>& passes, SimulatedRank* rank) {
  rank->fixed = holds.fixed;
  double kept = 0, working = 0;
  int in_flight = 0, until_i = 0;
  const auto note = [&](double at) {
    const double now = kept + working;
    if (rank->samples.empty() || rank->samples.back().activations != now)
      rank->samples.push_back({at, now});
    if (now > rank->peak_activations) {
      rank->peak_activations = now;
      rank->peak_at = at;
    }
  };
  note(0);
  for (const SimulatedPass* pass : passes) {
    const Work& work = pass->work;
    const auto chunk = [&](int index) -> const ChunkHoldings& {
      return holds.chunks[static_cast<std::size_t>(index)];
    };
    const bool pair = work.kind == WorkKind::kFB;
    const ChunkHoldings& own = chunk(work.chunk);
    const ChunkHoldings& backward = pair ? chunk(work.backward_chunk) : own;
    if (pair || work.kind == WorkKind::kF) {
      kept += own.held;
      rank->peak_in_flight = std::max(rank->peak_in_flight, ++in_flight);
      rank->peak_in_flight_until_i = std::max(rank->peak_in_flight_until_i, ++until_i);
    }
    if (pair || work.kind == WorkKind::kB) working = backward.working;
    if (work.kind == WorkKind::kI) kept += own.pinned;
    note(pass->start);
    working = 0;
    switch (work.kind) {
      case WorkKind::kF:
        break;
      case WorkKind::kI:
        --until_i;
        break;
      case WorkKind::kW:
        kept -= own.held + own.pinned;
        --in_flight;
        break;
      default:
        kept -= backward.held;
        --in_flight;
        --until_i;
        break;
    }
    // What is left of sums of many terms is rounding.
    if (in_flight == 0) kept = 0;
    note(pass->end);
  }
  const Machine& machine = c.hardware->machine();
  double allocated = rank->peak_activations;
  for (const double bytes : rank->fixed) allocated += bytes;
  rank->fixed[At(Account::kFragmentation)] = machine.fragmentation * allocated;
  rank->fixed[At(Account::kOutsideAllocator)] = machine.outside_allocator.value();
  rank->peak = allocated * (1 + machine.fragmentation) + machine.outside_allocator.value();
}

}  // namespace shardlab
