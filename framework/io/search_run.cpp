#include "io/search_run.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <numeric>
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

}  // namespace

// A schedule is made as for its own scenario; no row of a composition depends on it.
void Prepare(const PluginRegistry& registry, const SearchGrid& grid, Prepared* prepared) {
  const auto compose = [&](const SearchPoint& point, Diagnostics* diagnostics) {
    return ComposeScenario(registry, ScenarioOf(grid, point), diagnostics,
                           ComposeWhat::kCompositionOnly);
  };
  SearchPoint point;
  prepared->others.resize(static_cast<std::size_t>(grid.other.size()));
  for (std::size_t g = 0; g < grid.groups.size(); ++g) {
    const SearchGroup& group = grid.groups[g];
    point.group = static_cast<int>(g);
    for (std::size_t a = 0; a < grid.axes.size(); ++a)
      point.degrees[a] = grid.Has(group, a) ? 2 : 1;
    OtherFacts& facts = prepared->others[static_cast<std::size_t>(group.other)];
    if (facts.borrows.empty()) {
      facts.borrows.assign(grid.axes.size(), true);
      point.pipeline = 0;
      Diagnostics diagnostics;
      const ComposedScenario composed = compose(point, &diagnostics);
      if (composed.composition != nullptr) {
        const Composition& c = *composed.composition;
        facts.devices = c.hardware->machine().devices;
        facts.price = c.hardware->machine().price_per_device_hour;
        for (std::size_t a = 0; a < grid.axes.size(); ++a) {
          const AxisId axis = c.edited.mesh.Find(grid.axes[a].offer.axis);
          facts.borrows[a] = !axis.valid() || c.edited.mesh.axis(axis).borrows;
        }
      }
    }
    for (std::size_t p = 0; p < group.pipelines.size(); ++p) {
      NamedSchedule& made = prepared->schedules[group.pipelines[p].schedule];
      if (made.schedule != nullptr || !made.refusal.empty()) continue;
      made.index = static_cast<int>(prepared->schedules.size());
      point.pipeline = static_cast<int>(p);
      Diagnostics diagnostics;
      const ComposedScenario composed = compose(point, &diagnostics);
      if (composed.composition != nullptr) {
        made.schedule = composed.composition->schedule;
      } else {
        for (const Diagnostic& d : diagnostics.all()) {
          if (made.refusal.empty()) made.refusal = d.message;
        }
      }
    }
  }
}

namespace {

// What groups may prune by must not depend on which of them happen to be done: a group waits for
// the first half of those before it, later for all but the last few.
class Reached {
 public:
  static constexpr std::int64_t kBehind = 16;  // groups; as many threads work at a time

  double Before(std::int64_t group) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (group == 0) return std::numeric_limits<double>::infinity();
    const auto at = static_cast<std::size_t>(std::max(group - kBehind, (group - 1) / 2));
    known_.wait(lock, [&] { return stopped_ || objective_.size() > at; });
    return stopped_ ? std::numeric_limits<double>::infinity() : objective_[at];
  }
  void Add(double objective) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objective_.push_back(objective);
    known_.notify_all();
  }
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    known_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable known_;
  std::vector<double> objective_;  // [group]
  bool stopped_ = false;
};

}  // namespace

SearchResult RunSearch(const PluginRegistry& registry, const SearchGrid& grid,
                       const SearchOptions& options,
                       const std::function<void(std::int64_t done)>& progress) {
  Prepared prepared;
  Prepare(registry, grid, &prepared);
  std::vector<std::int64_t> begins;
  std::int64_t number = 0;
  for (const SearchGroup& group : grid.groups) {
    begins.push_back(number);
    number += grid.SizeOf(group);
  }
  // Groups that differ by how much is recomputed come last: they are many and seldom the best.
  std::vector<int> turns(grid.groups.size());
  std::iota(turns.begin(), turns.end(), 0);
  std::stable_partition(turns.begin(), turns.end(), [&](int group) {
    return grid.groups[static_cast<std::size_t>(group)].share == 0;
  });
  SearchResult result;
  Reached reached;
  InOrder(
      static_cast<std::int64_t>(grid.groups.size()), options.jobs,
      [&](std::int64_t turn, int slot) {
        try {
          const int group = turns[static_cast<std::size_t>(turn)];
          const std::int64_t first = begins[static_cast<std::size_t>(group)];
          const double to_beat = reached.Before(turn);
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
