#pragma once
// `shardlab sweep FILE` and `shardlab results`: every combination of a [sweep], and what is stored.

#include "app/command_line.h"

namespace shardlab {

int SweepCommand(const std::vector<std::string>& args, Streams streams);
int ResultsCommand(const std::vector<std::string>& args, Streams streams);

// --jobs beside other processes that do the work is a mistake: tells it, and the exit status.
int JobsBesideWorkers(CommandLine* line, Streams streams);

// --jobs: 0 is what the machine has.
int Jobs(int asked);

}  // namespace shardlab
