#include "pipeline_zb_v.h"

SHARDLAB_PLUGIN("pipeline-zb-v", shardlab::pipeline_zb_v::ZeroBubbleV,
                "ZB-V: two chunks a rank in a V, zero bubble with the memory of 1F1B")
