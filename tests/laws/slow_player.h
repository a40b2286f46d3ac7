#pragma once
// Plays a pipeline's order event by event, with messages on the way: slow, and written from the
// definition alone. Nothing of core/order.h is used.
//
//   const Played played = PlaySlowly(schedule, shape, schedule.Order(shape), costs, hop);
//   EXPECT_TRUE(played.done);

#include <vector>

#include "api/schedule.h"

namespace shardlab {

struct Played {
  bool done = false;  // false: a rank waits for something that never comes
  double makespan = 0;
  std::vector<double> start, end, busy;  // [rank] of its first and last work; sum of all
  // [rank] most chunks whose forward has begun and whose backward has not ended; whose input
  // gradient has not.
  std::vector<int> in_flight, in_flight_until_i;
};

// costs[stage x 4 + kind], seconds. A message arrives `hop` seconds after its sender's end. An
// overlapped pair takes `pair` seconds; below 0: as long as its two parts, less what they hide of
// each other: [forward's stage][backward's stage].
using HiddenOfPairs = std::vector<std::vector<double>>;
Played PlaySlowly(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& order,
                  const std::vector<double>& costs, double hop, double pair = -1,
                  const HiddenOfPairs& hidden = {});

}  // namespace shardlab
