#pragma once
// Classes of which only some layers are to be recomputed get a copy that keeps all: the same rows
// and placements, right behind them. How many layers each has is a matter of the plan.
//
//   ShareLayers(program);   // after the last edit of rows, before Derive

#include "domain/program.h"

namespace shardlab {

void ShareLayers(Program& program);

}  // namespace shardlab
