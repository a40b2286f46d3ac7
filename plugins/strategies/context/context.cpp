#include "context.h"

SHARDLAB_PLUGIN("context", shardlab::context::Context,
                "cuts the sequence; attention sees all of it by gather, ring or all-to-all")
