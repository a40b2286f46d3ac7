// A static constructor crashes.
#include <csignal>

#include "support.h"

namespace {
// The signal itself, not the write: a sanitizer would turn that into its own report.
struct Crash {
  Crash() { std::raise(SIGSEGV); }
};
[[maybe_unused]] const Crash kCrash;
}  // namespace

SHARDLAB_PLUGIN("crashes-while-loading", Idle, "is never seen")
