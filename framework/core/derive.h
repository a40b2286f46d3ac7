#pragma once
// Derivation: from placements to an executable list of steps. What is stored in one placement and
// needed in another must move; the backward pass is the transpose of the forward pass; what a
// gradient reads must survive or be replayed.
//
//   PlaceWork(program);
//   Derived derived = Derive(program, mesh);
//
// A gradient is stored as its tensor is (cut stays cut, partial becomes whole); what an op's
// backward produces is partial on each atom along which the op worked on a factor that the operand
// lacks; contributions in equal placement are summed before they move.

#include "domain/derived.h"
#include "domain/mesh.h"

namespace shardlab {

Derived Derive(const Program& program, const Mesh& mesh);

// The single hops from one placement to another, in the order that keeps transfers small and
// possible: gathers, all-to-alls, reduce-scatters and slices, all-reduces last; but sums over atoms
// in `reduce_first` (partial for another reason than the batch: norms under sequence parallelism)
// come before everything.
struct Hop {
  Collective collective = Collective::kSlice;
  AtomMask group = 0;
  Placement to;
};
std::vector<Hop> Hops(const Placement& from, const Placement& to, AtomMask reduce_first = 0);

}  // namespace shardlab
