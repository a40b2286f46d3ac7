// Ends the program while it is loaded.
#include <cstdlib>

#include "support.h"

namespace {
struct Exit {
  Exit() { std::_Exit(7); }
};
[[maybe_unused]] const Exit kExit;
}  // namespace

SHARDLAB_PLUGIN("exits-while-loading", Idle, "is never seen")
