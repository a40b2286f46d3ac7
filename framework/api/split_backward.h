#pragma once
// What zero-bubble schedules share: weight gradients that wait, and the V in which a rank holds
// stage r and stage 2p-1-r.
//
//   WaitingWeights weights;
//   weights.Add(list, {WorkKind::kI, 0, 3});  // puts the I on the list and remembers its W
//   weights.DoOldest(list);

#include <deque>
#include <string>
#include <vector>

#include "api/schedule.h"

namespace shardlab {

class WaitingWeights final {
 public:
  void Add(std::vector<Work>& list, Work input_gradient) {
    list.push_back(input_gradient);
    waiting_.push_back({WorkKind::kW, input_gradient.chunk, input_gradient.micro_batch});
    ++added_;
  }
  void DoOldest(std::vector<Work>& list) {
    if (waiting_.empty()) return;
    list.push_back(waiting_.front());
    waiting_.pop_front();
  }
  void DoAll(std::vector<Work>& list) {
    while (!waiting_.empty()) DoOldest(list);
  }
  int added() const { return added_; }

 private:
  std::deque<Work> waiting_;
  int added_ = 0;
};

// Chunk 0 goes down the ranks, chunk 1 back up.
inline int StageOfV(const ScheduleShape& shape, int rank, int chunk) {
  return chunk == 0 ? rank : 2 * shape.ranks - 1 - rank;
}

// Empty when a rank has as many chunks as the schedule needs.
inline std::string ChunksRefusal(const char* name, const ScheduleShape& shape, int chunks) {
  if (shape.chunks == chunks) return "";
  return std::string(name) + " has " + (chunks == 1 ? "one chunk" : "two chunks") +
         " per rank, not " + std::to_string(shape.chunks) +
         "; write chunks = " + std::to_string(chunks);
}

inline std::string TooFewMicroBatches(const char* name, const ScheduleShape& shape, int least) {
  if (shape.micro_batches >= least) return "";
  return std::string(name) + " on " + std::to_string(shape.ranks) + " ranks needs at least " +
         std::to_string(least) + " micro-batches, not " + std::to_string(shape.micro_batches);
}

}  // namespace shardlab
