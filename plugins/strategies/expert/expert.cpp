#include "expert.h"

SHARDLAB_PLUGIN("expert", shardlab::expert::Expert,
                "spreads experts over ranks of the other axes; tokens travel to them")
