#include "fsdp.h"

SHARDLAB_PLUGIN("fsdp", shardlab::fsdp::Fsdp,
                "cuts all state over the replicas and gathers each block just before its use")
