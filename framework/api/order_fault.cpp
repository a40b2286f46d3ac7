#include "api/order_fault.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

using Fault = std::optional<OrderFault>;
using Position = OrderPosition;

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

std::string Count(long long n, const char* one) {
  return absl::StrCat(n, " ", one, n == 1 ? "" : "s");
}

class Finder {
 public:
  Finder(const std::vector<std::vector<OrderCell>>& order, int stages, int micro_batches)
      : order_(order), stages_(stages), micro_batches_(micro_batches) {
    for (int rank = 0; rank < static_cast<int>(order.size()); ++rank) {
      const auto& list = order[Size(rank)];
      for (int index = 0; index < static_cast<int>(list.size()); ++index) {
        cells_.push_back({Key(list[Size(index)]), {rank, index}});
        stages_ = std::max(stages_, list[Size(index)].stage + 1);
        micro_batches_ = std::max(micro_batches_, list[Size(index)].micro_batch + 1);
      }
    }
    // Stable: of two alike the first in the order comes first.
    std::stable_sort(cells_.begin(), cells_.end(),
                     [](const Known& a, const Known& b) { return a.key < b.key; });
  }

  Fault Find() {
    if (Fault fault = Doubled()) return fault;
    if (Fault fault = First(&Finder::BackwardAlone)) return fault;
    if (Fault fault = First(&Finder::ForwardAlone)) return fault;
    if (Fault fault = First(&Finder::NeighbourMissing)) return fault;
    if (Fault fault = MicroBatchMissing()) return fault;
    if (Fault fault = UnequalStages()) return fault;
    return Deadlock();
  }

 private:
  using CellKey = std::tuple<int, int, int>;  // stage, micro-batch, kind
  struct Known {
    CellKey key;
    Position at;
    bool done = false;              // while playing
    std::vector<int> waiting = {};  // ranks that wait for it
  };

  static CellKey Key(const OrderCell& c) {
    return {c.stage, c.micro_batch, static_cast<int>(c.kind)};
  }
  const OrderCell& At(Position p) const { return order_[Size(p.rank)][Size(p.index)]; }

  // The first cell of this kind; null when no rank has it.
  Known* Look(int stage, WorkKind kind, int micro_batch) {
    const CellKey key{stage, micro_batch, static_cast<int>(kind)};
    const auto found =
        std::lower_bound(cells_.begin(), cells_.end(), key,
                         [](const Known& known, const CellKey& k) { return known.key < k; });
    return found != cells_.end() && found->key == key ? &*found : nullptr;
  }
  // The input gradient, by itself or with the weight gradient.
  Known* LookInputGradient(int stage, int micro_batch) {
    Known* const whole = Look(stage, WorkKind::kB, micro_batch);
    return whole != nullptr ? whole : Look(stage, WorkKind::kI, micro_batch);
  }
  static std::string Text(int stage, WorkKind kind, int micro_batch) {
    return CellText({stage, kind, micro_batch, false});
  }

  // The first cell from rank 0 on of which the check says something.
  Fault First(Fault (Finder::*check)(Position, const OrderCell&)) {
    for (int rank = 0; rank < static_cast<int>(order_.size()); ++rank) {
      for (int index = 0; index < static_cast<int>(order_[Size(rank)].size()); ++index) {
        const Position at{rank, index};
        if (Fault fault = (this->*check)(at, At(at))) return fault;
      }
    }
    return std::nullopt;
  }

  static bool Before(Position a, Position b) {
    return std::tie(a.rank, a.index) < std::tie(b.rank, b.index);
  }

  // --- each cell once
  Fault Doubled() {
    const Known *first = nullptr, *second = nullptr;
    const auto note = [&](const Known* a, const Known* b) {
      if (b == nullptr) return;
      if (Before(b->at, a->at)) std::swap(a, b);
      if (second != nullptr && !Before(b->at, second->at)) return;
      first = a;
      second = b;
    };
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (i > 0 && cells_[i].key == cells_[i - 1].key) note(&cells_[i - 1], &cells_[i]);
      const OrderCell& cell = At(cells_[i].at);
      if (cell.kind != WorkKind::kB) continue;
      note(&cells_[i], Look(cell.stage, WorkKind::kI, cell.micro_batch));
      note(&cells_[i], Look(cell.stage, WorkKind::kW, cell.micro_batch));
    }
    if (second == nullptr) return std::nullopt;
    if (Fault wrong = WrongRank(*first, *second)) return wrong;
    const std::string cell = CellText(At(second->at)), other = CellText(At(first->at));
    const bool same_rank = first->at.rank == second->at.rank;
    std::string message = absl::StrCat("rank ", second->at.rank, " does ", cell,
                                       same_rank ? " twice" : " again, as rank ",
                                       same_rank ? "" : absl::StrCat(first->at.rank, " did"));
    if (cell != other) {
      absl::StrAppend(&message, ": ", other,
                      At(first->at).kind == WorkKind::kB ? " holds it already" : " is part of it");
    }
    return OrderFault{std::move(message), second->at, first->at, "leave one of the two out"};
  }

  // Of two alike on two ranks: the one whose rank does not do the rest of the stage's micro-batch.
  Fault WrongRank(const Known& a, const Known& b) {
    if (a.at.rank == b.at.rank) return std::nullopt;
    const auto belongs = [&](Position at) {
      const OrderCell& c = At(at);
      return std::any_of(cells_.begin(), cells_.end(), [&](const Known& known) {
        const OrderCell& other = At(known.at);
        return known.at.rank == at.rank && other.stage == c.stage &&
               other.micro_batch == c.micro_batch && other.kind != c.kind;
      });
    };
    const bool first = belongs(a.at), second = belongs(b.at);
    if (first == second) return std::nullopt;
    const Position wrong = first ? b.at : a.at, right = first ? a.at : b.at;
    return OrderFault{absl::StrCat("rank ", wrong.rank, " does ", CellText(At(wrong)),
                                   ", of another rank's stage: rank ", right.rank,
                                   " does it too, and all else of stage ", At(wrong).stage,
                                   " for micro-batch ", At(wrong).micro_batch),
                      wrong, right, "leave it out, or write the stage that this rank holds"};
  }

  // --- F and either B, or I and W, on one rank
  Fault BackwardAlone(Position at, const OrderCell& c) {
    if (c.kind == WorkKind::kF) return std::nullopt;
    const Known* const forward = Look(c.stage, WorkKind::kF, c.micro_batch);
    const std::string text = Text(c.stage, WorkKind::kF, c.micro_batch);
    if (forward == nullptr) {
      return OrderFault{absl::StrCat("rank ", at.rank, " cannot do ", CellText(c),
                                     ": its forward, ", text, ", is missing on every rank"),
                        at, std::nullopt,
                        absl::StrCat("add ", text, " on rank ", at.rank, " before it, or leave ",
                                     CellText(c), " out")};
    }
    if (forward->at.rank == at.rank) return std::nullopt;
    return OrderFault{absl::StrCat("rank ", at.rank, " cannot do ", CellText(c), ": its forward, ",
                                   text, ", is done on rank ", forward->at.rank,
                                   ", which alone holds what was saved for it"),
                      at, forward->at,
                      absl::StrCat("move ", CellText(c), " to rank ", forward->at.rank, ", or ",
                                   text, " to rank ", at.rank)};
  }

  Fault ForwardAlone(Position at, const OrderCell& c) {
    if (c.kind != WorkKind::kF) return std::nullopt;
    const auto text = [&](WorkKind kind) { return Text(c.stage, kind, c.micro_batch); };
    const auto has = [&](WorkKind kind) { return Look(c.stage, kind, c.micro_batch) != nullptr; };
    if (has(WorkKind::kB) || (has(WorkKind::kI) && has(WorkKind::kW))) return std::nullopt;
    std::string missing =
        has(WorkKind::kI)   ? absl::StrCat("its weight gradient, ", text(WorkKind::kW), ",")
        : has(WorkKind::kW) ? absl::StrCat("its input gradient, ", text(WorkKind::kI), ",")
                            : absl::StrCat("its backward, ", text(WorkKind::kB), " or ",
                                           text(WorkKind::kI), " and ", text(WorkKind::kW), ",");
    return OrderFault{
        absl::StrCat("rank ", at.rank, " does ", CellText(c), ", and ", missing, " is missing"), at,
        std::nullopt, absl::StrCat("add it on rank ", at.rank, ", behind the forward")};
  }

  // --- every stage does every micro-batch
  Fault NeighbourMissing(Position at, const OrderCell& c) {
    if (c.kind == WorkKind::kF) {
      if (c.stage == 0 || Look(c.stage - 1, WorkKind::kF, c.micro_batch)) return std::nullopt;
      return OrderFault{
          absl::StrCat("rank ", at.rank, " cannot do ", CellText(c), ": it waits for ",
                       Text(c.stage - 1, WorkKind::kF, c.micro_batch),
                       ", which is missing on every rank"),
          at, std::nullopt,
          absl::StrCat("add it on the rank of stage ", c.stage - 1, ", or leave out stage ",
                       c.stage, " of micro-batch ", c.micro_batch)};
    }
    if (c.kind == WorkKind::kW || c.stage + 1 >= stages_ ||
        LookInputGradient(c.stage + 1, c.micro_batch) != nullptr)
      return std::nullopt;
    return OrderFault{
        absl::StrCat("rank ", at.rank, " cannot do ", CellText(c), ": it waits for ",
                     Text(c.stage + 1, WorkKind::kB, c.micro_batch), " or ",
                     Text(c.stage + 1, WorkKind::kI, c.micro_batch),
                     ", which is missing on every rank"),
        at, std::nullopt,
        absl::StrCat("add it on the rank of stage ", c.stage + 1, ", or leave that stage out")};
  }

  // What one stage does all do, by now.
  Fault MicroBatchMissing() {
    int missing = 0;
    while (missing < micro_batches_ && Look(0, WorkKind::kF, missing) != nullptr) ++missing;
    if (missing == micro_batches_) return std::nullopt;
    const auto later = [&](Position at, const OrderCell& c) -> Fault {
      if (c.micro_batch < missing) return std::nullopt;
      return OrderFault{absl::StrCat("rank ", at.rank, " does ", CellText(c), " of micro-batch ",
                                     c.micro_batch, ", and no rank does anything of micro-batch ",
                                     missing, ": they count from 0 without a gap"),
                        at, std::nullopt,
                        absl::StrCat("add micro-batch ", missing,
                                     ", or number those there are from 0 without a gap")};
    };
    for (int rank = 0; rank < static_cast<int>(order_.size()); ++rank) {
      for (int index = 0; index < static_cast<int>(order_[Size(rank)].size()); ++index) {
        if (Fault fault = later({rank, index}, At({rank, index}))) return fault;
      }
    }
    const Known* const first = Look(0, WorkKind::kF, 0);
    const int rank = first != nullptr ? first->at.rank : 0;
    return OrderFault{absl::StrCat("rank ", rank, " ends without ", Text(0, WorkKind::kF, missing),
                                   ": no rank does anything of "
                                   "micro-batch ",
                                   missing, " of ", micro_batches_),
                      {rank, order_.empty() ? 0 : static_cast<int>(order_[Size(rank)].size())},
                      std::nullopt,
                      absl::StrCat("add micro-batch ", missing, " of every stage")};
  }

  // --- ranks hold equally many stages, stages lie on equally many ranks and share equally
  Fault UnequalStages() {
    std::map<std::pair<int, int>, int> forwards;  // [rank, stage]
    std::vector<int> held(order_.size(), 0), holders(Size(stages_), 0);
    for (const Known& known : cells_) {
      const OrderCell& c = At(known.at);
      if (c.kind != WorkKind::kF || forwards[{known.at.rank, c.stage}]++ != 0) continue;
      ++held[Size(known.at.rank)];
      ++holders[Size(c.stage)];
    }
    for (int rank = 0; rank < static_cast<int>(held.size()); ++rank) {
      if (held[Size(rank)] == held[0] && held[0] > 0) continue;
      return OrderFault{
          absl::StrCat("rank ", rank, " does work of ", Count(held[Size(rank)], "stage"),
                       rank == 0 ? "" : absl::StrCat(" and rank 0 of ", held[0]),
                       ": each rank holds as many"),
          {rank, 0},
          std::nullopt,
          "give every rank as many stages"};
    }
    const int copies = holders.empty() ? 1 : holders[0];
    for (const auto& [key, count] : forwards) {
      const int rank = key.first, stage = key.second;
      const bool evenly = holders[Size(stage)] == copies && count * copies == micro_batches_;
      if (evenly) continue;
      Position place{rank, 0};
      while (At(place).stage != stage) ++place.index;
      return OrderFault{
          absl::StrCat("rank ", rank, " does ", count, " of ", micro_batches_,
                       " micro-batches of stage ", stage, ", which ",
                       Count(holders[Size(stage)], "rank"), " hold",
                       holders[Size(stage)] == 1 ? "s" : "", "; stage 0 lies on ", copies,
                       ": stages lie on equally many ranks, which do equal shares"),
          place, std::nullopt, "do all micro-batches of a stage on one rank, or equal shares"};
    }
    return std::nullopt;
  }

  // --- nothing waits for ever
  // What a cell waits for and is not done yet.
  Known* Awaited(const OrderCell& c) {
    const auto pending = [](Known* known) {
      return known == nullptr || known->done ? nullptr : known;
    };
    if (c.kind == WorkKind::kW) return pending(Look(c.stage, WorkKind::kI, c.micro_batch));
    if (c.kind == WorkKind::kF)
      return c.stage == 0 ? nullptr : pending(Look(c.stage - 1, WorkKind::kF, c.micro_batch));
    if (Known* const forward = pending(Look(c.stage, WorkKind::kF, c.micro_batch))) return forward;
    return c.stage + 1 == stages_ ? nullptr
                                  : pending(LookInputGradient(c.stage + 1, c.micro_batch));
  }

  // Of a rank's next cell, and of the second of a pair; the cell that waits goes to `at`.
  Known* AwaitedAt(Position* at) {
    Known* awaited = Awaited(At(*at));
    if (awaited == nullptr && At(*at).with_next) {
      awaited = Awaited(At({at->rank, at->index + 1}));
      if (awaited != nullptr) ++at->index;
    }
    return awaited;
  }

  Fault Deadlock() {
    std::vector<int> next(order_.size(), 0), runnable;
    for (int rank = static_cast<int>(order_.size()) - 1; rank >= 0; --rank)
      runnable.push_back(rank);
    std::vector<const Known*> stuck_on(order_.size(), nullptr);
    std::vector<Position> stuck_at(order_.size());
    while (!runnable.empty()) {
      const int rank = runnable.back();
      runnable.pop_back();
      stuck_on[Size(rank)] = nullptr;
      while (next[Size(rank)] < static_cast<int>(order_[Size(rank)].size())) {
        Position at{rank, next[Size(rank)]};
        if (Known* const awaited = AwaitedAt(&at)) {
          awaited->waiting.push_back(rank);
          stuck_on[Size(rank)] = awaited;
          stuck_at[Size(rank)] = at;
          break;
        }
        const int parts = At({rank, next[Size(rank)]}).with_next ? 2 : 1;
        for (int part = 0; part < parts; ++part) {
          const OrderCell& c = At({rank, next[Size(rank)]++});
          Known* const known = Look(c.stage, c.kind, c.micro_batch);
          known->done = true;
          for (const int other : known->waiting) runnable.push_back(other);
          known->waiting.clear();
        }
      }
    }
    return Cycle(stuck_on, stuck_at);
  }

  // Each stuck rank waits for a stuck rank, so from any of them one comes to a circle; told from
  // the first rank in it.
  Fault Cycle(const std::vector<const Known*>& stuck_on, const std::vector<Position>& stuck_at) {
    int rank = 0;
    while (rank < static_cast<int>(stuck_on.size()) && stuck_on[Size(rank)] == nullptr) ++rank;
    if (rank == static_cast<int>(stuck_on.size())) return std::nullopt;
    const auto following = [&](int r) { return stuck_on[Size(r)]->at.rank; };
    std::vector<bool> seen(stuck_on.size(), false);
    for (; !seen[Size(rank)]; rank = following(rank)) seen[Size(rank)] = true;
    int first = rank;
    for (int r = following(rank); r != rank; r = following(r)) first = std::min(first, r);

    constexpr int kTold = 4;  // of the circle, before it becomes "and so on"
    const Position at = stuck_at[Size(first)];
    std::string message =
        absl::StrCat("rank ", first, " cannot do ", CellText(At(at)), ": it waits for ");
    int r = first, told = 0;
    do {
      const Known& awaited = *stuck_on[Size(r)];
      const int by = awaited.at.rank;
      const bool last = by == first;
      const bool paired = by == r && awaited.at.index < stuck_at[Size(r)].index;
      absl::StrAppend(&message, told > 0 ? ", which waits for " : "", CellText(At(awaited.at)),
                      ", which ", by == r ? "it" : absl::StrCat("rank ", by),
                      paired ? " does at the same time as " : " does after ",
                      CellText(At(stuck_at[Size(by)])));
      r = by;
      if (last) break;
      if (++told == kTold) {
        absl::StrAppend(&message, ", and so on round to rank ", first);
        break;
      }
    } while (true);
    absl::StrAppend(&message, " (deadlock)");
    const Known* back = stuck_on[Size(first)];  // what this rank has to do for the last of them
    while (back->at.rank != first) back = stuck_on[Size(back->at.rank)];
    return OrderFault{std::move(message), at, stuck_on[Size(first)]->at,
                      absl::StrCat("on rank ", first, " do ", CellText(At(back->at)), " before ",
                                   CellText(At(at)))};
  }

  const std::vector<std::vector<OrderCell>>& order_;
  std::vector<Known> cells_;  // by key
  int stages_, micro_batches_;
};

}  // namespace

std::string CellText(const OrderCell& cell) {
  return absl::StrCat(cell.stage, Name(cell.kind), cell.micro_batch);
}

std::optional<OrderFault> FindOrderFault(const std::vector<std::vector<OrderCell>>& order,
                                         int stages, int micro_batches) {
  return Finder(order, stages, micro_batches).Find();
}

}  // namespace shardlab
