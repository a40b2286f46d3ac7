#pragma once
// Evaluate's part of memory: what a rank holds, by account, and how long its optimizer works on it.
// OptimizerSeconds and its kin are declared in evaluate.h, for Explain.
//
//   FillMemory(composition, plan, rank, order, workspace, memory);   // costs are set

#include "core/evaluate.h"

namespace shardlab {

// Bytes. Uses the class costs and the chunks' scratch of the workspace. `memory` is filled where it
// lies, also when that is in the workspace.
void FillMemory(const Composition& composition, const Plan& plan, int rank,
                const CompiledOrder* order, Workspace& workspace, RankMemory& memory) noexcept;

}  // namespace shardlab
