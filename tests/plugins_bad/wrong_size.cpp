// Its entry is smaller than what the host reads.
#include "support.h"

namespace {
void Register(shardlab::Registrar*) {}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, 16, SHARDLAB_BUILD_TAG, &Register)
