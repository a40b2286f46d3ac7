#include "pipeline_gpipe.h"

SHARDLAB_PLUGIN("pipeline-gpipe", shardlab::pipeline_gpipe::Gpipe,
                "GPipe: all forwards, then all backwards")
