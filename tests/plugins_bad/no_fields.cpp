// Its entry has the right numbers and null pointers.
#include "support.h"

BAD_ENTRY(shardlab::kPluginApiVersion, sizeof(ShardlabPluginEntry), SHARDLAB_BUILD_TAG, nullptr)
