#pragma once
// `shardlab plan`, `shardlab explain`, and the lists of presets.

#include "app/command_line.h"
#include "io/plan_document.h"
#include "io/scenario.h"

namespace shardlab {

// A file read and planned; `planned` has no composition when there are errors.
struct Planned {
  Scenario scenario;
  Diagnostics diagnostics;
  Sources sources;
  PlannedScenario planned;
};
Planned ReadAndPlan(const PluginRegistry& registry, const std::string& file,
                    const std::vector<std::string>& sets, PlannedOrder kind = PlannedOrder::kShort);

int PlanCommand(const std::vector<std::string>& args, Streams streams);
int ExplainCommand(const std::vector<std::string>& args, Streams streams);
int ModelsCommand(const std::vector<std::string>& args, Streams streams);
int HardwareCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
