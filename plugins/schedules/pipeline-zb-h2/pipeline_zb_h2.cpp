#include "pipeline_zb_h2.h"

SHARDLAB_PLUGIN("pipeline-zb-h2", shardlab::pipeline_zb_h2::ZeroBubbleH2,
                "ZB-H2: no bubble between a rank's first and last op, twice the memory of 1F1B")
