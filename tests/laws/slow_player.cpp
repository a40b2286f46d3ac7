#include "laws/slow_player.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace shardlab {
namespace {

// What a stage has in hand: 'a' the activations of its forward, 'g' the gradient of its backward,
// 'w' what its weight gradient needs.
using Item = std::tuple<int, char, int>;  // stage, what, micro-batch

struct Event {
  double time = 0;
  long number = 0;  // first come, first served
  int rank = -1;    // of a work that ends; -1: an item arrives
  Work work;
  Item item;
  bool operator<(const Event& other) const {
    return std::tie(other.time, other.number) < std::tie(time, number);
  }
};

class Player {
 public:
  Player(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& order,
         const std::vector<double>& costs, double hop)
      : shape_(shape), order_(order), costs_(costs), hop_(hop) {
    for (int r = 0; r < shape.ranks; ++r) {
      for (int c = 0; c < shape.chunks; ++c) {
        stage_of_[{r, c}] = schedule.StageOf(shape, r, c);
        rank_of_[schedule.StageOf(shape, r, c)] = r;
      }
    }
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    next_.assign(ranks, 0);
    busy_.assign(ranks, false);
    holds_.assign(ranks, 0);
    out_.end.assign(ranks, 0);
    out_.in_flight.assign(ranks, 0);
  }

  Played Run() {
    for (int m = 0; m < shape_.micro_batches; ++m) have_.insert({0, 'a', m});
    StartWhatCan(0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.rank < 0) {
        have_.insert(event.item);
      } else {
        Finish(event);
      }
      StartWhatCan(event.time);
    }
    out_.done = true;
    for (std::size_t r = 0; r < next_.size(); ++r) {
      out_.done = out_.done && next_[r] == order_[r].size();
      out_.makespan = std::max(out_.makespan, out_.end[r]);
    }
    return out_;
  }

 private:
  void StartWhatCan(double now) {
    for (std::size_t r = 0; r < next_.size(); ++r) {
      if (busy_[r] || next_[r] == order_[r].size()) continue;
      const Work& work = order_[r][next_[r]];
      const int stage = stage_of_[{static_cast<int>(r), work.chunk}];
      const char needs = work.kind == WorkKind::kF ? 'a' : work.kind == WorkKind::kW ? 'w' : 'g';
      if (have_.count({stage, needs, work.micro_batch}) == 0) continue;
      busy_[r] = true;
      ++next_[r];
      if (work.kind == WorkKind::kF) out_.in_flight[r] = std::max(out_.in_flight[r], ++holds_[r]);
      const double cost =
          costs_[static_cast<std::size_t>(stage) * 4 + static_cast<std::size_t>(work.kind)];
      events_.push({now + cost, number_++, static_cast<int>(r), work, {}});
    }
  }

  void Send(double now, int from_rank, Item item) {
    const bool far = rank_of_[std::get<0>(item)] != from_rank;
    events_.push({now + (far ? hop_ : 0), number_++, -1, {}, item});
  }

  void Finish(const Event& event) {
    const auto r = static_cast<std::size_t>(event.rank);
    const int stage = stage_of_[{event.rank, event.work.chunk}], m = event.work.micro_batch;
    busy_[r] = false;
    out_.end[r] = event.time;
    switch (event.work.kind) {
      case WorkKind::kF:
        if (stage + 1 < shape_.ranks * shape_.chunks) {
          Send(event.time, event.rank, {stage + 1, 'a', m});
        } else {
          Send(event.time, event.rank, {stage, 'g', m});  // the loss
        }
        return;
      case WorkKind::kI:
        have_.insert({stage, 'w', m});
        break;
      case WorkKind::kW:
        --holds_[r];
        return;
      case WorkKind::kB:
        --holds_[r];
        break;
    }
    if (stage > 0) Send(event.time, event.rank, {stage - 1, 'g', m});
  }

  const ScheduleShape& shape_;
  const ScheduleOrder& order_;
  const std::vector<double>& costs_;
  double hop_;
  std::map<std::pair<int, int>, int> stage_of_;
  std::map<int, int> rank_of_;
  std::vector<std::size_t> next_;
  std::vector<bool> busy_;
  std::vector<int> holds_;
  std::set<Item> have_;
  std::priority_queue<Event> events_;
  long number_ = 0;
  Played out_;
};

}  // namespace

Played PlaySlowly(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& order,
                  const std::vector<double>& costs, double hop) {
  return Player(schedule, shape, order, costs, hop).Run();
}

}  // namespace shardlab
