#pragma once
// A compiled order played with every start and end kept: what a chart or a list of events shows.
//
//   Timeline timeline = PlayTimeline(order, StageCosts(order, times), hop);
//   timeline.ranks[0].own_bubble;   // idle between its first and its last op

#include <vector>

#include "core/order.h"

namespace shardlab {

struct TimedWork {
  int rank = 0;
  Work work;
  double start = 0, end = 0;
};

// Whether recomputation comes before this kind of work.
inline bool Replays(WorkKind kind) { return kind != WorkKind::kF && kind != WorkKind::kW; }

struct RankTimeline {
  double busy = 0;
  double idle = 0;        // of the makespan: what a barrier at the end of the step sees
  double own_bubble = 0;  // from the start of its first op to the end of its last
  int peak_in_flight = 0, peak_in_flight_until_i = 0;  // chunks
  double peak_at = 0;  // when it first holds most, until the weight gradient
};

// From the end of what makes it to when it is at its receiver.
struct TimedMessage {
  int from_rank = 0, to_rank = 0;
  Work from, to;        // what makes it, and what waits for it
  bool forward = true;  // activations; else their gradients
  double start = 0, end = 0;
};

struct Timeline {
  double makespan = 0;
  double bubble_fraction = 0;  // idle over makespan, mean of the ranks
  std::vector<RankTimeline> ranks;
  std::vector<TimedWork> works;  // of each rank in its order
  std::vector<TimedMessage>
      messages;  // in the order in which they are waited for; none without a hop
};

// Seconds of one chunk and micro-batch, on every stage.
struct ChunkTimes {
  double forward = 1, input_gradient = 1, weight_gradient = 1;
  double pair = -1;      // an overlapped pair; below 0: as long as its parts
  double recompute = 0;  // before I, B and the B of a pair
};
std::vector<double> StageCosts(const CompiledOrder& order, const ChunkTimes& times);

Timeline PlayTimeline(const CompiledOrder& order, const std::vector<double>& costs, double hop);

}  // namespace shardlab
