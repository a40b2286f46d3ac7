#pragma once
// What a rank holds while a step is played, and the optimizer's step on it.
//
//   RankHoldings holds = HoldingsOf(composition, plan, rank, prices, order);
//   TrackMemory(composition, holds, passes_of_rank, &simulated_rank);

#include <vector>

#include "core/simulate.h"

namespace shardlab {

struct ChunkHoldings {
  double held = 0;     // from the start of its forward to the end of its backward
  double pinned = 0;   // from the start of an input gradient to the end of its weight gradient
  double working = 0;  // while a whole backward runs
};

struct RankHoldings {
  std::array<double, kAccounts> fixed{};
  double updated = 0, update = 0;
  double host = 0, host_state = 0, host_updated = 0;
  std::vector<ChunkHoldings> chunks;
};

RankHoldings HoldingsOf(const Composition& composition, const Plan& plan, int rank,
                        const RankPrices& prices, const CompiledOrder* order);

// The optimizer's step, on the device and on its host.
double UpdateStep(const Composition& composition, const RankHoldings& holds);

// Fills the memory of the rank; `passes` are its own, in order.
void TrackMemory(const Composition& composition, const RankHoldings& holds,
                 const std::vector<const SimulatedPass*>& passes, SimulatedRank* rank);

}  // namespace shardlab
