#pragma once
// `shardlab simulate`.

#include "app/command_line.h"

namespace shardlab {

int SimulateCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
