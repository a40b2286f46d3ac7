#pragma once
// An Evaluation and what else a plan's report says in one number each: what Explain shows of a plan
// without its rows. No strings, and no allocation once the workspace has seen a plan as large.
//
//   workspace.Reserve(plan, order);
//   Summary s = Summarize(composition, plan, order, workspace);

#include "core/evaluate.h"

namespace shardlab {

struct Summary {
  Evaluation evaluation;
  double exposed_pipeline = 0;       // of the bubble: what messages between ranks cost, seconds
  double hidden_pipeline = 0;        // of the time rank's messages what does not show, seconds
  double own_bubble = 0;             // idle between the time rank's first and last op, seconds
  double recompute_flops_share = 0;  // replayed FLOPs over those of forward and backward
  RankMemory worst;                  // of evaluation.worst_rank
};

// As Evaluate, whose arguments these are.
Summary Summarize(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                  Workspace& workspace) noexcept;

}  // namespace shardlab
