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
  std::vector<double> end;  // [rank] of its last work
  std::vector<int>
      in_flight;  // [rank] most chunks whose forward has begun and whose backward has not ended
};

// costs[stage x 4 + kind], seconds. A message arrives `hop` seconds after its sender's end.
Played PlaySlowly(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& order,
                  const std::vector<double>& costs, double hop);

}  // namespace shardlab
