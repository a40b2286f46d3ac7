#pragma once
// ZB-V: each rank holds stage r on the way down and stage 2p-1-r on the way back, so that the last
// stage is beside the first and every rank holds as much as 1F1B's rank 0, with no bubble at equal
// times.
//
//   [schedule]
//   plugin = "pipeline-zb-v"
//   degree = 4

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "api/split_backward.h"

namespace shardlab::pipeline_zb_v {

class ZeroBubbleV final : public Schedule {
 public:
  int DefaultChunks() const override { return 2; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return StageOfV(shape, rank, chunk);
  }
  std::string Refusal(const ScheduleShape& shape) const override {
    return ChunksRefusal("pipeline-zb-v", shape, 2);
  }

  ScheduleOrder Order(const ScheduleShape& shape) const override {
    ScheduleOrder order;
    for (int r = 0; r < shape.ranks; ++r) order.push_back(Rank(shape, r).Order());
    return order;
  }

  std::string source() const override {
    return "Qi et al., Zero bubble pipeline parallelism, arXiv 2401.10241, section 6; PyTorch "
           "ScheduleZBVZeroBubble";
  }

 private:
  // PyTorch's handcrafted order. With fewer than 2p - 1 micro-batches it is the order of 2p - 1
  // without those that are not there.
  class Rank {
   public:
    Rank(const ScheduleShape& shape, int rank)
        : ranks_(shape.ranks), rank_(rank), there_(shape.micro_batches) {}

    std::vector<Work> Order() {
      const int n = std::max(there_, 2 * ranks_ - 1), after = ranks_ - rank_;
      for (int i = 0; i < 2 * after - 1; ++i) Do(WorkKind::kF, 0);
      for (int i = 0; i < rank_; ++i) {
        Do(WorkKind::kF, 1);
        Do(WorkKind::kF, 0);
      }
      for (int i = 0; i < after; ++i) Back();
      for (int i = 0; i < n - ranks_; ++i) {
        if (i < n - 2 * ranks_ + rank_ + 1) Do(WorkKind::kF, 0);
        Do(WorkKind::kI, 0);
        Do(WorkKind::kW, 0);
        Back();
      }
      for (int i = 0; i < rank_; ++i) {
        Do(WorkKind::kI, 0);
        Do(WorkKind::kI, 1);
      }
      for (int i = 0; i < after; ++i) {
        Do(WorkKind::kI, 0);
        Do(WorkKind::kW, 0);
      }
      while (next_[Slot(WorkKind::kW, 1)] < n) Do(WorkKind::kW, 1);
      while (next_[Slot(WorkKind::kW, 0)] < n) Do(WorkKind::kW, 0);
      return std::move(list_);
    }

   private:
    static std::size_t Slot(WorkKind kind, int chunk) {
      return 2 * static_cast<std::size_t>(kind) + static_cast<std::size_t>(chunk);
    }
    void Do(WorkKind kind, int chunk) {
      const int micro_batch = next_[Slot(kind, chunk)]++;
      if (micro_batch < there_)
        list_.push_back({kind, static_cast<std::int16_t>(chunk), micro_batch});
    }
    void Back() {
      for (const WorkKind kind : {WorkKind::kF, WorkKind::kI, WorkKind::kW}) Do(kind, 1);
    }

    int ranks_, rank_, there_;
    int next_[6] = {};
    std::vector<Work> list_;
  };
};

}  // namespace shardlab::pipeline_zb_v
