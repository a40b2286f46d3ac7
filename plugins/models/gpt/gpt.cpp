#include "gpt.h"

SHARDLAB_PLUGIN("gpt", shardlab::gpt::Gpt,
                "dense decoders with a plain MLP: layer norms, GELU, biases, learned positions")
