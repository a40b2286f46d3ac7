#include "llama.h"

SHARDLAB_PLUGIN("llama", shardlab::llama::Llama,
                "dense decoders with a gated MLP: RMSNorm, grouped-query attention, SwiGLU")
