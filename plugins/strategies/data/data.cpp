#include "data.h"

SHARDLAB_PLUGIN("data", shardlab::data::Data,
                "replicas on different sequences; what is left of the machine")
