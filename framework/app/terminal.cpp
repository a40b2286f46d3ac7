#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "app/commands.h"

namespace shardlab {

Terminal ThisTerminal(const char* program) {
  Terminal terminal;
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

}  // namespace shardlab
