#include "zero.h"

SHARDLAB_PLUGIN("zero", shardlab::zero::Zero,
                "cuts optimizer state, gradients and weights over the replicas")
