#pragma once
// Traffic that travels under compute while a pipeline plays: gathers of the blocks ahead and
// reductions of those behind. Evaluate's part of it, in closed form for each pass; only plans that
// have such traffic come here.
//
//   if (Travels(c, w)) {
//     FillPasses(c, plan, stage, first, w);   // for each stage
//     double makespan = PlayTravelling(plan, order, hop, w);
//   }
//
// The first gather of a pass is seen, each further one travels under the block before it, together
// with the reduction of the block before that. The last reduction goes on under what the rank does
// next: a message leaves when its pass ends, and the rank's next pass begins when the link is free.

#include "core/evaluate.h"

namespace shardlab {

// Something is gathered or reduced for each micro-batch, and may hide.
bool Travels(const Composition& composition, const Workspace& workspace) noexcept;

// Sets Workspace::passes of a stage from the class costs. `first`: the rank's first chunk, which
// has what a rank does once.
void FillPasses(const Composition& composition, const Plan& plan, int stage, bool first,
                Workspace& workspace) noexcept;

// Plays the passes in seconds, a message `hop` later at its receiver: fills Workspace::finish and
// playing of each rank and returns the latest finish. A repeating stretch is skipped as
// in PlayToEnd; the map is nonexpansive here too. `hidden`: as AddPairCosts'.
double PlayTravelling(const Plan& plan, const CompiledOrder* order, double hop,
                      Workspace& workspace, absl::Span<const double> hidden = {}) noexcept;

}  // namespace shardlab
