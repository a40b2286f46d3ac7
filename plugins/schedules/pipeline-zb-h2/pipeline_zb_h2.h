#pragma once
// ZB-H2: more forwards before the first backward and weight gradients put off for longer, so that
// no rank idles between its first and its last op. Up to 2p - 1 micro-batches are in flight on
// every rank.
//
//   [schedule]
//   plugin = "pipeline-zb-h2"
//   degree = 4

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/split_backward.h"

namespace shardlab::pipeline_zb_h2 {

class ZeroBubbleH2 final : public Schedule {
 public:
  std::string Refusal(const ScheduleShape& shape) const override {
    const std::string chunks = ChunksRefusal("pipeline-zb-h2", shape, 1);
    return chunks.empty() ? TooFewMicroBatches("pipeline-zb-h2", shape, 2 * shape.ranks - 1)
                          : chunks;
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    const int m = shape.micro_batches;
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r) {
      const int warm_up = std::min(2 * (shape.ranks - r) - 1, m);
      std::vector<Work> list;
      list.reserve(3 * static_cast<std::size_t>(m));
      WaitingWeights weights;
      for (int k = 0; k < warm_up; ++k) list.push_back({WorkKind::kF, 0, k});
      for (int k = 0; k < m; ++k) {
        weights.Add(list, {WorkKind::kI, 0, k});
        if (weights.added() > 2 * r) weights.DoOldest(list);
        if (warm_up + k < m) list.push_back({WorkKind::kF, 0, warm_up + k});
      }
      weights.DoAll(list);
      order.push_back(std::move(list));
    }
    return order;
  }

  std::string source() const override {
    return "Qi et al., Zero bubble pipeline parallelism, arXiv 2401.10241, section 2.3";
  }
};

}  // namespace shardlab::pipeline_zb_h2
