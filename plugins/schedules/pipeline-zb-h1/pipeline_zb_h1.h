#pragma once
// ZB-H1: 1F1B whose backward is split. Only the input gradient is waited for; weight gradients fill
// the bubble at the end. On every rank at most p micro-batches are in flight, rank 0's share of
// 1F1B.
//
//   [schedule]
//   plugin = "pipeline-zb-h1"
//   degree = 4

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/split_backward.h"

namespace shardlab::pipeline_zb_h1 {

class ZeroBubbleH1 final : public Schedule {
 public:
  std::string Refusal(const ScheduleShape& shape) const override {
    const std::string chunks = ChunksRefusal("pipeline-zb-h1", shape, 1);
    return chunks.empty() ? TooFewMicroBatches("pipeline-zb-h1", shape, shape.ranks) : chunks;
  }

  // Rank r puts off r weight gradients, so that it holds what rank 0 holds.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int m = shape.micro_batches;
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r) {
      const int warm_up = std::min(shape.ranks - 1 - r, m);
      std::vector<Work> list;
      WaitingWeights weights;
      for (int k = 0; k < warm_up + m; ++k) {
        if (k < m) list.push_back({WorkKind::kF, 0, k});
        if (k < warm_up) continue;
        weights.Add(list, {WorkKind::kI, 0, k - warm_up});
        if (weights.added() > r) weights.DoOldest(list);
      }
      weights.DoAll(list);
      order.push_back(std::move(list));
    }
    return order;
  }

  std::string source() const override {
    return "Qi et al., Zero bubble pipeline parallelism, arXiv 2401.10241, section 2.2";
  }
};

}  // namespace shardlab::pipeline_zb_h1
