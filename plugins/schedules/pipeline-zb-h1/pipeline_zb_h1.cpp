#include "pipeline_zb_h1.h"

SHARDLAB_PLUGIN("pipeline-zb-h1", shardlab::pipeline_zb_h1::ZeroBubbleH1,
                "ZB-H1: 1F1B with the weight gradient in the bubble, memory of 1F1B")
