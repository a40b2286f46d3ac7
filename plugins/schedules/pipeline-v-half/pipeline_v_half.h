#pragma once
// V-Half: the building block of a V in which a chunk lives half as long: about half the activations
// of 1F1B on every rank, for about half its bubble.
//
//   [schedule]
//   plugin = "pipeline-v-half"
//   degree = 4

#include <array>
#include <string>

#include "api/controllable_memory.h"
#include "api/split_backward.h"

namespace shardlab::pipeline_v_half {

class VHalf final : public Schedule {
 public:
  int DefaultChunks() const override { return 2; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return StageOfV(shape, rank, chunk);
  }
  std::string Refusal(const ScheduleShape& shape) const override {
    return ChunksRefusal("pipeline-v-half", shape, 2);
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int p = shape.ranks, x = p % 2 == 0 ? 3 : 0;
    return ControllableMemoryOrder(shape, [p, x](int i) {
      return std::array<int, 4>{2 * i, 3 * p - 2 - i, 3 * p + x + 2 * i - 1, 6 * p + x - 2 - i};
    });
  }

  std::string source() const override {
    return "Qi et al., Pipeline parallelism with controllable memory, arXiv 2405.15362, section 3";
  }
};

}  // namespace shardlab::pipeline_v_half
