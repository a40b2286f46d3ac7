// Registers names that no scenario could write.
#include "support.h"

namespace {
void Register(shardlab::Registrar* registrar) {
  registrar->Add("strategy", 1, "no such\nname", "a name with a line break", &Make<Idle>);
  registrar->Add(nullptr, 1, nullptr, nullptr, nullptr);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
