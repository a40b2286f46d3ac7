#pragma once
// [search] as read: the objective, what plans must hold, which keys are fixed and which are varied
// over which values.
//
//   SearchTable table = ReadSearchTable(scenario, keys_of_the_grid, &diagnostics);
//   std::vector<int> degrees = table.TakeIntegers("schedule.degree", {1, 2, 4});

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/condition.h"
#include "io/scenario.h"
#include "io/sweep_table.h"

namespace shardlab {

enum class Objective { kStepSeconds, kTokensPerSecondPerDevice, kCost };
const char* Name(Objective objective);
const std::vector<std::string>& ObjectiveNames();
std::optional<Objective> ParseObjective(const std::string& name);

struct SearchTable {
  Objective objective = Objective::kStepSeconds;
  double min_headroom = 0;
  std::optional<Condition> when;
  std::vector<std::string> fixed;  // keys and tables
  std::set<std::string> keys;      // that are varied
  SweepTable varied;               // what of it has not been taken yet

  bool Fixed(const std::string& key) const;
  bool Varied(const std::string& key) const { return keys.count(key) > 0; }
  bool Decided(const std::string& key) const { return Fixed(key) || Varied(key); }
  // The values of a key that is varied by itself, each once; then it is no dimension of `varied`
  // any more. Nothing where it is not varied so, or a value is of another kind.
  std::optional<std::vector<Value>> Take(const std::string& key, Value::Kind kind);
  // Sorted.
  std::optional<std::vector<int>> TakeIntegers(const std::string& key);
  // A mistake for each of these keys that is still in `varied`: the grid sets it in each plan.
  void RefuseRest(const std::vector<std::string>& of_grid, const std::vector<std::string>& names,
                  Diagnostics* diagnostics) const;
};

// `varied_keys`: what a grid varies, and so may be fixed. Every mistake is told.
SearchTable ReadSearchTable(const Scenario& scenario, const std::vector<std::string>& varied_keys,
                            Diagnostics* diagnostics);

}  // namespace shardlab
