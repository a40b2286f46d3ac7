#include "moe.h"

SHARDLAB_PLUGIN("moe", shardlab::moe::Moe,
                "mixtures of experts: top-k routing, shared experts, plain or latent attention")
