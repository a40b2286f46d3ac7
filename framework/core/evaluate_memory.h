#pragma once
// Evaluate's part of memory: what a rank holds, by account, and how long its optimizer works on it.
// OptimizerSeconds and its kin are declared in evaluate.h, for Explain.
//
//   RankMemory memory = MemoryOf(composition, plan, rank, order, workspace);   // costs are set

#include "core/evaluate.h"

namespace shardlab {

// Bytes. Uses the class costs and the chunks' scratch of the workspace.
RankMemory MemoryOf(const Composition& composition, const Plan& plan, int rank,
                    const CompiledOrder* order, Workspace& workspace) noexcept;

}  // namespace shardlab
