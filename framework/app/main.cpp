#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "app/commands.h"

namespace {

shardlab::Terminal ThisTerminal(const char* program) {
  shardlab::Terminal terminal;
  terminal.program = program;
  terminal.in = &std::cin;
  const char* no_color = std::getenv("NO_COLOR");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  terminal.color_out = wanted && isatty(STDOUT_FILENO) != 0;
  terminal.color_err = wanted && isatty(STDERR_FILENO) != 0;
  terminal.progress = isatty(STDERR_FILENO) != 0;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  return terminal;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return shardlab::RunShardlab({argv + 1, argv + argc}, std::cout, std::cerr,
                               ThisTerminal(argv[0]));
}
