#pragma once
// V-Min: the building block of a V with the least memory: about a third of the activations of 1F1B
// on every rank, for about two thirds of its bubble.
//
//   [schedule]
//   plugin = "pipeline-v-min"
//   degree = 4

#include <array>
#include <string>

#include "api/controllable_memory.h"
#include "api/split_backward.h"

namespace shardlab::pipeline_v_min {

class VMin final : public Schedule {
 public:
  int DefaultChunks() const override { return 2; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return StageOfV(shape, rank, chunk);
  }
  std::string Refusal(const ScheduleShape& shape) const override {
    return ChunksRefusal("pipeline-v-min", shape, 2);
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int p = shape.ranks, x = p % 3 == 0 ? 2 : 0;
    return ControllableMemoryOrder(shape, [p, x](int i) {
      return std::array<int, 4>{i, 2 * p - 1 - i, 2 * p + x + i, 4 * p + x - 1 - i};
    });
  }

  std::string source() const override {
    return "Qi et al., Pipeline parallelism with controllable memory, arXiv 2405.15362, section 3";
  }
};

}  // namespace shardlab::pipeline_v_min
