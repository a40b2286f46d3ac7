#pragma once
// `shardlab schedule NAME`: a pipeline schedule alone, with given times and no model.

#include "app/command_line.h"

namespace shardlab {

int ScheduleCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
