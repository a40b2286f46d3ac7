#include "nccl.h"

SHARDLAB_PLUGIN("nccl", shardlab::nccl::Nccl,
                "NCCL: ring or tree, LL, LL128 or Simple, whichever is fastest")
