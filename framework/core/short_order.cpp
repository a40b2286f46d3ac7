#include "core/short_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/order_lists.h"

namespace shardlab {
namespace {

using List = std::vector<Work>;

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

class Shortener {
 public:
  Shortener(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& lists,
            const CompiledOrder* outline)
      : schedule_(schedule), shape_(shape), lists_(lists), outline_(outline) {}

  // False: the lists are not known to repeat.
  bool Find() {
    if (lists_.size() != Size(shape_.ranks)) return false;
    for (const List& list : lists_) {
      const std::optional<Stretch> stretch = MiddleStretch(list, &period_);
      if (!stretch) return false;
      stretches_.push_back(*stretch);
    }
    return true;
  }

  // Compiled with so many periods of the shortest stretch.
  std::optional<CompiledOrder> With(std::size_t periods) const {
    std::size_t out = shape_.micro_batches;
    for (const Stretch& s : stretches_) {
      const std::size_t here = (s.end - s.begin) / s.length;
      out = std::min(out, here > periods ? here - periods : 0);
    }
    const auto left_out = static_cast<int>(out) * period_;
    if (4 * left_out < shape_.micro_batches || left_out >= shape_.micro_batches)
      return std::nullopt;
    ScheduleShape shape = shape_;
    shape.micro_batches -= left_out;
    ScheduleOrder order;
    std::size_t length = 0;
    for (std::size_t r = 0; r < lists_.size(); ++r) {
      const Stretch& s = stretches_[r];
      const auto at = [&](std::size_t i) {
        return lists_[r].begin() + static_cast<std::ptrdiff_t>(i);
      };
      List list(at(0), at(s.begin));
      list.insert(list.end(), at(s.begin + out * s.length), lists_[r].end());
      for (std::size_t i = s.begin; i < list.size(); ++i) list[i].micro_batch -= left_out;
      order.push_back(std::move(list));
      length += s.length;
    }
    absl::StatusOr<CompiledOrder> compiled =
        CompileLists(schedule_, shape, order, length, outline_);
    if (!compiled.ok() || !compiled->pairs.empty() || compiled->copies != 1 ||
        compiled->period.length == 0 || compiled->stages != schedule_.Stages(shape_) ||
        !SamePlaces(*compiled) || !Repeats(*compiled) || !Equal(order, *compiled, out) ||
        !Whole(*compiled))
      return std::nullopt;
    AddSends(out, &*compiled);
    compiled->shape = shape_;
    compiled->period.more = static_cast<std::uint32_t>(out);
    return *std::move(compiled);
  }

 private:
  bool SamePlaces(const CompiledOrder& order) const {
    for (int r = 0; r < shape_.ranks; ++r) {
      for (int c = 0; c < shape_.chunks; ++c) {
        if (order.stage_of[Size(r * shape_.chunks + c)] != schedule_.StageOf(shape_, r, c))
          return false;
      }
    }
    return true;
  }

  // Events that are alike are the same work, so many micro-batches later. What each waits for is
  // alike too (CompiledOrder::Period), so that a period more has its own works wait for one another
  // as the last one's do.
  bool Repeats(const CompiledOrder& order) const {
    const CompiledOrder::Period& p = order.period;
    for (std::size_t i = p.begin; i + p.length < p.end; ++i) {
      if (!IsLater(order.works[i], order.works[i + p.length], period_)) return false;
    }
    return true;
  }

  // Each rank's list is the short one with so many more of its last period: work by work.
  bool Equal(const ScheduleOrder& order, const CompiledOrder& compiled, std::size_t more) const {
    const CompiledOrder::Period& p = compiled.period;
    std::vector<std::size_t> until(lists_.size(), 0), length(lists_.size(), 0);
    for (std::size_t i = 0; i < p.end; ++i) {
      ++until[compiled.events[i].rank];
      if (i >= p.end - p.length) ++length[compiled.events[i].rank];
    }
    const int later = static_cast<int>(more) * period_;
    for (std::size_t r = 0; r < lists_.size(); ++r) {
      const List &full = lists_[r], &part = order[r];
      const std::size_t inserted = more * length[r];
      if (full.size() != part.size() + inserted) return false;
      for (std::size_t i = 0; i < until[r]; ++i) {
        if (full[i] != part[i]) return false;
      }
      for (std::size_t i = until[r]; i < until[r] + inserted; ++i) {
        if (!IsLater(full[i - length[r]], full[i], period_)) return false;
      }
      for (std::size_t i = until[r]; i < part.size(); ++i) {
        if (!IsLater(part[i], full[i + inserted], later)) return false;
      }
    }
    return true;
  }

  // The order without the periods does all work once (CompileLists). So does the one with them, if
  // of the micro-batches that are equal modulo a period's the last before them is in the last
  // period and the next behind: once for F, once for what has an I, once for what has a W.
  bool Whole(const CompiledOrder& order) const {
    const CompiledOrder::Period& p = order.period;
    const std::size_t residues = Size(period_);
    const std::size_t slots = lists_.size() * Size(shape_.chunks) * 3 * residues;
    constexpr int kFar = 1 << 30;
    std::vector<int> before(slots, -1), behind(slots, kFar), last(slots, -1);
    for (std::size_t i = 0; i < order.works.size(); ++i) {
      const Work& w = order.works[i];
      const bool f = w.kind == WorkKind::kF, b = w.kind == WorkKind::kB;
      const std::array<bool, 3> is = {f, b || w.kind == WorkKind::kI, b || w.kind == WorkKind::kW};
      for (std::size_t k = 0; k < is.size(); ++k) {
        if (!is[k]) continue;
        const std::size_t chunk = order.events[i].rank * Size(shape_.chunks) + Size(w.chunk);
        const std::size_t slot = (chunk * 3 + k) * residues + Size(w.micro_batch % period_);
        if (i >= p.end) {
          behind[slot] = std::min(behind[slot], w.micro_batch);
          continue;
        }
        before[slot] = std::max(before[slot], w.micro_batch);
        if (i + p.length < p.end) continue;
        if (last[slot] >= 0) return false;
        last[slot] = w.micro_batch;
      }
    }
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (last[slot] < 0 || last[slot] != before[slot] || behind[slot] <= before[slot])
        return false;
    }
    return true;
  }

  void AddSends(std::size_t more, CompiledOrder* order) const {
    const CompiledOrder::Period& p = order->period;
    for (std::size_t i = p.end - p.length; i < p.end; ++i) {
      const CompiledOrder::Event& event = order->events[i];
      if (event.hop == 0) continue;
      const std::size_t from = order->events[event.waits].rank;
      order->sends[2 * from + (order->works[i].kind == WorkKind::kF ? 0 : 1)] +=
          static_cast<std::int32_t>(more);
    }
  }

  const Schedule& schedule_;
  const ScheduleShape& shape_;
  const ScheduleOrder& lists_;
  const CompiledOrder* const outline_;
  int period_ = 0;  // micro-batches
  std::vector<Stretch> stretches_;
};

// Whole periods behind the first that leave in flight what was: no state is lost with them.
Repetition RepetitionOf(const List& list, int chunks) {
  int period = 0;
  const std::optional<Stretch> stretch = MiddleStretch(list, &period);
  if (!stretch) return {};
  std::vector<int> more(3 * Size(chunks), 0);
  for (std::size_t i = stretch->begin; i < stretch->begin + stretch->length; ++i) {
    const Work& w = list[i];
    if (w.chunk < 0 || w.chunk >= chunks) return {};
    int* const of = &more[3 * Size(w.chunk)];
    switch (w.kind) {
      case WorkKind::kF:
        ++of[0];
        break;
      case WorkKind::kI:
        ++of[1];
        break;
      case WorkKind::kW:
        --of[0];
        --of[1];
        break;
      case WorkKind::kB:
        --of[0];
        break;
      default:
        return {};
    }
  }
  if (std::any_of(more.begin(), more.end(), [](int n) { return n != 0; })) return {};
  const std::size_t periods = (stretch->end - stretch->begin) / stretch->length;
  return {stretch->begin + stretch->length, stretch->begin + periods * stretch->length,
          stretch->length};
}

// Which pairs there are, and how many of each on each rank.
void CountPairs(const ScheduleOrder& lists, const std::vector<Repetition>& skip,
                CompiledOrder* out) {
  std::map<std::pair<int, int>, std::vector<std::int32_t>> counts;
  for (std::size_t r = 0; r < lists.size(); ++r) {
    const std::int32_t* const stage = &out->stage_of[r * Size(out->shape.chunks)];
    for (std::size_t i = 0; i < lists[r].size(); ++i) {
      if (i == skip[r].at && skip[r].to > skip[r].at) i = skip[r].to - skip[r].length;
      const Work& w = lists[r][i];
      if (w.kind != WorkKind::kFB) continue;
      std::vector<std::int32_t>& of = counts[{stage[w.chunk], stage[w.backward_chunk]}];
      of.resize(lists.size());
      ++of[r];
    }
  }
  for (const auto& [pair, of] : counts) out->pairs.push_back(pair);
  for (std::size_t r = 0; r < lists.size(); ++r) {
    for (const auto& [pair, of] : counts) out->pair_counts.push_back(of[r]);
  }
}

}  // namespace

absl::StatusOr<CompiledOrder> OutlineOrder(const Schedule& schedule, const ScheduleShape& shape) {
  const ScheduleOrder lists = schedule.Order(shape);
  CompiledOrder out;
  out.shape = shape;
  std::vector<Repetition> skip;
  for (const List& list : lists) skip.push_back(RepetitionOf(list, shape.chunks));
  if (absl::Status status = PlaceLists(schedule, lists, skip, &out); !status.ok()) return status;
  CountHeld(lists, skip, &out);
  CountPairs(lists, skip, &out);
  return out;
}

absl::StatusOr<CompiledOrder> CompileShortOrder(const Schedule& schedule,
                                                const ScheduleShape& shape,
                                                const CompiledOrder* outline) {
  const ScheduleOrder lists = schedule.Order(shape);
  Shortener shortener(schedule, shape, lists, outline);
  if (shortener.Find()) {
    // Where weight gradients wait, each for its rank's own number of passes, it is some periods for
    // each rank until all are in step: with fewer nothing repeats.
    const std::vector<int> tried = outline != nullptr && outline->splits_backward
                                       ? std::vector<int>{3 * shape.ranks}
                                       : std::vector<int>{5, 10, 3 * shape.ranks};
    for (const int periods : tried) {
      if (std::optional<CompiledOrder> order = shortener.With(Size(periods)))
        return *std::move(order);
    }
  }
  return CompileLists(schedule, shape, lists, 0, outline);
}

}  // namespace shardlab
