// Registers no plugin at all.
#include "support.h"

namespace {
void Register(shardlab::Registrar*) {}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
