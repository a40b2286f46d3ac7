// Its C++ objects have another layout.
#include "support.h"

namespace {
void Register(shardlab::Registrar*) {}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry),
          "libstdc++-0/debug-stl/plain/absl-other", &Register)
