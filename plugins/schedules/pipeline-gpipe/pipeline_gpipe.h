#pragma once
// GPipe: every rank runs the forwards of all micro-batches, then all backwards. Simple, with the
// bubble of 1F1B, but all m micro-batches are in flight.
//
//   [schedule]
//   plugin = "pipeline-gpipe"
//   degree = 2

#include <string>
#include <vector>

#include "api/schedule.h"

namespace shardlab::pipeline_gpipe {

class Gpipe final : public Schedule {
 public:
  std::string Refusal(const ScheduleShape& shape) const override {
    if (shape.chunks == 1) return "";
    return "pipeline-gpipe has one chunk per rank, not " + std::to_string(shape.chunks) +
           "; write chunks = 1";
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    std::vector<Work> list;
    list.reserve(2 * static_cast<std::size_t>(shape.micro_batches));
    for (const WorkKind kind : {WorkKind::kF, WorkKind::kB}) {
      for (int m = 0; m < shape.micro_batches; ++m) list.push_back({kind, 0, m});
    }
    return ScheduleOrder(static_cast<std::size_t>(shape.ranks), list);
  }

  double EqualSlots(const ScheduleShape& shape) const override {
    return shape.micro_batches + shape.ranks - 1;
  }

  std::string source() const override {
    return "Huang et al., GPipe, arXiv 1811.06965; PyTorch ScheduleGPipe";
  }
};

}  // namespace shardlab::pipeline_gpipe
