#include "pipeline_interleaved_zb.h"

SHARDLAB_PLUGIN("pipeline-interleaved-zb", shardlab::pipeline_interleaved_zb::InterleavedZeroBubble,
                "interleaved, with the weight gradient in the bubble")
