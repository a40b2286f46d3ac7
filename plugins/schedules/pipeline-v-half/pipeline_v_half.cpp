#include "pipeline_v_half.h"

SHARDLAB_PLUGIN("pipeline-v-half", shardlab::pipeline_v_half::VHalf,
                "V-Half: half the activations of 1F1B, a little more than half its bubble")
