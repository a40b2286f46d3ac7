#include "checkpointing.h"

SHARDLAB_PLUGIN("checkpointing", shardlab::checkpointing::Checkpointing,
                "keeps the input of each block and replays the block in the backward pass")
