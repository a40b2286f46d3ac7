#pragma once
// 1F1B (PipeDream-flush): after a few forwards to fill the pipeline, each rank alternates one
// forward and one backward, so that rank r has at most p - r micro-batches in flight, however many
// there are.
//
//   [schedule]
//   plugin = "pipeline-1f1b"
//   degree = 2

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/schedule.h"

namespace shardlab::pipeline_1f1b {

class OneForwardOneBackward final : public Schedule {
 public:
  std::string Refusal(const ScheduleShape& shape) const override {
    if (shape.chunks == 1) return "";
    return "pipeline-1f1b has one chunk per rank, not " + std::to_string(shape.chunks) +
           "; write chunks = 1";
  }

  // Megatron's form: w = min(p-1-r, m) forwards, then forward and backward in turn, then w
  // backwards.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int m = shape.micro_batches;
    ScheduleOrder order;
    order.reserve(static_cast<std::size_t>(shape.ranks));
    for (int r = 0; r < shape.ranks; ++r) {
      const int warm_up = std::min(shape.ranks - 1 - r, m);
      std::vector<Work> list;
      list.reserve(2 * static_cast<std::size_t>(m));
      for (int i = 0; i < warm_up; ++i) list.push_back({WorkKind::kF, 0, i});
      for (int i = 0; i < m - warm_up; ++i) {
        list.push_back({WorkKind::kF, 0, warm_up + i});
        list.push_back({WorkKind::kB, 0, i});
      }
      for (int i = m - warm_up; i < m; ++i) list.push_back({WorkKind::kB, 0, i});
      order.push_back(std::move(list));
    }
    return order;
  }

  double EqualSlots(const ScheduleShape& shape) const override {
    return shape.micro_batches + shape.ranks - 1;
  }

  std::string source() const override {
    return "Narayanan et al., arXiv 2104.04473, section 2.2; Megatron-LM "
           "core/pipeline_parallel/schedules.py";
  }
};

}  // namespace shardlab::pipeline_1f1b
