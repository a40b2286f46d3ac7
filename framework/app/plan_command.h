#pragma once
// `shardlab plan`, `shardlab explain`, and the lists of presets.

#include "app/command_line.h"

namespace shardlab {

int PlanCommand(const std::vector<std::string>& args, Streams streams);
int ExplainCommand(const std::vector<std::string>& args, Streams streams);
int ModelsCommand(const std::vector<std::string>& args, Streams streams);
int HardwareCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
