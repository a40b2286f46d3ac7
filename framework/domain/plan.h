#pragma once
// The integers of a plan: what a search varies without composing again. Fits two cache lines.
//
//   Plan plan = composition.plan;        // the scenario's own
//   plan.micro_batch_size = 2;

#include <array>
#include <bit>
#include <cstdint>

#include "domain/mesh.h"

namespace shardlab {

struct Plan {
  std::array<std::int32_t, kMaxAtoms> atom{};  // size of each atom, 1 where unused
  std::int32_t pipeline = 1;                   // ranks p
  std::int32_t chunks = 1;                     // per rank v
  std::int32_t micro_batch_size = 1;           // sequences b
  std::int32_t micro_batches = 1;              // per pipeline and step m
  std::int32_t split = 0;                      // index into the composition's table of layer splits

  Plan() { atom.fill(1); }
  constexpr int Size(AtomMask mask) const {
    int n = 1;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1)
      n *= atom[static_cast<std::size_t>(std::countr_zero(rest))];
    return n;
  }
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace shardlab
