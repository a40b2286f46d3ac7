// Throws when it is asked what it has.
#include <stdexcept>

#include "support.h"

namespace {
void Register(shardlab::Registrar*) { throw std::runtime_error("no licence found"); }
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
