// Not bad, only ahead: a kind that this host does not know is listed and left alone.
#include "support.h"

namespace {
void Register(shardlab::Registrar* registrar) {
  registrar->Add("cooling", 7, "unknown-kind", "blows cold air", &Make<Idle>);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
