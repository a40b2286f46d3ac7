// Its factory makes nothing.
#include "support.h"

namespace {
std::unique_ptr<shardlab::Plugin> Nothing() { return nullptr; }
void Register(shardlab::Registrar* registrar) {
  registrar->Add("strategy", 1, "null-factory", "makes nothing", &Nothing);
}
}  // namespace

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, &Register)
