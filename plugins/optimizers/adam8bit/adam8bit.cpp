#include "adam8bit.h"

SHARDLAB_PLUGIN("adam8bit", shardlab::adam8bit::Adam8bit,
                "Adam with moments in 8 bits, quantised block by block")
