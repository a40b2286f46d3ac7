#include "pipeline_dualpipe.h"

SHARDLAB_PLUGIN("pipeline-dualpipe", shardlab::pipeline_dualpipe::DualPipe,
                "DualPipe: two directions at once, two copies of the weights")
