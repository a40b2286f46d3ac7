#include "pipeline_breadth_first.h"

SHARDLAB_PLUGIN("pipeline-breadth-first", shardlab::pipeline_breadth_first::BreadthFirst,
                "breadth-first: every chunk does all micro-batches before the next")
