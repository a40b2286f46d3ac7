#include "core/order_lists.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// Every chunk is a stage, every stage somewhere, equally often.
absl::Status PlaceStages(CompiledOrder* out) {
  const ScheduleShape& s = out->shape;
  const int stages = out->stages;
  std::vector<int> held(Size(std::max(0, stages)), 0);
  if (stages > 0) out->copies = s.ranks * s.chunks / stages;
  for (const std::int32_t stage : out->stage_of) {
    if (stage >= 0 && stage < stages) ++held[Size(stage)];
  }
  const bool whole = stages > 0 && out->copies > 0 && out->copies * stages == s.ranks * s.chunks &&
                     s.micro_batches % out->copies == 0;
  if (whole && std::all_of(held.begin(), held.end(), [&](int n) { return n == out->copies; }))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      s.ranks * s.chunks, " chunks do not hold each of ", stages,
      " stages equally often, or not equal shares of ", s.micro_batches, " micro-batches"));
}

Repetition Of(const std::vector<Repetition>& skip, std::size_t rank) {
  return skip.empty() ? Repetition() : skip[rank];
}

absl::Status Exists(const ScheduleOrder& lists, const std::vector<Repetition>& skip,
                    const ScheduleShape& s) {
  // One comparison each: below 0 is far above.
  const auto exists = [&s](int chunk, int micro_batch) {
    return static_cast<unsigned>(chunk) < static_cast<unsigned>(s.chunks) &&
           static_cast<unsigned>(micro_batch) < static_cast<unsigned>(s.micro_batches);
  };
  const auto fault = [&s](std::size_t rank, const Work& w) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " does ", Name(w.kind), " of chunk ", w.chunk,
                     " and micro-batch ", w.micro_batch, ", and there are ", s.chunks,
                     " chunks and ", s.micro_batches, " micro-batches"));
  };
  for (std::size_t r = 0; r < lists.size(); ++r) {
    // Of periods the first and the last: micro-batches of the others are between theirs.
    const Repetition repeats = Of(skip, r);
    for (std::size_t i = 0; i < lists[r].size(); ++i) {
      if (i == repeats.at && repeats.to > repeats.at) i = repeats.to - repeats.length;
      const Work& w = lists[r][i];
      const bool pair = w.kind == WorkKind::kFB;
      if (!exists(w.chunk, w.micro_batch)) return fault(r, pair ? w.Forward() : w);
      if (pair && !exists(w.backward_chunk, w.backward_micro_batch)) return fault(r, w.Backward());
    }
  }
  return absl::OkStatus();
}

// Chunks whose saved tensors live at the instant when the rank holds most.
class Count {
 public:
  explicit Count(std::size_t chunks) : held_(chunks, 0) {}
  int most() const { return most_; }
  // Notes the new state in `peak` when it is the largest so far.
  void Change(int chunk, int by, std::int32_t* peak) {
    held_[Size(chunk)] += by;
    total_ += by;
    if (total_ <= most_) return;
    most_ = total_;
    if (peak != nullptr) std::copy(held_.begin(), held_.end(), peak);
  }

 private:
  std::vector<std::int32_t> held_;
  int total_ = 0, most_ = 0;
};

// States of a rank of which none holds less of everything than another.
class States {
 public:
  explicit States(std::size_t width) : width_(width) {}

  // `hash` of it: the same for the same numbers.
  void Add(const std::vector<std::int32_t>& now, std::uint64_t hash) {
    if (!IsNew(now, hash)) return;
    // One that is new holds less of everything than another only where it holds less in sum.
    const int sum = std::accumulate(now.begin(), now.end(), 0);
    for (std::size_t i = kept_.size(); i-- > 0;) {
      if (sum < sums_[i] && HoldsLess(now, kept_[i])) return;
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (sums_[i] < sum && HoldsLess(kept_[i], now)) continue;
      if (left < i) std::swap(kept_[left], kept_[i]);
      sums_[left++] = sums_[i];
    }
    kept_.resize(left);
    sums_.resize(left);
    kept_.push_back(now);
    sums_.push_back(sum);
  }

  // Largest first.
  std::vector<std::int32_t> All() {
    std::sort(kept_.begin(), kept_.end(), std::greater<>());
    std::vector<std::int32_t> all;
    all.reserve(kept_.size() * width_);
    for (const std::vector<std::int32_t>& state : kept_)
      all.insert(all.end(), state.begin(), state.end());
    return all;
  }

 private:
  // Most states come again and again.
  bool IsNew(const std::vector<std::int32_t>& now, std::uint64_t hash) {
    const auto [it, fresh] = seen_.emplace(hash, all_.size());
    if (!fresh) return !std::equal(now.begin(), now.end(), all_.begin() + it->second);
    all_.insert(all_.end(), now.begin(), now.end());
    return true;
  }
  static bool HoldsLess(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
  }

  const std::size_t width_;
  std::vector<std::vector<std::int32_t>> kept_;
  std::vector<int> sums_;                                   // [kept]
  std::unordered_map<std::uint64_t, std::ptrdiff_t> seen_;  // by hash, into all_
  std::vector<std::int32_t> all_;
};

// Calls for each work that is not skipped.
template <class Visitor>
void EachWork(const std::vector<Work>& list, const Repetition& skip, Visitor visit) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == skip.at && skip.to > skip.at) i = skip.to;
    if (i < list.size()) visit(list[i]);
  }
}

// What a rank holds at the start of each work, without what holds less of everything.
std::vector<std::int32_t> StatesOf(const std::vector<Work>& list, const Repetition& skip,
                                   int chunks) {
  const std::size_t width = 3 * Size(chunks);
  States states(width);
  std::vector<std::int32_t> now(width, 0);
  bool grown = false;  // since a state was noted
  int at_work = -1;    // the chunk in it
  // A number of each place times how much is there, so that a change is one addition.
  std::uint64_t hash = 0;
  const auto change = [&](int chunk, std::size_t which, std::int32_t by) {
    const std::size_t at = 3 * Size(chunk) + which;
    now[at] += by;
    const std::uint64_t place = (at + 1) * 0x9e3779b97f4a7c15u;
    hash += static_cast<std::uint64_t>(static_cast<std::int64_t>(by)) * (place ^ place >> 31);
  };
  EachWork(list, skip, [&](const Work& work) {
    const bool pair = work.kind == WorkKind::kFB;
    const int backward = pair ? work.backward_chunk : work.chunk;
    const bool whole = pair || work.kind == WorkKind::kB;
    if (pair || work.kind == WorkKind::kF) change(work.chunk, 0, 1);
    if (work.kind == WorkKind::kI) change(work.chunk, 1, 1);
    if (whole) change(backward, 2, 1);
    // What a forward pass or an input gradient adds is there at the start of the next work, too;
    // of works that free one after another the first has most, for each chunk that is at work.
    const bool adds = !whole && work.kind != WorkKind::kW;
    grown = grown || adds || pair;
    const bool noted = adds ? &work == &list.back() : grown || (whole && backward != at_work);
    if (noted) {
      states.Add(now, hash);
      at_work = whole ? backward : -1;
      grown = false;
    }
    if (whole) change(backward, 2, -1);
    if (whole || work.kind == WorkKind::kW) change(backward, 0, -1);
    if (work.kind == WorkKind::kW) change(work.chunk, 1, -1);
  });
  return states.All();
}

}  // namespace

absl::Status PlaceLists(const Schedule& schedule, const ScheduleOrder& lists,
                        const std::vector<Repetition>& skip, CompiledOrder* out) {
  const ScheduleShape& s = out->shape;
  out->stages = schedule.Stages(s);
  if (lists.size() != Size(s.ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order has ", lists.size(), " ranks instead of ", s.ranks));
  }
  out->stage_of.clear();
  for (int r = 0; r < s.ranks; ++r) {
    for (int c = 0; c < s.chunks; ++c) out->stage_of.push_back(schedule.StageOf(s, r, c));
  }
  if (absl::Status status = PlaceStages(out); !status.ok()) return status;
  return Exists(lists, skip, s);
}

void CountHeld(const ScheduleOrder& lists, const std::vector<Repetition>& skip,
               CompiledOrder* out) {
  const ScheduleShape& s = out->shape;
  out->in_flight.assign(Size(s.ranks) * Size(s.chunks), 0);
  out->pinned = out->in_flight;
  out->in_flight_until_i.assign(Size(s.ranks), 0);
  for (std::size_t r = 0; r < lists.size(); ++r) {
    const std::size_t chunks = Size(s.chunks);
    Count until_w(chunks), until_i(chunks), pinned(chunks);
    std::int32_t* const held_here = &out->in_flight[r * chunks];
    std::int32_t* const pinned_here = &out->pinned[r * chunks];
    EachWork(lists[r], Of(skip, r), [&](const Work& work) {
      EachPartOf(work, [&](const Work& w) {
        switch (w.kind) {
          case WorkKind::kF:
            until_w.Change(w.chunk, 1, held_here);
            until_i.Change(w.chunk, 1, nullptr);
            break;
          case WorkKind::kI:
            pinned.Change(w.chunk, 1, pinned_here);
            until_i.Change(w.chunk, -1, nullptr);
            break;
          case WorkKind::kW:
            out->splits_backward = true;
            pinned.Change(w.chunk, -1, pinned_here);
            until_w.Change(w.chunk, -1, held_here);
            break;
          default:
            until_w.Change(w.chunk, -1, held_here);
            until_i.Change(w.chunk, -1, nullptr);
            break;
        }
      });
    });
    out->in_flight_until_i[r] = until_i.most();
  }
  // One chunk of which nothing waits holds most when most is in flight.
  if (!out->splits_backward && s.chunks == 1) return;
  out->states.resize(lists.size());
  for (std::size_t r = 0; r < lists.size(); ++r)
    out->states[r] = StatesOf(lists[r], Of(skip, r), s.chunks);
}

std::optional<Stretch> MiddleStretch(const std::vector<Work>& list, int* micro_batches) {
  const std::size_t n = list.size(), middle = n / 2;
  const Work* const work = list.data();
  for (std::size_t next = middle + 1; next < n; ++next) {
    const Work &a = work[middle], &b = work[next];
    const int period = b.micro_batch - a.micro_batch;
    if (a.kind != b.kind || a.chunk != b.chunk || period <= 0 ||
        (*micro_batches > 0 && period != *micro_batches))
      continue;
    const std::size_t length = next - middle;
    std::size_t begin = middle, end = next + 1;
    while (begin > 0 && IsLater(work[begin - 1], work[begin - 1 + length], period)) --begin;
    while (end < n && IsLater(work[end - length], work[end], period)) ++end;
    if (4 * (end - begin) < n) continue;
    *micro_batches = period;
    return Stretch{begin, end, length};
  }
  return std::nullopt;
}

}  // namespace shardlab
