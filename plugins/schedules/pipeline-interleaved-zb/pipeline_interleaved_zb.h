#pragma once
// Interleaved zero bubble: v chunks a rank and a split backward, ZB-H1's rule for the weight
// gradients (PyTorch's ZB1P).
//
//   [schedule]
//   plugin = "pipeline-interleaved-zb"
//   degree = 4
//   chunks = 2

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/interleaving.h"
#include "api/split_backward.h"

namespace shardlab::pipeline_interleaved_zb {

class InterleavedZeroBubble final : public Schedule {
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
    return GroupRefusal("pipeline-interleaved-zb", shape, group_);
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int group = GroupSize(shape, group_);
    const int all = shape.micro_batches * shape.chunks;
    const std::vector<Work> forwards = InterleavedTable(shape, group, WorkKind::kF),
                            inputs = InterleavedTable(shape, group, WorkKind::kI);
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r) {
      const int warm_up = std::min(shape.ranks - 1 - r + (shape.chunks - 1) * group, all);
      std::vector<Work> list;
      WaitingWeights weights;
      for (int k = 0; k < warm_up + all; ++k) {
        if (k < all) list.push_back(forwards[static_cast<std::size_t>(k)]);
        if (k < warm_up) continue;
        weights.Add(list, inputs[static_cast<std::size_t>(k - warm_up)]);
        if (weights.added() > r) weights.DoOldest(list);
      }
      weights.DoAll(list);
      order.push_back(std::move(list));
    }
    return order;
  }

  std::string source() const override {
    return "PyTorch ScheduleInterleavedZeroBubble; Qi et al., arXiv 2401.10241, section 2.2";
  }

 private:
  int group_ = 0;
};

}  // namespace shardlab::pipeline_interleaved_zb
