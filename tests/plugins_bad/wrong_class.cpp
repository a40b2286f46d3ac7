// Says schedule and makes a strategy.
#include "support.h"

namespace {
void Register(shardlab::Registrar* registrar) {
  registrar->Add("schedule", 1, "wrong-class", "is no schedule", &Make<Idle>);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
