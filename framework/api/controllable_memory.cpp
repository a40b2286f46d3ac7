#include "api/controllable_memory.h"

#include <algorithm>
#include <tuple>

namespace shardlab {
namespace {

constexpr int kF0 = 0, kI0 = 3, kW = 4, kTypes = 5;

struct Op {
  int slot = 0, rank = 0, type = 0, index = 0;  // index: micro-batch; of a W: the how-manieth
};

bool Forward(int type) { return type < 2; }

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

bool Earlier(const Op& a, const Op& b) {
  return std::tie(a.slot, a.rank, a.type) < std::tie(b.slot, b.rank, b.type);
}

// One rank's slots as far as they are decided: which are taken, and, counted along them, chunks in
// flight, their maximum, and input gradients whose weight gradient has not come.
class RankSlots {
 public:
  explicit RankSlots(bool with_weights) : with_weights_(with_weights) {}

  int Most() const { return state_.empty() ? 0 : state_.back().most; }
  bool Taken(int slot) const { return slot < Length() && type_[Size(slot)] >= 0; }
  // The most in flight through `end` if an op of this type stood at `slot`.
  int MostWith(int slot, int type, int end) {
    Extend(end);
    State state = slot > 0 ? state_[Size(slot - 1)] : State();
    state = After(state, type);
    for (int s = slot + 1; s <= end; ++s) state = After(state, type_[Size(s)]);
    return state.most;
  }
  // `end`: everything up to it is known to be decided.
  void Put(int slot, int type, int end) {
    Extend(std::max(slot, end));
    type_[Size(slot)] = type;
    for (int s = slot; s < Length(); ++s)
      state_[Size(s)] = After(s > 0 ? state_[Size(s - 1)] : State(), type_[Size(s)]);
  }

 private:
  struct State {
    int held = 0, most = 0, pending = 0;
  };
  int Length() const { return static_cast<int>(type_.size()); }

  State After(State s, int type) const {
    if (type < 0) {
      // An empty slot will take a weight gradient if one is due.
      const int due = !with_weights_ && s.pending > 0 ? 1 : 0;
      s.pending -= due;
      s.held -= due;
    } else if (Forward(type)) {
      s.most = std::max(s.most, ++s.held);
    } else if (type == kW) {
      --s.held;
    } else {
      ++s.pending;
    }
    return s;
  }

  void Extend(int slot) {
    while (Length() <= slot) {
      state_.push_back(After(state_.empty() ? State() : state_.back(), -1));
      type_.push_back(-1);
    }
  }

  bool with_weights_;
  std::vector<int> type_;
  std::vector<State> state_;
};

class Builder {
 public:
  Builder(const ScheduleShape& shape, const BuildingBlock& block)
      : ranks_(shape.ranks), micro_batches_(shape.micro_batches) {
    for (int r = 0; r < ranks_; ++r) {
      const std::array<int, 4> slots = block(r);
      for (int j = 0; j < micro_batches_; ++j) {
        for (int type = 0; type < 4; ++type)
          ops_.push_back({slots[Size(type)] + 6 * j, r, type, j});
      }
    }
  }

  ScheduleOrder Run() {
    PlaceWeights();
    Pull(true);
    DropWeights();
    Pull(false);
    DropWeights();
    return Lists();
  }

 private:
  std::vector<std::vector<Op>> ByRank() const {
    std::vector<std::vector<Op>> ranks(Size(ranks_));
    for (const Op& op : ops_) ranks[Size(op.rank)].push_back(op);
    for (std::vector<Op>& list : ranks) std::sort(list.begin(), list.end(), Earlier);
    return ranks;
  }

  // Calls take(rank, slot) for each empty slot of a rank with a pending I, and behind the last slot
  // for those that are left; see(op) for each op on the way.
  template <class See, class Take>
  void WalkSlots(See see, Take take) const {
    const std::vector<std::vector<Op>> ranks = ByRank();
    for (int r = 0; r < ranks_; ++r) {
      int pending = 0, slot = 0;
      for (const Op& op : ranks[Size(r)]) {
        for (; slot < op.slot; ++slot) {
          if (pending == 0) continue;
          --pending;
          take(r, slot);
        }
        see(op);
        if (!Forward(op.type) && op.type != kW) ++pending;
        slot = op.slot + 1;
      }
      for (; pending > 0; --pending) take(r, slot++);
    }
  }

  void PlaceWeights() {
    std::vector<Op> placed;
    std::vector<int> next(Size(ranks_), 0);
    WalkSlots([](const Op&) {},
              [&](int r, int slot) {
                placed.push_back({slot, r, kW, next[Size(r)]++});
              });
    ops_.insert(ops_.end(), placed.begin(), placed.end());
  }

  void DropWeights() {
    ops_.erase(std::remove_if(ops_.begin(), ops_.end(), [](const Op& op) { return op.type == kW; }),
               ops_.end());
  }

  std::size_t Key(int rank, int type, int index) const {
    return (Size(rank) * kTypes + Size(type)) * Size(2 * micro_batches_) + Size(index);
  }

  int Limit(bool with_weights) const {
    int limit = 0;
    std::vector<RankSlots> slots(Size(ranks_), RankSlots(with_weights));
    for (const Op& op : ops_) slots[Size(op.rank)].Put(op.slot, op.type, op.slot);
    for (const RankSlots& rank : slots) limit = std::max(limit, rank.Most());
    return limit;
  }

  // The latest slot that the op must come after, among what has been placed.
  int Needs(const Op& op, const std::vector<int>& slot_of,
            const std::vector<std::vector<int>>& inputs) const {
    int latest = -1;
    const auto after = [&](int rank, int type, int index) {
      if (rank >= 0 && rank < ranks_ && index >= 0)
        latest = std::max(latest, slot_of[Key(rank, type, index)]);
    };
    if (op.type == kW) {
      latest = inputs[Size(op.rank)][Size(op.index)];
    } else {
      after(op.type % 2 == 0 ? op.rank - 1 : op.rank + 1, op.type, op.index);
      if (op.type > 0) after(op.rank, op.type - 1, op.index);
    }
    after(op.rank, op.type, op.index - 1);
    return latest;
  }

  void Pull(bool with_weights) {
    std::sort(ops_.begin(), ops_.end(), Earlier);
    const int limit = Limit(with_weights);
    std::vector<int> slot_of(Size(ranks_ * kTypes * 2 * micro_batches_), -1);
    std::vector<std::vector<int>> inputs(Size(ranks_));  // slots of Is, ascending
    std::vector<RankSlots> slots(Size(ranks_), RankSlots(with_weights));
    int phase = 0;
    bool last_seen = false;
    for (Op& op : ops_) {
      if (phase == 0 && op.rank == 0 && op.type == kI0) phase = 1;
      RankSlots& rank = slots[Size(op.rank)];
      const int own = op.slot;
      if (phase == 2 || (phase == 0 && with_weights)) {
        for (int s = Needs(op, slot_of, inputs) + 1; s < own; ++s) {
          if (rank.Taken(s) || rank.MostWith(s, op.type, own) > limit) continue;
          op.slot = s;
          break;
        }
      }
      rank.Put(op.slot, op.type, own);
      slot_of[Key(op.rank, op.type, op.index)] = op.slot;
      if (!Forward(op.type) && op.type != kW) {
        std::vector<int>& sorted = inputs[Size(op.rank)];
        sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), op.slot), op.slot);
      }
      last_seen |= op.type == kF0 && op.index == micro_batches_ - 1;
      if (phase == 1 && last_seen) phase = 2;
    }
    if (!with_weights) PlaceWeights();
    Replay();
  }

  // Each op as early as its rank's order and its inputs let it, in unit slots.
  void Replay() {
    std::sort(ops_.begin(), ops_.end(), Earlier);
    std::vector<int> slot_of(Size(ranks_ * kTypes * 2 * micro_batches_), -1);
    std::vector<std::vector<int>> inputs(Size(ranks_));
    std::vector<int> free(Size(ranks_), 0);
    for (Op& op : ops_) {
      op.slot = std::max(free[Size(op.rank)], Needs(op, slot_of, inputs) + 1);
      free[Size(op.rank)] = op.slot + 1;
      slot_of[Key(op.rank, op.type, op.index)] = op.slot;
      if (!Forward(op.type) && op.type != kW) inputs[Size(op.rank)].push_back(op.slot);
    }
  }

  // With the last weight gradients: those of the way back first, oldest first.
  ScheduleOrder Lists() const {
    ScheduleOrder order(Size(ranks_));
    std::vector<std::array<int, 2>> due(Size(ranks_), {0, 0}), done = due;
    WalkSlots(
        [&](const Op& op) {
          const bool back = op.type == 1 || op.type == 2;
          const auto chunk = static_cast<std::int16_t>(back ? 1 : 0);
          if (!Forward(op.type)) ++due[Size(op.rank)][Size(chunk)];
          order[Size(op.rank)].push_back(
              {Forward(op.type) ? WorkKind::kF : WorkKind::kI, chunk, op.index});
        },
        [&](int r, int) {
          const bool back = done[Size(r)][1] < due[Size(r)][1];
          const auto chunk = static_cast<std::int16_t>(back ? 1 : 0);
          order[Size(r)].push_back({WorkKind::kW, chunk, done[Size(r)][Size(chunk)]++});
        });
    return order;
  }

  int ranks_, micro_batches_;
  std::vector<Op> ops_;
};

}  // namespace

ScheduleOrder ControllableMemoryOrder(const ScheduleShape& shape, const BuildingBlock& block) {
  return Builder(shape, block).Run();
}

}  // namespace shardlab
