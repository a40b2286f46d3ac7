#pragma once
// The grid of a search: which plans are considered for the model and the machine of a scenario.
// Without a word in [search]: tensor degrees that are powers of two within the scale-up domain,
// with sequence parallelism; context degrees that are powers of two and leave 1,024 tokens a rank;
// the pipeline degrees and chunks that the layers allow, alone or with the ends as a layer each;
// micro-batches of 1, 2, 4 and 8; ZeRO 0 and 1, FSDP over the domain and over all; recomputation
// none, selective, full and of a quarter, half and three quarters of the layers; 1F1B, interleaved
// and ZB-H1; expert degrees with experts whole or cut like the rest.
//
//   std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &diagnostics);
//   for (const SearchGroup& group : grid->groups) ...

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/condition.h"
#include "io/plugin_registry.h"
#include "io/scenario.h"
#include "io/sweep_table.h"

namespace shardlab {

enum class Objective { kStepSeconds, kTokensPerSecondPerDevice, kCost };
const char* Name(Objective objective);
const std::vector<std::string>& ObjectiveNames();
std::optional<Objective> ParseObjective(const std::string& name);

// A strategy that shards state, as the file search.toml in its folder offers it: one key with one
// value. No table: as the scenario has it.
struct Sharding {
  std::string table, key;
  Value value;
};
struct Recomputation {
  enum Kind { kAsFile, kNone, kSelective, kFull } kind = kAsFile;
  int quarters = 4;  // of the layers, with kFull
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};
struct Pipeline {
  std::string schedule;
  int degree = 1, chunks = 1;
  bool count_ends = false;
  int layers = 0;  // of the largest rank
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

// What is composed together: nothing in it is a degree.
struct SearchGroup {
  std::int64_t other = 0;  // combination of `vary`
  Sharding sharding;
  Recomputation recomputation;
  int replayed = 0;  // layers of a rank, where it is a share
  bool context = false, expert = false, cut_experts = false;
  std::vector<int> contexts, experts;
  std::vector<Pipeline> pipelines;
};

// One plan of the grid: a group and its degrees.
struct SearchPoint {
  std::int64_t number = 0;  // in the order of the grid
  int group = 0;
  int tensor = 1, context = 1, expert = 1, micro_batch = 1;
  int pipeline = 0;  // of the group's
};

struct SearchGrid {
  Scenario base;  // without what the grid decides
  SweepTable other;
  std::vector<int> tensor, micro_batch;
  bool sequence_parallel = true;
  std::vector<std::string> sharding_tables;  // of which a point has one
  bool experts_in_model = false;
  std::vector<SearchGroup> groups;
  Objective objective = Objective::kStepSeconds;
  double min_headroom = 0;
  std::optional<Condition> when;
  nlohmann::ordered_json defaults;
  std::string name;

  std::int64_t size() const;
  std::int64_t SizeOf(const SearchGroup& group) const;
};

std::optional<SearchGrid> ReadSearchGrid(const PluginRegistry& registry, const Scenario& scenario,
                                         Diagnostics* diagnostics);

// Takes a dotted key out of the tables, where it is in them.
void EraseKey(Value* root, const std::string& path);

// The keys of a point with their values, as for --set, and the scenario that has them.
std::vector<std::pair<std::string, Value>> SettingsOf(const SearchGrid& grid,
                                                      const SearchPoint& point);
Scenario ScenarioOf(const SearchGrid& grid, const SearchPoint& point);

}  // namespace shardlab
