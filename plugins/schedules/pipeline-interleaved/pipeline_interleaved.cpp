#include "pipeline_interleaved.h"

SHARDLAB_PLUGIN("pipeline-interleaved", shardlab::pipeline_interleaved::Interleaved,
                "interleaved 1F1B: v chunks a rank, the bubble of 1F1B over v")
