#pragma once
// A schedule's order compiled to a flat list that is played in one pass: each event knows its cost
// class, the event before it on its rank, and the event that it waits for. Compiled once per
// (schedule, p, v, m).
//
//   absl::StatusOr<CompiledOrder> order = CompileOrder(schedule, {.ranks = 4, .chunks = 1,
//   .micro_batches = 32}); PlayOrder(*order, costs, hop, times);

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "api/schedule.h"

namespace shardlab {

struct CompiledOrder {
  // An event that waits for nothing names the event before it, a first event of a rank what it
  // waits for, and the very first itself: playing then needs no branch.
  struct Event {
    std::uint32_t before = 0;  // on the same rank
    std::uint32_t waits = 0;   // for this event, on its own or another rank
    std::uint32_t cost = 0;    // index into costs: stage x 4 + WorkKind
    std::uint16_t rank = 0;
    std::uint16_t hop = 0;  // 1: the awaited event is on another rank
  };
  // The longest stretch of events that repeat: event i + length is event i one period later, for
  // begin <= i and i + length < end. Nothing in it waits further back than `reach`. length 0: there
  // is none.
  struct Period {
    std::uint32_t begin = 0, end = 0, length = 0, reach = 0;
  };
  ScheduleShape shape;
  std::vector<Event> events;  // topological
  Period period;
  std::vector<std::int32_t> last;   // [rank] its last event
  std::vector<std::int32_t> first;  // [rank]
  std::vector<std::int32_t>
      in_flight;  // [rank x chunks + chunk] chunks in flight where the rank holds most
  std::vector<std::int32_t> stage_of;  // [rank x chunks + chunk]
};

// Fails with the first impossible item when the order deadlocks, misses or doubles work.
absl::StatusOr<CompiledOrder> CompileOrder(const Schedule& schedule, const ScheduleShape& shape);

// costs[stage x 4 + kind] in seconds; `ends` has room for one time per event. A message arrives
// `hop` seconds after its sender's end; the sender goes on at once.
void PlayOrder(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends);

// The same for the last event of each rank, and the first, alone: once the state has repeated with
// every event later by the same time, the rest of the period is skipped. Playing is nonexpansive (a
// max-plus linear map), so what the repeat is off by, at most 1e-14 of the time so far, grows at
// most in proportion to the periods skipped.
void PlayToEnd(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends);

}  // namespace shardlab
