// Its entry function returns nothing.
#include "support.h"

extern "C" __attribute__((visibility("default"))) const ShardlabPluginEntry*
shardlab_plugin_entry() {
  return nullptr;
}
