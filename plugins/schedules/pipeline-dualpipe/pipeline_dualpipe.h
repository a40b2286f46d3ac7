#pragma once
// DualPipe: half of the micro-batches enter at each end of the pipeline. Rank r holds stage r for
// one direction and stage p-1-r for the other, so that a forward of one can overlap a backward of
// the other; the weights are there twice, and their gradients are summed at the end of the step.
//
//   [schedule]
//   plugin = "pipeline-dualpipe"
//   degree = 4

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/dual_pipe.h"

namespace shardlab::pipeline_dualpipe {

class DualPipe final : public Schedule {
 public:
  int DefaultChunks() const override { return 2; }
  bool Pairs() const override { return true; }
  int Stages(const ScheduleShape& shape) const override { return shape.ranks; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return chunk == 0 ? rank : shape.ranks - 1 - rank;
  }

  std::string Refusal(const ScheduleShape& shape) const override {
    std::string chunks = ChunksRefusal("pipeline-dualpipe", shape, 2);
    if (!chunks.empty()) return chunks;
    if (shape.ranks % 2 != 0) {
      return "pipeline-dualpipe needs an even number of pipeline ranks, not " +
             std::to_string(shape.ranks);
    }
    if (shape.micro_batches % 2 != 0) {
      return "pipeline-dualpipe needs an even number of micro-batches, half for each direction, "
             "not " +
             std::to_string(shape.micro_batches);
    }
    return TooFewMicroBatches("pipeline-dualpipe", shape, 2 * shape.ranks);
  }

  // Chunk 0 is of direction 0, which has the first half of the micro-batches and goes down the
  // ranks. A rank's phase 0 is the direction that enters at its end.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int p = shape.ranks, half = shape.micro_batches / 2;
    ScheduleOrder order;
    for (int r = 0; r < p; ++r) {
      const bool near = r < p / 2;
      const auto direct = [&](Work work) {
        const int direction = near ? work.chunk : 1 - work.chunk;
        work.chunk = static_cast<std::int16_t>(direction);
        work.micro_batch += direction * half;
        return work;
      };
      std::vector<Work> list = DualPipeOrder(p / 2, std::min(r, p - 1 - r), half);
      for (Work& work : list) {
        work = work.kind == WorkKind::kFB
                   ? Work::Pair(direct(work.Forward()), direct(work.Backward()))
                   : direct(work);
      }
      order.push_back(std::move(list));
    }
    return order;
  }

  std::string source() const override {
    return "DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437, section 3.2.1; DualPipe dualpipe.py";
  }
};

}  // namespace shardlab::pipeline_dualpipe
