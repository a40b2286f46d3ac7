#pragma once
// Simulate: one step played event by event, on a compute stream, streams of collectives inside and
// between nodes, and messages between pipeline ranks. Evaluate adds up what this plays; the two
// share the rows of a Form and nothing else. Ranks of one pipeline rank do the same, so one of them
// is played.
//
//   Simulation s = Simulate(composition, plan, order, {});
//   for (const SimulatedPass& pass : s.passes) draw(pass.rank, pass.start, pass.end);
//
// Of a pass whose weights are gathered block by block: the first gather is seen, each further one
// travels under the block before it, with the reduction of the block before that; the last
// reduction goes on under what follows. Where nothing is hidden the step is Evaluate's; where
// something is, Evaluate has a formula for what this plays.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/simulate_prices.h"

namespace shardlab {

struct SimulateOptions {
  bool contention = false;      // traffic that meets on a port shares its rate
  bool blocking_sends = false;  // a rank goes on when its message is out
  double jitter = 0;            // standard deviation of a pass's time, as a share of it
  std::uint64_t seed = 1;
  std::vector<double> factors;  // [pipeline rank] how much slower it is; empty: none is
};

// One forward or backward pass of a chunk and micro-batch, or an overlapped pair of them.
struct SimulatedPass {
  int rank = 0;
  Work work;
  double start = 0;    // its input is there, and the rank is free
  double compute = 0;  // its first weights are there
  double end = 0;
  double tail = 0;   // its last reductions have gone through, on the stream of messages
  double scale = 1;  // against the prices: straggler and jitter
  std::int32_t forward_stage = -1, backward_stage = -1;
  double replay = 0;  // seconds of it that are recomputation
};

struct SimulatedMessage {
  std::int32_t from = 0, to = 0;  // into Simulation::passes
  bool forward = true;
  double start = 0, end = 0;
};

// What stands beside the passes: gathers ahead of them, reductions behind, the optimizer.
struct SimulatedTraffic {
  enum class Kind : std::uint8_t { kGather, kReduce, kBucket, kReduction, kCopies, kOptimizer };
  int rank = 0;
  Kind kind = Kind::kGather;
  Stream stream = Stream::kCompute;
  std::int32_t transfer = -1;  // row of the form
  double start = 0, end = 0;
};
const char* Name(SimulatedTraffic::Kind kind);

struct MemorySample {
  double at = 0, activations = 0;
};

struct SimulatedRank {
  double busy = 0, idle = 0, own_bubble = 0;           // of the whole step
  double finish = 0, end = 0;                          // of its last pass; of its optimizer step
  int peak_in_flight = 0, peak_in_flight_until_i = 0;  // chunks
  // Bytes by account that do not change during the step; those that do are in `samples`.
  std::array<double, kAccounts> fixed{};
  std::vector<MemorySample> samples;
  double peak = 0, peak_at = 0, peak_activations = 0;
};

struct Simulation {
  double makespan = 0;         // the step
  double pipeline = 0;         // until the last pass ends
  double bubble_fraction = 0;  // idle over makespan, mean of the ranks
  double hop = 0;              // seconds of a message
  bool hides = false;          // some traffic travels under compute
  bool contention = false;
  double contention_seconds = 0;  // that messages took longer for it, in sum
  int peak_rank = 0;
  std::vector<SimulatedRank> ranks;
  std::vector<SimulatedPass> passes;  // topological
  std::vector<SimulatedMessage> messages;
  std::vector<SimulatedTraffic> traffic;
  Stream send_tier = Stream::kIntraNode;  // what messages travel over

  // What the passes are made of.
  std::vector<RankPrices> prices;  // [rank], or one for all
  const RankPrices& PricesOf(int rank) const {
    return prices[prices.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
};

Simulation Simulate(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                    const SimulateOptions& options);

// Down to layers, ops and collectives: calls for each, in order.
struct PieceSlice {
  std::size_t layer_class = 0;  // behind the classes: what a rank does once; then: under the blocks
  int layer = 0;                // of this class, on the stage; below 0: gathers and reductions
  const Piece* piece = nullptr;
  double start = 0, end = 0;
};
void EachPiece(const Composition& composition, const Plan& plan, const Simulation& simulation,
               const SimulatedPass& pass, const std::function<void(const PieceSlice&)>& visit);

}  // namespace shardlab
