// Built for an API that this shardlab does not have yet.
#include "support.h"

namespace {
void Register(shardlab::Registrar*) {}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion + 1, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG,
          &Register)
