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
         const std::vector<double>& costs, double hop, double pair, const HiddenOfPairs& hidden)
      : shape_(shape), order_(order), costs_(costs), hop_(hop), pair_(pair), hidden_(hidden) {
    for (int r = 0; r < shape.ranks; ++r) {
      for (int c = 0; c < shape.chunks; ++c) {
        stage_of_[{r, c}] = schedule.StageOf(shape, r, c);
      }
      for (const Work& work : order[static_cast<std::size_t>(r)]) {
        if (work.kind == WorkKind::kF || work.kind == WorkKind::kFB)
          rank_of_[{stage_of_[{r, work.chunk}], work.micro_batch}] = r;
      }
    }
    stages_ = schedule.Stages(shape);
    const auto ranks = static_cast<std::size_t>(shape.ranks);
    next_.assign(ranks, 0);
    busy_.assign(ranks, false);
    holds_.assign(ranks, 0);
    holds_until_i_ = now_started_ = holds_;
    out_.end.assign(ranks, 0);
    out_.start = out_.busy = out_.end;
    out_.in_flight.assign(ranks, 0);
    out_.in_flight_until_i = out_.in_flight;
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
      const std::vector<Work> parts = PartsOf(work);
      bool ready = true;
      double cost = 0;
      std::vector<std::size_t> stages;
      for (const Work& part : parts) {
        const int stage = stage_of_[{static_cast<int>(r), part.chunk}];
        stages.push_back(static_cast<std::size_t>(stage));
        const char needs = part.kind == WorkKind::kF ? 'a' : part.kind == WorkKind::kW ? 'w' : 'g';
        ready = ready && have_.count({stage, needs, part.micro_batch}) > 0;
        cost += costs_[static_cast<std::size_t>(stage) * 4 + static_cast<std::size_t>(part.kind)];
      }
      if (!ready) continue;
      if (parts.size() > 1 && pair_ >= 0) {
        cost = pair_;
      } else if (parts.size() > 1 && !hidden_.empty()) {
        cost -= hidden_[stages[0]][stages[1]];
      }
      busy_[r] = true;
      ++next_[r];
      out_.busy[r] += cost;
      if (now_started_[r] == 0) out_.start[r] = now;
      ++now_started_[r];
      if (parts[0].kind == WorkKind::kF) {
        out_.in_flight[r] = std::max(out_.in_flight[r], ++holds_[r]);
        out_.in_flight_until_i[r] = std::max(out_.in_flight_until_i[r], ++holds_until_i_[r]);
      }
      events_.push({now + cost, number_++, static_cast<int>(r), work, {}});
    }
  }

  void Send(double now, int from_rank, Item item) {
    const bool far = rank_of_[{std::get<0>(item), std::get<2>(item)}] != from_rank;
    events_.push({now + (far ? hop_ : 0), number_++, -1, {}, item});
  }

  // A pair is a forward and a backward.
  static std::vector<Work> PartsOf(const Work& work) {
    if (work.kind != WorkKind::kFB) return {work};
    return {{WorkKind::kF, work.chunk, work.micro_batch},
            {WorkKind::kB, work.backward_chunk, work.backward_micro_batch}};
  }

  void Finish(const Event& event) {
    const auto r = static_cast<std::size_t>(event.rank);
    busy_[r] = false;
    out_.end[r] = event.time;
    for (const Work& part : PartsOf(event.work)) FinishPart(event, part);
  }

  void FinishPart(const Event& event, const Work& work) {
    const auto r = static_cast<std::size_t>(event.rank);
    const int stage = stage_of_[{event.rank, work.chunk}], m = work.micro_batch;
    switch (work.kind) {
      case WorkKind::kF:
        if (stage + 1 < stages_) {
          Send(event.time, event.rank, {stage + 1, 'a', m});
        } else {
          Send(event.time, event.rank, {stage, 'g', m});  // the loss
        }
        return;
      case WorkKind::kI:
        have_.insert({stage, 'w', m});
        --holds_until_i_[r];
        break;
      case WorkKind::kW:
        --holds_[r];
        return;
      default:
        --holds_[r];
        --holds_until_i_[r];
        break;
    }
    if (stage > 0) Send(event.time, event.rank, {stage - 1, 'g', m});
  }

  const ScheduleShape& shape_;
  const ScheduleOrder& order_;
  const std::vector<double>& costs_;
  double hop_, pair_;
  const HiddenOfPairs& hidden_;
  int stages_ = 0;
  std::map<std::pair<int, int>, int> stage_of_;
  std::map<std::pair<int, int>, int> rank_of_;  // (stage, micro-batch)
  std::vector<std::size_t> next_;
  std::vector<bool> busy_;
  std::vector<int> holds_, holds_until_i_, now_started_;
  std::set<Item> have_;
  std::priority_queue<Event> events_;
  long number_ = 0;
  Played out_;
};

}  // namespace

Played PlaySlowly(const Schedule& schedule, const ScheduleShape& shape, const ScheduleOrder& order,
                  const std::vector<double>& costs, double hop, double pair,
                  const HiddenOfPairs& hidden) {
  return Player(schedule, shape, order, costs, hop, pair, hidden).Run();
}

}  // namespace shardlab
