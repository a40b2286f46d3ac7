#pragma once
// Are two compositions the same but for how many layers of a pipeline rank a strategy treats
// (LayerClass::per_rank)? What a strategy does with such a number is its own business, so who wants
// to compose once for many numbers asks here.
//
//   if (auto rows = ClassesThatFollow(a, 3, b, 5)) for (std::size_t row : *rows)
//     a.program.classes[row].per_rank = 7;

#include <cstddef>
#include <optional>
#include <vector>

#include "core/edits.h"

namespace shardlab {

// The classes that treat `layers_a` layers of a rank in `a` and `layers_b` in `b`; nothing where
// there are none, or the two differ in anything else that a plan's numbers depend on. Of two
// numbers that says all if a strategy makes no difference between others.
std::optional<std::vector<std::size_t>> ClassesThatFollow(const Edited& a, int layers_a,
                                                          const Edited& b, int layers_b);

}  // namespace shardlab
