#pragma once
// shardlab export NAME FILE: the plan as the files of a training framework.

#include <string>
#include <vector>

#include "app/command_line.h"

namespace shardlab {

int ExportCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
