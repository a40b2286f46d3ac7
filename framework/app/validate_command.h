#pragma once
// `shardlab validate`: published measurements against predictions.

#include "app/command_line.h"

namespace shardlab {

int ValidateCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
