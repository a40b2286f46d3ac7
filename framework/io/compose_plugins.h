#pragma once
// Plugins of a scenario: made, given their parameters, initialised, written out with every default.
// Internal to compose_scenario.cpp.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/compose_tables.h"
#include "io/parameter_io.h"

namespace shardlab {

// A plugin object with where its parameters stand.
struct Loaded {
  std::shared_ptr<Plugin> plugin;
  std::shared_ptr<ParameterReader> reader;
  std::string name;  // of the plugin
  std::string key;   // in the memory; "": it is not kept there
  bool reused = false;
};

class ComposePlugins final : ComposeTables {
 public:
  explicit ComposePlugins(ComposeState* state) : ComposeTables(state) {}

  // Nothing, with a diagnostic, where there is no such plugin.
  std::optional<Loaded> Load(const std::string& kind, const std::string& name,
                             const Place& name_place, const Value* table, const std::string& path,
                             std::vector<std::string> reserved);
  void Init(const Loaded& loaded, const std::string& kind, const Place& place);
  // Into `resolved`; with a memory nobody reads that, but for the schedule.
  void Resolve(const Loaded& loaded, nlohmann::ordered_json& into);
  // The same whether others have it in common or not.
  void ResolveAlways(const Loaded& loaded, nlohmann::ordered_json& into);
};

}  // namespace shardlab
