// Registers a strategy without a factory.
#include "support.h"

namespace {
void Register(shardlab::Registrar* registrar) {
  registrar->Add("strategy", 1, "no-factory", "cannot be made", nullptr);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
