// Never comes back from being loaded.
#include <unistd.h>

#include "support.h"

namespace {
struct Hang {
  Hang() {
    while (true) pause();
  }
};
[[maybe_unused]] const Hang kHang;
}  // namespace

SHARDLAB_PLUGIN("hangs-while-loading", Idle, "is never seen")
