#pragma once
// Breadth-first (looped BFS): each rank does all micro-batches on one chunk before the next,
// forward and then backward. The bubble of interleaving; everything is in flight, but each stage is
// done in one go, which lets data parallelism gather and reduce it once.
//
//   [schedule]
//   plugin = "pipeline-breadth-first"
//   degree = 4
//   chunks = 2

#include <string>
#include <vector>

#include "api/schedule.h"

namespace shardlab::pipeline_breadth_first {

class BreadthFirst final : public Schedule {
 public:
  std::string Refusal(const ScheduleShape&) const override { return ""; }

  // Backward from the last chunk to the first and from the last micro-batch to the first, as
  // PyTorch does; the order of micro-batches does not change the bubble.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    std::vector<Work> list;
    for (int c = 0; c < shape.chunks; ++c) {
      for (int m = 0; m < shape.micro_batches; ++m)
        list.push_back({WorkKind::kF, static_cast<std::int16_t>(c), m});
    }
    for (int c = shape.chunks - 1; c >= 0; --c) {
      for (int m = shape.micro_batches - 1; m >= 0; --m)
        list.push_back({WorkKind::kB, static_cast<std::int16_t>(c), m});
    }
    return ScheduleOrder(static_cast<std::size_t>(shape.ranks), list);
  }

  // Each chunk but the first waits for the last rank where there are fewer micro-batches than
  // ranks.
  double EqualSlots(const ScheduleShape& shape) const override {
    const double p = shape.ranks, v = shape.chunks, m = shape.micro_batches;
    return m + (p - 1) / v + (m < p ? (v - 1) * (p - m) / v : 0);
  }

  std::string source() const override {
    return "Lamy-Poirier, Breadth-first pipeline parallelism, arXiv 2211.05953; PyTorch "
           "ScheduleLoopedBFS";
  }
};

}  // namespace shardlab::pipeline_breadth_first
