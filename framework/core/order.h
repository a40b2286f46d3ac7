#pragma once
// A schedule's order compiled to a flat list that is played in one pass: each event knows its cost
// class, the event before it on its rank, and the event that it waits for. Compiled once per
// (schedule, p, v, m).
//
//   absl::StatusOr<CompiledOrder> order = CompileOrder(schedule, {.ranks = 4, .chunks = 1,
//   .micro_batches = 32}); PlayOrder(*order, costs, hop, times);

#include <cstdint>
#include <utility>
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
    std::uint32_t cost = 0;    // index into costs, see CostCount
    std::uint16_t rank = 0;
    std::uint16_t hop = 0;  // 1: the awaited event is on another rank
  };
  // The longest stretch of events that repeat: event i + length is event i one period later, for
  // begin <= i and i + length < end. Nothing in it waits further back than `reach`. length 0: there
  // is none. `more` periods follow the last of them that are not among the events: see
  // CompileShortOrder.
  struct Period {
    std::uint32_t begin = 0, end = 0, length = 0, reach = 0, more = 0;
  };
  ScheduleShape shape;
  int stages = 1;
  int copies = 1;  // ranks that hold each stage: a chunk sees 1/copies of the micro-batches
  bool splits_backward = false;  // some weight gradient waits
  std::vector<Event> events;     // topological
  std::vector<Work> works;       // [event]
  // Distinct (stage of the forward, stage of the backward) of overlapped pairs. A pair that waits
  // for two other ranks is two events: one that costs nothing waits for the forward's input.
  std::vector<std::pair<int, int>> pairs;
  std::vector<std::int32_t> pair_counts;  // [rank x pairs + pair]
  Period period;
  std::vector<std::int32_t> last;  // [rank] its last event
  // [rank x chunks + chunk] the last pass of each chunk's backward, which may be done long before
  // its rank; of one chunk empty.
  std::vector<std::int32_t> chunk_last;
  std::vector<std::int32_t> first;  // [rank]
  // [rank x chunks + chunk] chunks in flight, forward to the end of B or W, where the rank holds
  // most; and between the start of I and the end of W, where it holds most of those.
  std::vector<std::int32_t> in_flight, pinned;
  // Where weight gradients wait, and of several chunks, which need not hold alike: states of a rank
  // of which none holds less of everything than another. In each, per chunk: chunks in flight,
  // chunks between the start of I and the end of W, and 1 where a whole backward pass is at work.
  std::vector<std::vector<std::int32_t>> states;  // [rank][state x 3 x chunks + 3 x chunk + which]
  std::vector<std::int32_t> in_flight_until_i;    // [rank] the most chunks between F and I or B
  std::vector<std::int32_t> stage_of;             // [rank x chunks + chunk]
  std::vector<std::int32_t> sends;  // [rank x 2] messages to other ranks: forward, backward

  // Costs are [stage x 4 + WorkKind] and, where there are pairs, a zero and the time of each pair.
  std::size_t ZeroCost() const { return static_cast<std::size_t>(stages) * 4; }
  std::size_t CostCount() const { return ZeroCost() + (pairs.empty() ? 0 : 1 + pairs.size()); }
  bool OnlyWaits(const Event& event) const { return event.cost == ZeroCost(); }
};

// Puts the zero and the pairs' costs behind those of the stages: a pair takes as long as its F and
// its B, less what the two hide of each other: [pair], or nothing.
void AddPairCosts(const CompiledOrder& order, absl::Span<double> costs,
                  absl::Span<const double> hidden = {});

// Fails with the first impossible cell, and why it is impossible (api/order_fault.h).
absl::StatusOr<CompiledOrder> CompileOrder(const Schedule& schedule, const ScheduleShape& shape);
// The same for lists that are given. `length`: events of a period, where that is known; else 0.
// `held`: what its ranks hold is what they hold here, where that is known.
absl::StatusOr<CompiledOrder> CompileLists(const Schedule& schedule, const ScheduleShape& shape,
                                           const ScheduleOrder& lists, std::size_t length = 0,
                                           const CompiledOrder* held = nullptr);

// costs as CompiledOrder says, in seconds; `ends` has room for one time per event. A message
// arrives `hop` seconds after its sender's end; the sender goes on at once.
void PlayOrder(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends);

// The same for the last event of each rank, and the first, alone: once the state has repeated with
// every event later by the same time, the rest of the period is skipped. Playing is nonexpansive (a
// max-plus linear map), so what the repeat is off by, at most 1e-14 of the time so far, grows at
// most in proportion to the periods skipped.
void PlayToEnd(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends);

}  // namespace shardlab
