#pragma once
// An overlapped pair (F+B): while the forward's collectives travel the backward computes, and the
// other way round, so that of both only the longer is seen (DeepSeek-V3 report, arXiv 2412.19437,
// section 3.2.1). Evaluate's part of it; only orders that hold pairs come here.
//
//   if (PairsOverlap(c, order)) { AddPairTraffic(c, plan, rank, *order, w); ... }
//   FillPairs(c, plan, *order, w);         // Workspace::pair_hidden, hidden_in_pairs
//   AddPairCosts(*order, costs, w.pair_hidden);

#include "core/evaluate.h"

namespace shardlab {

// The accounting overlaps pairs and the schedule may hold some.
bool PairsOverlap(const Composition& composition, const CompiledOrder* order) noexcept;

// Sets Workspace::pair_traffic of a rank's stages from the class costs: seconds of collectives in
// a forward and in a backward pass that nothing else hides.
void AddPairTraffic(const Composition& composition, const Plan& plan, int rank,
                    const CompiledOrder& order, Workspace& workspace) noexcept;

// The same of all of a rank's stages, forward and backward: no pairs hide more of a micro-batch.
double PairTraffic(const Plan& plan, int rank, const CompiledOrder& order,
                   const Workspace& workspace) noexcept;

// Of each kind of pair, and of each rank over the step, the seconds that are not seen. Needs the
// stages' costs and traffic.
void FillPairs(const Composition& composition, const Plan& plan, const CompiledOrder& order,
               Workspace& workspace) noexcept;

// The same of one rank by role of the traffic, from the class costs as they stand.
std::array<double, kAxisRoles> HiddenInPairs(const Composition& composition, const Plan& plan,
                                             int rank, const CompiledOrder& order,
                                             const Workspace& workspace) noexcept;

}  // namespace shardlab
