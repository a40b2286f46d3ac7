#pragma once
// Interleaved 1F1B: each rank holds v chunks of the model, so that the pipeline fills v times as
// fast; more chunks are in flight and v times as many messages travel.
//
//   [schedule]
//   plugin = "pipeline-interleaved"
//   degree = 4
//   chunks = 2

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/interleaving.h"

namespace shardlab::pipeline_interleaved {

class Interleaved final : public Schedule {
 public:
  void Visit(ParameterVisitor& v) override {
    v.IntegerOr({"group",
                 "micro-batches that a chunk does before the next chunk's turn",
                 1,
                 1 << 20,
                 {},
                 "m / max(1, m div p)"},
                "auto", &group_);
  }

  std::string Refusal(const ScheduleShape& shape) const override {
    return GroupRefusal("pipeline-interleaved", shape, group_);
  }

  // Megatron's form: w forwards, then forward and backward in turn, then w backwards.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int group = GroupSize(shape, group_);
    const int all = shape.micro_batches * shape.chunks;
    const std::vector<Work> forwards = InterleavedTable(shape, group, WorkKind::kF),
                            backwards = InterleavedTable(shape, group, WorkKind::kB);
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r) {
      const int warm_up = std::min(2 * (shape.ranks - 1 - r) + (shape.chunks - 1) * group, all);
      std::vector<Work> list;
      list.reserve(2 * static_cast<std::size_t>(all));
      list.insert(list.end(), forwards.begin(), forwards.begin() + warm_up);
      for (int k = warm_up; k < all; ++k) {
        list.push_back(forwards[static_cast<std::size_t>(k)]);
        list.push_back(backwards[static_cast<std::size_t>(k - warm_up)]);
      }
      list.insert(list.end(), backwards.begin() + (all - warm_up), backwards.end());
      order.push_back(std::move(list));
    }
    return order;
  }

  // With fewer micro-batches than ranks the groups are too small to fill the pipeline: played.
  double EqualSlots(const ScheduleShape& shape) const override {
    if (shape.micro_batches < shape.ranks && shape.chunks > 1) return -1;
    return shape.micro_batches + static_cast<double>(shape.ranks - 1) / shape.chunks;
  }

  std::string source() const override {
    return "Narayanan et al., arXiv 2104.04473, section 2.2; Megatron-LM "
           "core/pipeline_parallel/schedules.py; PyTorch ScheduleInterleaved1F1B";
  }

 private:
  int group_ = 0;
};

}  // namespace shardlab::pipeline_interleaved
