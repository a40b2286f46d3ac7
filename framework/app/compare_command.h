#pragma once
// `shardlab compare FILE FILE`: two plans side by side.

#include "app/command_line.h"

namespace shardlab {

int CompareCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
