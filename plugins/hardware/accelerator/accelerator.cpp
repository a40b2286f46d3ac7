#include "accelerator.h"

SHARDLAB_PLUGIN("accelerator", shardlab::accelerator::Accelerator,
                "a machine described by a file: A100, H100, H200, B200, GB200, MI300X, or your own")
