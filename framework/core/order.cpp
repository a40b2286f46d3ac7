#include "core/order.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/order_fault.h"
#include "core/order_lists.h"

namespace shardlab {
namespace {

constexpr int kKinds = 4;

class OrderCompiler {
 public:
  OrderCompiler(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& lists,
                std::size_t length, const CompiledOrder* held)
      : schedule_(schedule), order_(lists), length_(length), held_(held) {
    out_.shape = shape;
  }

  absl::StatusOr<CompiledOrder> Run() {
    if (absl::Status status = PlaceLists(schedule_, order_, {}, &out_); !status.ok()) return status;
    stages_ = out_.stages;
    if (!IsComplete() || !Sort()) return WhyNot();
    CountPairs();
    if (held_ == nullptr) {
      CountHeld(order_, {}, &out_);
    } else {
      CopyHeld(*held_, &out_);
    }
    if (out_.shape.chunks > 1) FindChunkEnds();
    FindPeriod();
    return std::move(out_);
  }

 private:
  static std::size_t Size(int n) { return static_cast<std::size_t>(n); }
  int Stage(int rank, const Work& work) const {
    return out_.stage_of[Size(rank * out_.shape.chunks + work.chunk)];
  }
  std::size_t Slot(int stage, WorkKind kind, int micro_batch) const {
    return (Size(stage) * kKinds + Size(static_cast<int>(kind))) * Size(out_.shape.micro_batches) +
           Size(micro_batch);
  }
  void FindChunkEnds() {
    out_.chunk_last.assign(Size(out_.shape.ranks * out_.shape.chunks), -1);
    for (std::size_t i = 0; i < out_.events.size(); ++i) {
      const Work w = out_.works[i].kind == WorkKind::kFB ? out_.works[i].Backward() : out_.works[i];
      if (w.kind != WorkKind::kB && w.kind != WorkKind::kW) continue;
      out_.chunk_last[Size(out_.events[i].rank * out_.shape.chunks + w.chunk)] =
          static_cast<std::int32_t>(i);
    }
  }

  // Each stage owes F and either B, or I and W, of each micro-batch, once and on one rank.
  bool IsComplete() {
    const ScheduleShape& s = out_.shape;
    std::vector<std::uint8_t> seen(Size(stages_) * kKinds * Size(s.micro_batches), 0);
    std::vector<std::int32_t> owner(Size(stages_) * Size(s.micro_batches), -1);
    std::vector<std::int32_t> owes(out_.stage_of.size(), s.micro_batches / out_.copies);
    bool good = true;
    for (int r = 0; r < s.ranks; ++r) {
      for (const Work& work : order_[Size(r)]) {
        EachPartOf(work, [&](const Work& w) {
          const int stage = Stage(r, w);
          const std::int32_t chunk = r * s.chunks + w.chunk;
          std::int32_t& on = owner[Size(stage) * Size(s.micro_batches) + Size(w.micro_batch)];
          good = good && seen[Slot(stage, w.kind, w.micro_batch)]++ == 0 && (on < 0 || on == chunk);
          if (on < 0) --owes[Size(chunk)];
          on = chunk;
        });
      }
    }
    for (std::size_t at = 0; at < out_.stage_of.size() && good; ++at) {
      for (int m = 0; m < s.micro_batches; ++m) {
        const auto done = [&](WorkKind kind) {
          return seen[Slot(out_.stage_of[at], kind, m)] != 0;
        };
        const bool whole = done(WorkKind::kB);
        const bool input = done(WorkKind::kI), weight = done(WorkKind::kW);
        good = good && done(WorkKind::kF) && (whole ? !input && !weight : input && weight);
      }
      good = good && owes[at] == 0;
    }
    return good;
  }

  // In the order's own cells, as a schedule CSV names them.
  absl::Status WhyNot() const {
    std::vector<std::vector<OrderCell>> cells(order_.size());
    for (int r = 0; r < out_.shape.ranks; ++r) {
      for (const Work& work : order_[Size(r)]) {
        EachPartOf(work, [&](const Work& w) {
          const bool first = work.kind == WorkKind::kFB && w.kind == WorkKind::kF;
          cells[Size(r)].push_back({Stage(r, w), w.kind, w.micro_batch, first});
        });
      }
    }
    const std::optional<OrderFault> fault =
        FindOrderFault(cells, stages_, out_.shape.micro_batches);
    return absl::InvalidArgumentError(fault ? fault->message
                                            : "ranks do unequal shares of the micro-batches");
  }

  // The event that this work waits for; -1 when nothing, -2 when that is not done yet.
  int Awaited(int stage, const Work& w) const {
    const auto event = [&](int s, WorkKind kind) { return event_[Slot(s, kind, w.micro_batch)]; };
    const auto or_wait = [](std::int32_t e) { return e < 0 ? -2 : e; };
    switch (w.kind) {
      case WorkKind::kF:
        return stage == 0 ? -1 : or_wait(event(stage - 1, WorkKind::kF));
      case WorkKind::kW:
        return or_wait(event(stage, WorkKind::kI));
      default: {
        if (event(stage, WorkKind::kF) < 0) return -2;
        if (stage == stages_ - 1) return event(stage, WorkKind::kF);
        return or_wait(std::max(event(stage + 1, WorkKind::kB), event(stage + 1, WorkKind::kI)));
      }
    }
  }

  // False where something waits for ever.
  bool Sort() {
    const ScheduleShape& s = out_.shape;
    event_.assign(Size(stages_) * kKinds * Size(s.micro_batches), -1);
    std::vector<std::size_t> at(Size(s.ranks), 0);
    out_.first.assign(Size(s.ranks), -1);
    out_.last.assign(Size(s.ranks), -1);
    out_.sends.assign(2 * Size(s.ranks), 0);
    std::size_t works = 0;
    for (const std::vector<Work>& list : order_) works += list.size();
    out_.events.reserve(works);
    out_.works.reserve(works);
    bool moved = true;
    while (moved) {
      moved = false;
      for (int r = 0; r < s.ranks; ++r) {
        while (at[Size(r)] < order_[Size(r)].size()) {
          if (!Put(r, order_[Size(r)][at[Size(r)]])) break;
          ++at[Size(r)];
          moved = true;
          // In turns the events repeat as soon as the lists do; else rounds may be p times as long.
          if (length_ > 0) break;
        }
      }
    }
    for (int r = 0; r < s.ranks; ++r) {
      if (at[Size(r)] != order_[Size(r)].size()) return false;
    }
    return true;
  }

  // Puts a rank's next work behind all others; false when what it waits for is not there yet.
  bool Put(int r, const Work& w) {
    if (w.kind != WorkKind::kFB) {
      const int stage = Stage(r, w), waits = Awaited(stage, w);
      if (waits == -2) return false;
      event_[Slot(stage, w.kind, w.micro_batch)] =
          Add(r, w, waits, static_cast<std::uint32_t>(stage * kKinds + static_cast<int>(w.kind)));
      CountSend(r, waits, w.kind);
      return true;
    }
    const Work f = w.Forward(), b = w.Backward();
    const int stage_f = Stage(r, f), stage_b = Stage(r, b);
    const int waits_f = Awaited(stage_f, f), waits_b = Awaited(stage_b, b);
    if (waits_f == -2 || waits_b == -2) return false;
    // What was done on this rank is done: only others are waited for.
    const auto other = [&](int waits) {
      return waits >= 0 && out_.events[Size(waits)].rank != r ? waits : -1;
    };
    if (other(waits_f) >= 0 && other(waits_b) >= 0)
      Add(r, w, waits_f, static_cast<std::uint32_t>(out_.ZeroCost()));
    const std::int32_t id =
        Add(r, w, other(waits_b) >= 0 ? waits_b : other(waits_f), PairCost(stage_f, stage_b));
    event_[Slot(stage_f, WorkKind::kF, f.micro_batch)] = id;
    event_[Slot(stage_b, WorkKind::kB, b.micro_batch)] = id;
    CountSend(r, waits_f, WorkKind::kF);
    CountSend(r, waits_b, WorkKind::kB);
    return true;
  }

  std::int32_t Add(int r, const Work& w, int waits, std::uint32_t cost) {
    const auto id = static_cast<std::int32_t>(out_.events.size());
    const std::int32_t before = out_.last[Size(r)];
    CompiledOrder::Event event;
    event.before = static_cast<std::uint32_t>(before >= 0 ? before : waits >= 0 ? waits : id);
    event.waits = waits >= 0 ? static_cast<std::uint32_t>(waits) : event.before;
    event.cost = cost;
    event.rank = static_cast<std::uint16_t>(r);
    event.hop = waits >= 0 && out_.events[Size(waits)].rank != r ? 1 : 0;
    if (out_.first[Size(r)] < 0) out_.first[Size(r)] = id;
    out_.last[Size(r)] = id;
    out_.events.push_back(event);
    out_.works.push_back(w);
    return id;
  }

  std::uint32_t PairCost(int forward, int backward) {
    const std::pair<int, int> pair(forward, backward);
    auto it = std::find(out_.pairs.begin(), out_.pairs.end(), pair);
    if (it == out_.pairs.end()) it = out_.pairs.insert(it, pair);
    return static_cast<std::uint32_t>(out_.ZeroCost() + 1 +
                                      static_cast<std::size_t>(it - out_.pairs.begin()));
  }

  void CountPairs() {
    out_.pair_counts.assign(Size(out_.shape.ranks) * out_.pairs.size(), 0);
    for (const CompiledOrder::Event& event : out_.events) {
      if (event.cost > out_.ZeroCost())
        ++out_.pair_counts[event.rank * out_.pairs.size() + event.cost - out_.ZeroCost() - 1];
    }
  }

  void CountSend(int r, int waits, WorkKind kind) {
    if (waits < 0 || out_.events[Size(waits)].rank == r) return;
    ++out_.sends[2 * Size(out_.events[Size(waits)].rank) + (kind == WorkKind::kF ? 0 : 1)];
  }

  // An event as seen from itself: alike events wait for events equally far back.
  struct Seen {
    std::uint64_t what = 0, back = 0;
    bool operator==(const Seen& other) const { return what == other.what && back == other.back; }
  };
  void LookAtEvents() {
    seen_.resize(out_.events.size());
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const CompiledOrder::Event& e = out_.events[i];
      seen_[i] = {std::uint64_t{e.cost} << 32 | std::uint64_t{e.rank} << 16 | e.hop,
                  (i - e.before) << 32 | (i - e.waits)};
    }
  }
  bool Alike(std::size_t i, std::size_t j) const { return seen_[i] == seen_[j]; }

  // A stretch of a quarter of the order or more holds one of three events, and three periods: the
  // event is alike the one a period before or behind it. Shorter stretches save little.
  bool MayRepeat(std::size_t length) const {
    const std::size_t n = out_.events.size();
    for (const std::size_t at : {n / 2, n / 4, n - n / 4}) {
      if ((at >= length && at < n && Alike(at - length, at)) ||
          (at + length < n && Alike(at, at + length)))
        return true;
    }
    return false;
  }

  void FindPeriod() {
    const std::size_t n = out_.events.size();
    LookAtEvents();
    // A period has work of every rank; far longer ones than the ranks' own cycle do not occur in
    // practice.
    const std::size_t least = length_ > 0 ? length_ : Size(2 * out_.shape.ranks);
    const std::size_t most =
        length_ > 0 ? length_
                    : std::min<std::size_t>(n / 3, 16 * Size(out_.shape.ranks * out_.shape.chunks));
    std::size_t gain = 0;
    for (std::size_t length = least; length <= most; ++length) {
      if (length_ == 0 && !MayRepeat(length)) continue;
      std::size_t begin = 0;
      for (std::size_t i = 0; i + length <= n; ++i) {
        if (i + length < n && Alike(i, i + length)) continue;
        const std::size_t end = i + length;
        if (end - begin > std::max(gain, 3 * length)) {
          gain = end - begin;
          out_.period = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
                         static_cast<std::uint32_t>(length), 0};
        }
        begin = i + 1;
      }
      // The first length that repeats through most of the order is the shortest; its multiples are
      // no better.
      if (2 * gain > n) break;
    }
    CompiledOrder::Period& p = out_.period;
    std::size_t reach = 1;
    // Of one period: the others are alike.
    for (std::size_t i = p.begin; i < p.begin + p.length; ++i) {
      reach = std::max({reach, i - out_.events[i].before, i - out_.events[i].waits});
    }
    // What follows the stretch may look back into it, and the last events must not be skipped over.
    for (std::size_t i = p.end; i < n; ++i) {
      for (const std::size_t back : {out_.events[i].before, out_.events[i].waits}) {
        if (back < p.end) reach = std::max(reach, p.end - back);
      }
    }
    for (const std::int32_t last : out_.last) {
      if (Size(last) < p.end) reach = std::max(reach, p.end - Size(last));
    }
    for (const std::int32_t last : out_.chunk_last) {
      if (Size(last) >= p.begin && Size(last) < p.end) reach = std::max(reach, p.end - Size(last));
    }
    // Whole periods are skipped, so the window must hold wherever the skip ends.
    p.reach = static_cast<std::uint32_t>(reach + p.length);
    if (p.begin + p.reach + 2 * p.length > p.end) p = {};
  }

  const Schedule& schedule_;
  CompiledOrder out_;
  const ScheduleOrder& order_;
  const std::size_t length_;
  const CompiledOrder* const held_;
  std::vector<std::int32_t> event_;
  std::vector<Seen> seen_;  // [event]
  int stages_ = 1;
};

}  // namespace

absl::StatusOr<CompiledOrder> CompileOrder(const Schedule& schedule, const ScheduleShape& shape) {
  return CompileLists(schedule, shape, schedule.Order(shape));
}

absl::StatusOr<CompiledOrder> CompileLists(const Schedule& schedule, const ScheduleShape& shape,
                                           const ScheduleOrder& lists, std::size_t length,
                                           const CompiledOrder* held) {
  return OrderCompiler(schedule, shape, lists, length, held).Run();
}

}  // namespace shardlab
