#include "pipeline_1f1b.h"

SHARDLAB_PLUGIN("pipeline-1f1b", shardlab::pipeline_1f1b::OneForwardOneBackward,
                "1F1B: a backward after each forward, at most p - r micro-batches in flight")
