#pragma once
// An order of many micro-batches without most of its repetition, for who plays it and asks no more:
// a search compiles thousands. Steady states repeat; what is left out is proved from the schedule's
// own lists, work by work, so that nothing is assumed of a schedule.
//
//   absl::StatusOr<CompiledOrder> order = CompileShortOrder(schedule, shape);
//   // PlayToEnd, PlayTravelling and what counts chunks in flight see no difference

#include "core/order.h"

namespace shardlab {

// As CompileOrder, but `events` and `works` may lack Period::more periods behind the last of the
// stretch that repeats; works behind it then count micro-batches without them. Where lists do not
// repeat, hold pairs, or repeat too little to be worth it, this is CompileOrder.
// `outline`: of the same schedule and shape, where it is known (see OutlineOrder).
absl::StatusOr<CompiledOrder> CompileShortOrder(const Schedule& schedule,
                                                const ScheduleShape& shape,
                                                const CompiledOrder* outline = nullptr);

// What is known of an order without finding out when its work is done, or that it can be: all but
// events, works, period, first, last, chunk_last and sends. Its pairs come in no certain order.
absl::StatusOr<CompiledOrder> OutlineOrder(const Schedule& schedule, const ScheduleShape& shape);

}  // namespace shardlab
