#pragma once
// The V schedules with controllable memory (Qi et al., arXiv 2405.15362): a building block of six
// slots a micro-batch, repeated, whose ends are then pulled together as far as memory allows.
//
//   ScheduleOrder order = ControllableMemoryOrder(shape, [p](int r) {
//     return std::array<int, 4>{r, 2 * p - 1 - r, 2 * p + r, 4 * p - 1 - r};
//   });

#include <array>
#include <functional>

#include "api/schedule.h"

namespace shardlab {

// Slots of micro-batch 0 on a rank: F of the way down, F of the way back, I of the way back, I of
// the way down. Micro-batch j is 6 j slots later.
using BuildingBlock = std::function<std::array<int, 4>(int rank)>;

// Chunk 0 is stage r, chunk 1 stage 2p-1-r.
SHARDLAB_EXPORT ScheduleOrder ControllableMemoryOrder(const ScheduleShape& shape,
                                                      const BuildingBlock& block);

}  // namespace shardlab
