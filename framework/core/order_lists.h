#pragma once
// What is known of a schedule's lists before anything is put in the order of time.
//
//   CompiledOrder out;
//   out.shape = shape;
//   absl::Status status = PlaceLists(schedule, lists, {}, &out);
//   if (status.ok()) CountHeld(lists, {}, &out);

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/order.h"

namespace shardlab {

// Calls for each F, I, W and B of the work: a pair is two.
template <class Visitor>
void EachPartOf(const Work& w, Visitor visit) {
  if (w.kind != WorkKind::kFB) return visit(w);
  visit(w.Forward());
  visit(w.Backward());
}

// Works [at, to) of a list that are those of the period before `at`, each time some micro-batches
// later, and leave as much in flight as there was.
struct Repetition {
  std::size_t at = 0, to = 0, length = 0;  // of a period
};

// Sets stages, copies and stage_of. Fails where the lists are not of this many ranks, a chunk is no
// stage, stages are not held equally often, or work is of no chunk or micro-batch. `skip`: of each
// rank, or empty.
absl::Status PlaceLists(const Schedule& schedule, const ScheduleOrder& lists,
                        const std::vector<Repetition>& skip, CompiledOrder* out);

// Sets splits_backward and what ranks hold: in_flight, pinned, in_flight_until_i, states.
void CountHeld(const ScheduleOrder& lists, const std::vector<Repetition>& skip, CompiledOrder* out);

// Sets the same as CountHeld from an order that holds as much.
inline void CopyHeld(const CompiledOrder& from, CompiledOrder* out) {
  out->splits_backward = from.splits_backward;
  out->in_flight = from.in_flight;
  out->pinned = from.pinned;
  out->in_flight_until_i = from.in_flight_until_i;
  out->states = from.states;
}

// Where a list repeats: item i + length is item i so many micro-batches later, for begin <= i and
// i + length < end.
struct Stretch {
  std::size_t begin = 0, end = 0, length = 0;
};
// The stretch around the middle of the list, with the shortest period that goes through a quarter
// of it. `micro_batches`: of a period; 0 when not known yet.
std::optional<Stretch> MiddleStretch(const std::vector<Work>& list, int* micro_batches);
// `b` is `a` so many micro-batches later; not of pairs.
inline bool IsLater(const Work& a, const Work& b, int micro_batches) {
  return a.kind == b.kind && a.chunk == b.chunk && a.micro_batch + micro_batches == b.micro_batch;
}

}  // namespace shardlab
