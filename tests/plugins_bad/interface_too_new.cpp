// The border is right, the interface of its kind is not.
#include "support.h"

namespace {
void Register(shardlab::Registrar* registrar) {
  registrar->Add("strategy", 2, "interface-too-new", "for a later Strategy", &Make<Idle>);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
