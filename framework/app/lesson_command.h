#pragma once
// `shardlab lesson`: the course, as JSON and as a skin over it for a terminal.

#include "app/command_line.h"

namespace shardlab {

int LessonCommand(const std::vector<std::string>& args, Streams streams);

}  // namespace shardlab
