#pragma once
// Layers for each stage, so that the slowest stage is as fast, or the fullest as small, as can be.
//
//   std::vector<int> layers = BalancedLayers(composition, plan, Balance::kTime, stages, 126);

#include <functional>
#include <vector>

#include "core/composition.h"

namespace shardlab {

enum class Balance { kEven, kTime, kMemory };

// `plan` needs no split yet. Weighs what each layer and the ends cost on pipeline rank 0; memory
// counts state and what the schedule holds in flight.
std::vector<int> BalancedLayers(const Composition& composition, const Plan& plan, Balance balance,
                                int stages, int layers);

// Contiguous parts of `items` whose largest cost(part, begin, end) is least; among these the one
// whose squares add up to least. Costs grow with the part's length.
std::vector<int> LeastLargest(int parts, int items,
                              const std::function<double(int part, int begin, int end)>& cost);

}  // namespace shardlab
