// A static initialiser throws: std::terminate inside dlopen.
#include <stdexcept>

#include "support.h"

namespace {
int Broken() { throw std::runtime_error("static initialiser gave up"); }
[[maybe_unused]] const int kBroken = Broken();
}  // namespace

SHARDLAB_PLUGIN("throws-while-loading", Idle, "is never seen")
