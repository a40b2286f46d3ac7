#pragma once
// How long one pass of a stage takes, block by block.
//
//   PassShape shape = ShapeOfPass(composition, plan, prices, stage, first, WorkKind::kB);

#include <functional>

#include "core/simulate.h"

namespace shardlab {

struct PassShape {
  Traffic lead;      // the first gather, before the first block
  double body = 0;   // from its first block to the end of its last
  Traffic tail;      // reductions that go on after that
  double slack = 0;  // of its first block's compute nothing travels under this
  double replay = 0;
  // Of the layers' own work, without what travels under it: compute, and collectives.
  double computes = 0, communicates = 0;
  double stretch = 1;  // body over what the blocks come to
};

// Called for what a pass is made of; times from the start of its first block.
struct PassVisitor {
  // `layers` of a class, usually one; `stretch`: how much slower they are for what travels.
  std::function<void(std::size_t layer_class, int block, double layers, double start,
                     double stretch)>
      block;
  // Gathers and reductions under the blocks.
  std::function<void(const Traffic& traffic, double start, double end)> traffic;
};

// `first`: of the rank's chunks the first, which has what a rank does once.
PassShape ShapeOfPass(const Composition& composition, const Plan& plan, const RankPrices& prices,
                      int stage, bool first, WorkKind kind, const PassVisitor* visit = nullptr);

// Layers of cost class k on a stage; behind the classes what a rank does once.
double LayersOfClass(const Composition& composition, const Plan& plan, int stage, bool first,
                     std::size_t k);

}  // namespace shardlab
