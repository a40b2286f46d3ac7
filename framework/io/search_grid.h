#pragma once
// The grid of a search: which plans are considered for the model and the machine of a scenario.
// Degrees, sharding, recomputation and schedules are what plugins offer (io/search_offers.h); the
// framework adds the pipeline degrees and chunks that the layers allow, alone or with the ends as a
// layer each, and micro-batches of 1, 2, 4 and 8. [search] fixes and varies keys.
//
//   std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &diagnostics);
//   for (int group = 0; group < grid->group_count(); ++group) use(grid->Group(group));
//
// With the plugins of this repository and without a word in [search]: tensor degrees that are
// powers of two within the scale-up domain, with sequence parallelism; context degrees that are
// powers of two and leave 1,024 tokens a rank; ZeRO 0 and 1, FSDP over the domain and over all;
// recomputation none, selective, full and of a quarter, half and three quarters of the layers;
// 1F1B, interleaved and ZB-H1; expert degrees with experts whole or cut like the rest.
//
// What the file says is tried beside that: its schedule, with its chunks and its split of layers,
// its degrees, micro-batch, sharding and recomputation. A choice of recomputation that agrees with
// the file has the other keys of the file's table (docs/decisions/0027).

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/plugin_registry.h"
#include "io/scenario.h"
#include "io/search_offers.h"
#include "io/search_pipelines.h"
#include "io/search_table.h"
#include "io/sweep_table.h"

namespace shardlab {

// One key with one value, of a strategy that shards state. No table: as the scenario has it.
struct Sharding {
  std::string table, key;
  Value value;
};

inline constexpr std::size_t kMostSearchAxes = 6;
using Degrees = std::array<int, kMostSearchAxes>;

struct SearchAxis {
  DegreeOffer offer;
  std::vector<int> values;
  bool switches = false;  // the key above_one is the grid's
  int with = -1;          // index of the axis whose degree the second one may be
  bool HasSecond() const { return !offer.with_key.empty(); }
};

// How a group has an axis that has a second degree: not at all (its degree is 1), with second
// degree 1, or with the one of another axis. Other axes have rows that a degree of 1 leaves as they
// are.
enum class Second : std::uint8_t { kNoAxis, kOne, kAnother };

// What is composed together for a combination of `vary`: nothing in it is a degree, nor how many
// layers a choice treats. Where one does, each of the pipelines says for how many.
struct SearchGroup {
  Sharding sharding;
  std::vector<Choice> choices;
  std::array<Second, kMostSearchAxes> second{};  // [axis], of those that have one
  std::vector<Pipeline> pipelines;
  bool Shares() const { return !pipelines.empty() && pipelines.front().share > 0; }
};

// One plan of the grid: a group and its degrees.
struct SearchPoint {
  std::int64_t number = 0;  // in the order of the grid
  int group = 0;            // of all combinations
  Degrees degrees{};        // [axis]
  int micro_batch = 1;
  int pipeline = 0;  // of the group's
};

struct SearchGrid {
  Scenario base;  // without what the grid decides
  SweepTable other;
  std::vector<SearchAxis> axes;
  std::vector<int> micro_batch;
  std::vector<std::string> sharding_tables;  // of which a point has one
  std::vector<SearchGroup> groups;           // of one combination of `vary`: all have the same
  FileSplit file_split;                      // of the pipelines that are split as_file
  // Of a schedule the keys of the file's [schedule] that it does not have.
  std::map<std::string, std::vector<std::string>> foreign_keys;
  Objective objective = Objective::kStepSeconds;
  double min_headroom = 0;
  std::optional<Condition> when;
  nlohmann::ordered_json defaults;
  std::string name;

  // Groups of all combinations, those of one together.
  int group_count() const { return static_cast<int>(other.size()) * groups_each(); }
  int groups_each() const { return static_cast<int>(groups.size()); }
  const SearchGroup& Group(int group) const {
    return groups[static_cast<std::size_t>(group % groups_each())];
  }
  std::int64_t OtherOf(int group) const { return group / groups_each(); }  // combination of `vary`
  // Whether a schedule's own parameters may differ from one combination of `vary` to the other.
  bool VariesSchedules() const;

  std::int64_t size() const;
  std::int64_t SizeOf(const SearchGroup& group) const;
  // The degrees of the axes that a group tries, the last axis fastest.
  std::vector<Degrees> DegreesOf(const SearchGroup& group) const;
  // Whether compositions of the group have the axis, whatever its degree.
  bool Has(const SearchGroup& group, std::size_t axis) const;
  // The second degree of an axis, 1 where it does not follow another.
  int SecondDegree(const SearchGroup& group, const Degrees& degrees, std::size_t axis) const;
};

// Every point of a group, in order; its pipelines and micro-batches vary fastest.
template <class Visitor>
void EachPoint(const SearchGrid& grid, int group, std::int64_t first, Visitor visit) {
  SearchPoint point;
  point.group = group;
  point.number = first;
  const SearchGroup& of = grid.Group(group);
  for (const Degrees& degrees : grid.DegreesOf(of)) {
    point.degrees = degrees;
    for (std::size_t p = 0; p < of.pipelines.size(); ++p) {
      point.pipeline = static_cast<int>(p);
      for (const int micro_batch : grid.micro_batch) {
        point.micro_batch = micro_batch;
        visit(point);
        ++point.number;
      }
    }
  }
}

std::optional<SearchGrid> ReadSearchGrid(const PluginRegistry& registry, const Scenario& scenario,
                                         Diagnostics* diagnostics);

// Puts a value under a dotted key.
void SetKey(Value* root, const std::string& key, Value value);
// Takes a dotted key out of the tables, where it is in them.
void EraseKey(Value* root, const std::string& path);

// The keys of a point with their values, as for --set, and the scenario that has them.
std::vector<std::pair<std::string, Value>> SettingsOf(const SearchGrid& grid,
                                                      const SearchPoint& point);
Scenario ScenarioOf(const SearchGrid& grid, const SearchPoint& point);
// Whether `when` holds for the point, or there is none.
bool LetsThrough(const SearchGrid& grid, const SearchPoint& point);

}  // namespace shardlab
