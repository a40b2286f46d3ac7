#include "io/search_run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "core/ordered_work.h"
#include "io/compose_scenario.h"
#include "io/search_group.h"

namespace shardlab {
namespace {

void Merge(const SearchResult& from, std::size_t top, SearchResult* into) {
  Add(from.counts, &into->counts);
  for (const Found& found : from.best) Offer(found, top, &into->best);
  for (const Found& found : from.pareto) OfferPareto(found, &into->pareto);
  for (const Found& found : from.best_unfitting) Offer(found, 1, &into->best_unfitting);
  for (const auto& [code, reason] : from.illegal) {
    IllegalReason& sum = into->illegal[code];
    if (sum.count == 0) sum.example = reason.example;
    sum.count += reason.count;
  }
}

// What the groups of a combination of `vary` have in common.
OtherFacts FactsOf(const SearchGrid& grid, const ComposedScenario& composed) {
  OtherFacts facts;
  facts.borrows.assign(grid.axes.size(), true);
  if (composed.composition == nullptr) return facts;
  const Composition& c = *composed.composition;
  facts.devices = c.hardware->machine().devices;
  facts.price = c.hardware->machine().price_per_device_hour;
  for (std::size_t a = 0; a < grid.axes.size(); ++a) {
    const AxisId axis = c.edited.mesh.Find(grid.axes[a].offer.axis);
    facts.borrows[a] = !axis.valid() || c.edited.mesh.axis(axis).borrows;
  }
  return facts;
}

}  // namespace

// A schedule is made as for its own scenario; no row of a composition depends on it.
void Prepare(const PluginRegistry& registry, const SearchGrid& grid, int jobs, Prepared* prepared) {
  const auto compose = [&](int group, std::size_t pipeline, Diagnostics* diagnostics) {
    SearchPoint point;
    point.group = group;
    point.pipeline = static_cast<int>(pipeline);
    for (std::size_t a = 0; a < grid.axes.size(); ++a)
      point.degrees[a] = grid.Has(grid.Group(group), a) ? 2 : 1;
    return ComposeScenario(registry, ScenarioOf(grid, point), diagnostics,
                           ComposeWhat::kCompositionOnly, &prepared->compositions);
  };
  const int combinations = grid.VariesSchedules() ? static_cast<int>(grid.other.size()) : 1;
  for (int other = 0; other < combinations; ++other) {
    for (int g = 0; g < grid.groups_each(); ++g) {
      const std::vector<Pipeline>& pipelines = grid.Group(g).pipelines;
      for (std::size_t p = 0; p < pipelines.size(); ++p) {
        NamedSchedule& made = prepared->schedules[{pipelines[p].schedule, other}];
        if (made.schedule != nullptr || !made.refusal.empty()) continue;
        made.index = static_cast<int>(prepared->schedules.size());
        Diagnostics diagnostics;
        const ComposedScenario composed = compose(other * grid.groups_each() + g, p, &diagnostics);
        if (composed.composition != nullptr) {
          made.schedule = composed.composition->schedule;
          continue;
        }
        for (const Diagnostic& d : diagnostics.all()) {
          if (made.refusal.empty()) made.refusal = d.message;
        }
      }
    }
  }
  if (grid.groups.empty()) return;
  InOrder(
      grid.other.size(), jobs,
      [&](std::int64_t other, int) {
        const int group = static_cast<int>(other) * grid.groups_each();
        Diagnostics ignored;  // said of each of its points
        return FactsOf(grid, compose(group, prepared->Makes(grid, group), &ignored));
      },
      [&](std::int64_t, OtherFacts facts) { prepared->others.push_back(std::move(facts)); });
}

const NamedSchedule& Prepared::Of(const SearchGrid& grid, int group, std::size_t pipeline) const {
  return schedules.at({grid.Group(group).pipelines[pipeline].schedule,
                       grid.VariesSchedules() ? grid.OtherOf(group) : 0});
}

std::size_t Prepared::Makes(const SearchGrid& grid, int group, int share) const {
  const std::vector<Pipeline>& pipelines = grid.Group(group).pipelines;
  std::optional<std::size_t> first;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    if (share != 0 && pipelines[p].share != share) continue;
    if (Of(grid, group, p).schedule != nullptr) return p;
    if (!first) first = p;
  }
  return first.value_or(0);
}

namespace {

// In which order groups have their turn: those that treat a share of their layers come last, they
// are large and seldom the best. Numbers of points are those of the grid.
class Turns {
 public:
  explicit Turns(const SearchGrid& grid) : combinations_(grid.other.size()) {
    for (int g = 0; g < grid.groups_each(); ++g) {
      (grid.Group(g).Shares() ? shares_ : plain_).push_back(g);
      begins_.push_back(each_);
      each_ += grid.SizeOf(grid.Group(g));
    }
  }

  // Of one combination, those whose turn is first.
  const std::vector<int>& plain() const { return plain_; }
  // The smaller the number of a plain group, the sooner.
  void Sort(const std::vector<double>& of_plain) {
    std::vector<std::size_t> by(plain_.size());
    std::iota(by.begin(), by.end(), 0);
    std::stable_sort(by.begin(), by.end(),
                     [&](std::size_t a, std::size_t b) { return of_plain[a] < of_plain[b]; });
    std::vector<int> sorted;
    for (const std::size_t i : by) sorted.push_back(plain_[i]);
    plain_ = std::move(sorted);
  }

  std::int64_t count() const { return combinations_ * static_cast<std::int64_t>(begins_.size()); }
  int Group(std::int64_t turn) const {
    const std::int64_t plain = combinations_ * static_cast<std::int64_t>(plain_.size());
    const std::vector<int>& of = turn < plain ? plain_ : shares_;
    if (turn >= plain) turn -= plain;
    const auto size = static_cast<std::int64_t>(of.size());
    return static_cast<int>(turn / size * static_cast<std::int64_t>(begins_.size()) +
                            of[static_cast<std::size_t>(turn % size)]);
  }
  // Number of a group's first point.
  std::int64_t Begin(int group) const {
    const auto groups = static_cast<int>(begins_.size());
    return group / groups * each_ + begins_[static_cast<std::size_t>(group % groups)];
  }

 private:
  const std::int64_t combinations_;
  std::vector<int> plain_, shares_;   // groups of a combination
  std::vector<std::int64_t> begins_;  // [group of a combination]
  std::int64_t each_ = 0;             // points of a combination
};

// What groups may prune by must not depend on which of them happen to be done: a group waits for
// the first half of those before it, later for all but the last few.
class Reached {
 public:
  // `at_first`: what has been reached before all groups.
  explicit Reached(double at_first) : at_first_(at_first) {}

  static constexpr std::int64_t kBehind = 16;  // groups; as many threads work at a time

  // `help` does something useful for others, or says that there is nothing to do; it may be empty.
  // Who waits asks again, the longer it waits the less often.
  double Before(std::int64_t group, const std::function<bool()>& help) {
    if (group == 0) return at_first_;
    std::chrono::microseconds look(250);
    constexpr std::chrono::microseconds kSeldom(16000);
    std::unique_lock<std::mutex> lock(mutex_);
    const auto at = static_cast<std::size_t>(std::max(group - kBehind, (group - 1) / 2));
    const auto known = [&] { return stopped_ || begin_ + objective_.size() > at; };
    while (help && !known()) {
      lock.unlock();
      const bool helped = help();
      lock.lock();
      if (helped) continue;
      known_.wait_for(lock, look, known);
      look = std::min(2 * look, kSeldom);
    }
    known_.wait(lock, known);
    return stopped_ ? at_first_ : std::min(at_first_, objective_[at - begin_]);
  }
  void Add(double objective) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objective_.push_back(objective);
    // A group that waits is not done: what it asks for is among the last.
    if (objective_.size() > kKept) {
      objective_.pop_front();
      ++begin_;
    }
    known_.notify_all();
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    known_.notify_all();
  }

 private:
  const double at_first_;
  std::mutex mutex_;
  std::condition_variable known_;
  static constexpr std::size_t kKept = std::size_t{4} * kBehind;
  std::size_t begin_ = 0;         // groups whose objective nobody asks for any more
  std::deque<double> objective_;  // [group - begin_]
  bool stopped_ = false;
};

// Where to begin, and what to beat from the beginning: the better what is found first, the less is
// played.
double Begin(const PluginRegistry& registry, const SearchGrid& grid, const SearchOptions& options,
             Prepared* prepared, Turns* turns) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> best, all;
  InOrder(
      static_cast<std::int64_t>(turns->plain().size()), options.jobs,
      [&](std::int64_t i, int) {
        return SampleOfGroup(registry, grid, options, prepared,
                             turns->plain()[static_cast<std::size_t>(i)]);
      },
      [&](std::int64_t, const std::vector<double>& objectives) {
        best.push_back(objectives.empty() ? kNone : objectives[0]);
        all.insert(all.end(), objectives.begin(), objectives.end());
      });
  turns->Sort(best);
  if (options.top == 0 || all.size() < options.top) return kNone;
  std::sort(all.begin(), all.end());
  return all[options.top - 1];
}

}  // namespace

SearchResult RunSearch(const PluginRegistry& registry, const SearchGrid& grid,
                       const SearchOptions& options,
                       const std::function<void(std::int64_t done)>& progress) {
  Prepared prepared;
  Prepare(registry, grid, options.jobs, &prepared);
  Turns turns(grid);
  Reached reached(options.bounds && !options.pareto
                      ? Begin(registry, grid, options, &prepared, &turns)
                      : std::numeric_limits<double>::infinity());
  std::function<bool()> help;
  if (!options.elsewhere) help = [&prepared] { return prepared.orders.Help(); };
  SearchResult result;
  InOrder(
      turns.count(), options.jobs,
      [&](std::int64_t turn, int slot) {
        try {
          const int group = turns.Group(turn);
          const std::int64_t first = turns.Begin(group);
          const double to_beat = reached.Before(turn, help);
          if (options.elsewhere) return options.elsewhere(group, first, to_beat, slot);
          return SearchOfGroup(registry, grid, options, &prepared, group, first, to_beat);
        } catch (...) {
          reached.Stop();
          throw;
        }
      },
      [&](std::int64_t, const SearchResult& part) {
        try {
          Merge(part, options.top, &result);
          progress(result.counts.considered);
        } catch (...) {
          reached.Stop();
          throw;
        }
        reached.Add(result.best.size() < options.top ? std::numeric_limits<double>::infinity()
                                                     : result.best.back().objective);
      });
  if (!result.best.empty() && !result.best_unfitting.empty() &&
      result.best_unfitting[0].objective >= result.best[0].objective)
    result.best_unfitting.clear();
  return result;
}

}  // namespace shardlab
