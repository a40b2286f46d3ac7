#include "pipeline_v_min.h"

SHARDLAB_PLUGIN("pipeline-v-min", shardlab::pipeline_v_min::VMin,
                "V-Min: a third of the activations of 1F1B, two thirds of its bubble")
