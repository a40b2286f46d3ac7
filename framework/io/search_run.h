#pragma once
// A search: all points of a grid, each illegal with a reason, ruled out by `when`, or evaluated.
// Points that share a composition are evaluated together, groups on any number of threads; what is
// found does not depend on how many.
//
//   SearchResult result = RunSearch(registry, grid, {.jobs = 4, .top = 10}, progress);

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/evaluate.h"
#include "io/search_grid.h"
#include "io/sweep_run.h"

namespace shardlab {

struct Found {
  SearchPoint point;
  double objective = 0;  // smaller is better, whatever the objective
  double step = 0, peak = 0, capacity = 0;
  bool fits = false;
  TimeParts time;
};

struct IllegalReason {
  std::int64_t count = 0;
  std::string example;
};

struct SearchResult {
  SweepCounts counts;
  std::vector<Found> best;            // the best that fit with the headroom asked for, best first
  std::vector<Found> pareto;          // of those: none is better in both objective and peak
  std::vector<Found> best_unfitting;  // at most one: the best of those that nearly fit
  std::map<std::string, IllegalReason> illegal;  // by the code of the first diagnostic
};

struct SearchOptions {
  int jobs = 1;
  std::size_t top = 10;
};

SearchResult RunSearch(const PluginRegistry& registry, const SearchGrid& grid,
                       const SearchOptions& options,
                       const std::function<void(std::int64_t done)>& progress);

}  // namespace shardlab
