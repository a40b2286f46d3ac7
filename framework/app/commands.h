#pragma once
// The command line as a function: arguments in, text on two streams, the exit status out. Nothing
// here exits or reads globals, so that tests run commands in-process.
//
//   std::ostringstream out, err;
//   int status = RunShardlab({"plan", "70b.toml", "--format", "json"}, out, err);
//
// Exit status: 0 done; 2 the user's input is wrong; 3 --require-fit and no plan fits; 4 an [expect]
// does not hold; 1 anything else.

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace shardlab {

class Questions;
class Workers;

// What the process knows of its terminal, and of processes beside it; a test leaves the defaults.
struct Terminal {
  int width = 100;
  std::istream* in = nullptr;  // where a person answers; none: nobody does
  bool color_out = false, color_err = false;
  bool progress = false;             // standard error is a terminal
  std::string program = "shardlab";  // argv[0], to find plugins beside it
  // At most one of them, see app/workers.h: who does parts of sweeps and searches for this process,
  // and for whom it does.
  Workers* workers = nullptr;
  Questions* questions = nullptr;
};
// As it is, with argv[0].
Terminal ThisTerminal(const char* program);

int RunShardlab(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);
int RunShardlab(const std::vector<std::string>& args, std::ostream& out, std::ostream& err,
                const Terminal& terminal);

}  // namespace shardlab
