#pragma once
// A search: all points of a grid, each illegal with a reason, evaluated, or ruled out: by `when`,
// or by a bound that shows that it is none of the best. Points that share a composition are
// evaluated together, groups on any number of threads; what is found and counted does not depend on
// how many.
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
  int devices = 1;
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
  std::vector<Found> pareto;          // of those, where asked for: none is at least as good in all
                                      // of objective, peak and devices, and better in one
  std::vector<Found> best_unfitting;  // at most one: the best of those that nearly fit; of no
                                      // meaning where it is no better than the best that fits
  std::map<std::string, IllegalReason> illegal;  // by the code of the first diagnostic
};

struct SearchOptions {
  int jobs = 1;
  std::size_t top = 10;
  bool pareto = false;
  bool bounds = true;  // false: every legal plan is evaluated to the end
  // Where there is one, groups are searched by it, `jobs` of them at a time: by other processes,
  // say. As SearchOfGroup; `slot` is below `jobs`, and one call at a time has it.
  std::function<SearchResult(int group, std::int64_t first, double to_beat, int slot)> elsewhere =
      {};
};

SearchResult RunSearch(const PluginRegistry& registry, const SearchGrid& grid,
                       const SearchOptions& options,
                       const std::function<void(std::int64_t done)>& progress);

}  // namespace shardlab
