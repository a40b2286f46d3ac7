#include <iostream>

#include "app/commands.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return shardlab::RunShardlab({argv + 1, argv + argc}, std::cout, std::cerr,
                               shardlab::ThisTerminal(argv[0]));
}
