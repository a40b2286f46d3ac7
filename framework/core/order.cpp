#include "core/order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

constexpr int kKinds = 4;
constexpr const char* kLetters[kKinds] = {"F", "I", "W", "B"};

class OrderCompiler {
 public:
  OrderCompiler(const Schedule& schedule, const ScheduleShape& shape) : schedule_(schedule) {
    out_.shape = shape;
    stages_ = shape.ranks * shape.chunks;
  }

  absl::StatusOr<CompiledOrder> Run() {
    const ScheduleShape& s = out_.shape;
    order_ = schedule_.Order(s);
    if (order_.size() != Size(s.ranks)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the order has ", order_.size(), " ranks instead of ", s.ranks));
    }
    for (int r = 0; r < s.ranks; ++r) {
      for (int c = 0; c < s.chunks; ++c) out_.stage_of.push_back(schedule_.StageOf(s, r, c));
    }
    if (absl::Status status = Check(); !status.ok()) return status;
    if (absl::Status status = Sort(); !status.ok()) return status;
    CountInFlight();
    FindPeriod();
    return std::move(out_);
  }

 private:
  static std::size_t Size(long long n) { return static_cast<std::size_t>(n); }
  int Stage(int rank, const Work& work) const {
    return out_.stage_of[Size(rank * out_.shape.chunks + work.chunk)];
  }
  std::size_t Slot(int stage, WorkKind kind, int micro_batch) const {
    return (Size(stage) * kKinds + Size(static_cast<int>(kind))) * Size(out_.shape.micro_batches) +
           Size(micro_batch);
  }
  static std::string Cell(int rank, const Work& w) {
    return absl::StrCat("rank ", rank, ", ", kLetters[static_cast<int>(w.kind)], " of chunk ",
                        w.chunk, ", micro-batch ", w.micro_batch);
  }

  // Each rank owes F and either B, or I and W, of each of its chunks and micro-batches, once.
  absl::Status Check() {
    const ScheduleShape& s = out_.shape;
    std::vector<std::uint8_t> seen(Size(stages_) * kKinds * Size(s.micro_batches), 0);
    for (int r = 0; r < s.ranks; ++r) {
      for (const Work& w : order_[Size(r)]) {
        if (w.chunk < 0 || w.chunk >= s.chunks || w.micro_batch < 0 ||
            w.micro_batch >= s.micro_batches) {
          return absl::InvalidArgumentError(absl::StrCat(Cell(r, w), ": there is no such work"));
        }
        std::uint8_t& count = seen[Slot(Stage(r, w), w.kind, w.micro_batch)];
        if (count++ != 0)
          return absl::InvalidArgumentError(absl::StrCat(Cell(r, w), ": done twice"));
      }
    }
    for (int r = 0; r < s.ranks; ++r) {
      for (int c = 0; c < s.chunks; ++c) {
        for (int m = 0; m < s.micro_batches; ++m) {
          const int stage = out_.stage_of[Size(r * s.chunks + c)];
          const auto done = [&](WorkKind kind) { return seen[Slot(stage, kind, m)] != 0; };
          const bool whole = done(WorkKind::kB), split = done(WorkKind::kI) && done(WorkKind::kW);
          const bool mixed = whole && (done(WorkKind::kI) || done(WorkKind::kW));
          if (!done(WorkKind::kF) || mixed || (!whole && !split)) {
            return absl::InvalidArgumentError(
                absl::StrCat("rank ", r, ", chunk ", c, ", micro-batch ", m,
                             ": needs one F, and one B or one I and one W"));
          }
        }
      }
    }
    return absl::OkStatus();
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

  absl::Status Sort() {
    const ScheduleShape& s = out_.shape;
    event_.assign(Size(stages_) * kKinds * Size(s.micro_batches), -1);
    std::vector<std::size_t> at(Size(s.ranks), 0);
    out_.first.assign(Size(s.ranks), -1);
    out_.last.assign(Size(s.ranks), -1);
    bool moved = true;
    while (moved) {
      moved = false;
      for (int r = 0; r < s.ranks; ++r) {
        for (; at[Size(r)] < order_[Size(r)].size(); ++at[Size(r)]) {
          const Work& w = order_[Size(r)][at[Size(r)]];
          const int stage = Stage(r, w);
          const int waits = Awaited(stage, w);
          if (waits == -2) break;
          const auto id = static_cast<std::int32_t>(out_.events.size());
          const std::int32_t before = out_.last[Size(r)];
          CompiledOrder::Event event;
          event.before = static_cast<std::uint32_t>(before >= 0 ? before : waits >= 0 ? waits : id);
          event.waits = waits >= 0 ? static_cast<std::uint32_t>(waits) : event.before;
          event.cost = static_cast<std::uint32_t>(stage * kKinds + static_cast<int>(w.kind));
          event.rank = static_cast<std::uint16_t>(r);
          event.hop = waits >= 0 && out_.events[Size(waits)].rank != r ? 1 : 0;
          event_[Slot(stage, w.kind, w.micro_batch)] = id;
          if (out_.first[Size(r)] < 0) out_.first[Size(r)] = id;
          out_.last[Size(r)] = id;
          out_.events.push_back(event);
          moved = true;
        }
      }
    }
    for (int r = 0; r < s.ranks; ++r) {
      if (at[Size(r)] == order_[Size(r)].size()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Cell(r, order_[Size(r)][at[Size(r)]]),
                       ": waits for work that is never done before it (deadlock)"));
    }
    return absl::OkStatus();
  }

  // Chunks whose saved tensors live, forward to the end of B or W, at the instant when the rank
  // holds most.
  void CountInFlight() {
    const ScheduleShape& s = out_.shape;
    out_.in_flight.assign(Size(s.ranks) * Size(s.chunks), 0);
    for (int r = 0; r < s.ranks; ++r) {
      std::vector<std::int32_t> held(Size(s.chunks), 0);
      int total = 0, most = 0;
      for (const Work& w : order_[Size(r)]) {
        if (w.kind == WorkKind::kI) continue;
        const int change = w.kind == WorkKind::kF ? 1 : -1;
        held[Size(w.chunk)] += change;
        total += change;
        if (total <= most) continue;
        most = total;
        std::copy(held.begin(), held.end(), out_.in_flight.begin() + r * s.chunks);
      }
    }
  }

  // An event as seen from itself: alike events wait for events equally far back.
  bool Alike(std::size_t i, std::size_t j) const {
    const CompiledOrder::Event &a = out_.events[i], &b = out_.events[j];
    return a.rank == b.rank && a.cost == b.cost && a.hop == b.hop && i - a.before == j - b.before &&
           i - a.waits == j - b.waits;
  }

  void FindPeriod() {
    const std::size_t n = out_.events.size();
    // A period has work of every rank; far longer ones than the ranks' own cycle do not occur in
    // practice.
    const std::size_t most =
        std::min<std::size_t>(n / 3, 16 * Size(out_.shape.ranks * out_.shape.chunks));
    std::size_t gain = 0;
    for (std::size_t length = Size(2 * out_.shape.ranks); length <= most; ++length) {
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
    for (std::size_t i = p.begin; i < p.end; ++i) {
      reach = std::max({reach, i - out_.events[i].before, i - out_.events[i].waits});
    }
    // What follows the stretch may look back into it, and the last events must not be skipped over.
    for (std::size_t i = p.end; i < n; ++i) {
      for (const std::size_t back : {Size(out_.events[i].before), Size(out_.events[i].waits)}) {
        if (back < p.end) reach = std::max(reach, p.end - back);
      }
    }
    for (const std::int32_t last : out_.last) {
      if (Size(last) < p.end) reach = std::max(reach, p.end - Size(last));
    }
    // Whole periods are skipped, so the window must hold wherever the skip ends.
    p.reach = static_cast<std::uint32_t>(reach + p.length);
    if (p.begin + p.reach + 2 * p.length > p.end) p = {};
  }

  const Schedule& schedule_;
  CompiledOrder out_;
  ScheduleOrder order_;
  std::vector<std::int32_t> event_;
  int stages_ = 1;
};

}  // namespace

absl::StatusOr<CompiledOrder> CompileOrder(const Schedule& schedule, const ScheduleShape& shape) {
  return OrderCompiler(schedule, shape).Run();
}

namespace {

// Plays events [from, to).
inline void PlayRange(const CompiledOrder& order, std::size_t from, std::size_t to,
                      const double* cost, double hop, double* end) {
  const double lag[2] = {0, hop};
  for (std::size_t i = from; i < to; ++i) {
    const CompiledOrder::Event& e = order.events[i];
    end[i] = std::max(end[e.before], end[e.waits] + lag[e.hop]) + cost[e.cost];
  }
}

}  // namespace

void PlayOrder(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends) {
  for (const std::int32_t first : order.first) ends[static_cast<std::size_t>(first)] = 0;
  PlayRange(order, 0, order.events.size(), costs.data(), hop, ends.data());
}

void PlayToEnd(const CompiledOrder& order, absl::Span<const double> costs, double hop,
               absl::Span<double> ends) {
  for (const std::int32_t first : order.first) ends[static_cast<std::size_t>(first)] = 0;
  double* const end = ends.data();
  const CompiledOrder::Period& period = order.period;
  std::size_t at = 0;
  if (period.length > 0) {
    const std::size_t length = period.length, reach = period.reach;
    // The window of `reach` events before `at` and the one a period earlier must lie in the
    // periodic stretch.
    at = period.begin + reach + length;
    PlayRange(order, 0, std::min<std::size_t>(at, period.end), costs.data(), hop, end);
    for (; at + length <= period.end; at += length) {
      const double shift = end[at - 1] - end[at - 1 - length];
      const double allowed = 1e-14 * end[at - 1];
      bool repeats = true;
      for (std::size_t i = at - reach; i < at && repeats; ++i) {
        const double off = end[i] - end[i - length] - shift;
        repeats = off <= allowed && -off <= allowed;
      }
      if (repeats) {
        const std::size_t skipped = (period.end - at) / length;
        const std::size_t to = at + skipped * length;
        for (std::size_t i = 1; i <= reach; ++i)
          end[to - i] = end[at - i] + static_cast<double>(skipped) * shift;
        at = to;
        break;
      }
      PlayRange(order, at, at + length, costs.data(), hop, end);
    }
    at = std::min<std::size_t>(at, period.end);
  }
  PlayRange(order, at, order.events.size(), costs.data(), hop, end);
}

}  // namespace shardlab
