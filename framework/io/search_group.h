#pragma once
// One group of a search: all of its points, each with the composition that they share.
//
//   Prepared prepared;  Prepare(registry, grid, jobs, &prepared);
//   SearchResult part = SearchOfGroup(registry, grid, options, &prepared, group, first, to_beat);

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/compose_memory.h"
#include "io/search_orders.h"
#include "io/search_run.h"

namespace shardlab {

struct NamedSchedule {
  std::shared_ptr<const Schedule> schedule;  // null: it cannot be made
  std::string refusal;
  int index = 0;
};

// What holds for a combination of `vary`.
struct OtherFacts {
  int devices = 0;            // 0: not known, its scenario has mistakes
  double price = 0;           // of a device and hour
  std::vector<bool> borrows;  // [axis]: its ranks are those of other axes, or nothing is known
};

struct Prepared {
  // By name and by combination of `vary`, 0 where all have the same.
  std::map<std::pair<std::string, std::int64_t>, NamedSchedule> schedules;
  std::vector<OtherFacts> others;
  SearchOrders orders;
  ComposeMemory compositions;

  const NamedSchedule& Of(const SearchGrid& grid, int group, std::size_t pipeline) const;
  // The first pipeline of a group whose schedule can be made; the first one if there is none. Only
  // of those with this share of layers, where it is not 0.
  std::size_t Makes(const SearchGrid& grid, int group, int share = 0) const;
};

void Prepare(const PluginRegistry& registry, const SearchGrid& grid, int jobs, Prepared* prepared);

// `first`: number of the group's first point. `to_beat`: an objective that so many plans as are
// asked for have reached.
SearchResult SearchOfGroup(const PluginRegistry& registry, const SearchGrid& grid,
                           const SearchOptions& options, Prepared* prepared, int group,
                           std::int64_t first, double to_beat);

// Objectives of a few plans of the group with the first micro-batch of the grid, those whose bounds
// promise most, that fit; the best first.
std::vector<double> SampleOfGroup(const PluginRegistry& registry, const SearchGrid& grid,
                                  const SearchOptions& options, Prepared* prepared, int group);

// The better first; of two alike the earlier in the grid.
bool Better(const Found& a, const Found& b);
// Keeps the `most` best, sorted.
void Offer(const Found& found, std::size_t most, std::vector<Found>* best);
// Keeps those that no other beats; sorted. Of two alike the earlier.
void OfferPareto(const Found& found, std::vector<Found>* front);

}  // namespace shardlab
