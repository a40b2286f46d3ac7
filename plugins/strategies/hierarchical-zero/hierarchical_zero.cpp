#include "hierarchical_zero.h"

SHARDLAB_PLUGIN("hierarchical-zero", shardlab::hierarchical_zero::HierarchicalZero,
                "cuts weights over the replicas of a server, the rest of the state over all")
