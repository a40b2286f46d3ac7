#pragma once
// The order that DualPipe and DualPipeV share, on one of R ranks that form a V of two phases:
// phase 0 is the rank's way down, phase 1 its way back. Each phase has m micro-batches of its own
// (DualPipeV: the same ones). DeepSeek-AI, DualPipe, dualpipe.py and dualpipev.py; DeepSeek-V3,
// arXiv 2412.19437, section 3.2.1.
//
//   for (Work work : DualPipeOrder(ranks, r, micro_batches)) ...  // chunk = phase

#include <vector>

#include "api/split_backward.h"

namespace shardlab {

class DualPipeRank final {
 public:
  DualPipeRank(int ranks, int rank, int micro_batches)
      : ranks_(ranks), rank_(rank), micro_batches_(micro_batches) {}

  std::vector<Work> Order() {
    const int after = ranks_ - rank_ - 1, until = rank_ + 1;
    for (int i = 0; i < 2 * after; ++i) F(0);
    for (int i = 0; i < until; ++i) {
      F(0);
      F(1);
    }
    for (int i = 0; i < after; ++i) {
      I(1);
      W();
      F(1);
    }
    const int steady = micro_batches_ - 2 * ranks_ + until;
    for (int i = 0; i < steady; ++i) {
      // The last rank has no gradient to hide behind yet.
      if (i == 0 && after == 0) {
        F(0);
        B(1);
      } else {
        FB(0, 1);
      }
      FB(1, 0);
    }
    for (int i = 0; i < after; ++i) {
      B(1);
      FB(1, 0);
    }
    // The end splits its backwards, so that what the rank before waits for comes first.
    const int whole = until / 2;
    for (int i = 0; i < until; ++i) {
      const bool split = i >= whole, odd = rank_ % 2 == 1;
      split && (odd || i > whole) ? I(1) : B(1);
      split ? I(0) : B(0);
    }
    for (int i = 0; i < after; ++i) {
      W();
      I(0);
    }
    weights_.DoAll(list_);
    return std::move(list_);
  }

 private:
  Work Next(WorkKind kind, int phase) {
    int& next = (kind == WorkKind::kF ? forward_ : backward_)[phase];
    return {kind, static_cast<std::int16_t>(phase), next++};
  }
  void F(int phase) { list_.push_back(Next(WorkKind::kF, phase)); }
  void B(int phase) { list_.push_back(Next(WorkKind::kB, phase)); }
  void I(int phase) { weights_.Add(list_, Next(WorkKind::kI, phase)); }
  void W() { weights_.DoOldest(list_); }
  void FB(int forward, int backward) {
    const Work f = Next(WorkKind::kF, forward);
    list_.push_back(Work::Pair(f, Next(WorkKind::kB, backward)));
  }

  int ranks_, rank_, micro_batches_;
  int forward_[2] = {0, 0}, backward_[2] = {0, 0};
  std::vector<Work> list_;
  WaitingWeights weights_;
};

inline std::vector<Work> DualPipeOrder(int ranks, int rank, int micro_batches) {
  return DualPipeRank(ranks, rank, micro_batches).Order();
}

}  // namespace shardlab
