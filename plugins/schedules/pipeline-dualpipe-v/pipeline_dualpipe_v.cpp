#include "pipeline_dualpipe_v.h"

SHARDLAB_PLUGIN("pipeline-dualpipe-v", shardlab::pipeline_dualpipe_v::DualPipeV,
                "DualPipeV: DualPipe cut in half, one copy of the weights")
