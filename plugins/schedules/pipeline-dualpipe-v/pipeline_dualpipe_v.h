#pragma once
// DualPipeV: DualPipe cut in half. Each rank holds stage r on the way down and stage 2p-1-r on the
// way back; a forward of one overlaps a backward of the other, with one copy of the weights.
//
//   [schedule]
//   plugin = "pipeline-dualpipe-v"
//   degree = 4

#include <string>

#include "api/dual_pipe.h"

namespace shardlab::pipeline_dualpipe_v {

class DualPipeV final : public Schedule {
 public:
  int DefaultChunks() const override { return 2; }
  bool Pairs() const override { return true; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return StageOfV(shape, rank, chunk);
  }
  std::string Refusal(const ScheduleShape& shape) const override {
    const std::string chunks = ChunksRefusal("pipeline-dualpipe-v", shape, 2);
    return chunks.empty() ? TooFewMicroBatches("pipeline-dualpipe-v", shape, 2 * shape.ranks)
                          : chunks;
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r)
      order.push_back(DualPipeOrder(shape.ranks, r, shape.micro_batches));
    return order;
  }

  std::string source() const override {
    return "DeepSeek-AI, DualPipe dualpipev.py; PyTorch ScheduleDualPipeV";
  }
};

}  // namespace shardlab::pipeline_dualpipe_v
