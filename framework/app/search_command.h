#pragma once
// `shardlab search FILE`: the best legal plans for a model on a machine.

#include "app/command_line.h"

namespace shardlab {

int SearchCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
