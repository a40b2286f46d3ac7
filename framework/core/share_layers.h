#pragma once
// Classes of which only some layers are to be recomputed get a copy that keeps all: the same rows
// and placements, right behind them. How many layers each has is a matter of the plan.
//
//   ShareLayers(program);   // after the last edit of rows, before Derive
//   OpenSharedEnds(program);

#include "domain/program.h"

namespace shardlab {

void ShareLayers(Program& program);

// For each parameter of the first stage that ops of the last stage use too: a class at each end for
// what that costs where the two are on different pipeline ranks.
void OpenSharedEnds(Program& program);

}  // namespace shardlab
