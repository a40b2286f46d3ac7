#include "flat.h"

SHARDLAB_PLUGIN("flat", shardlab::flat::Flat,
                "classroom worst case: one port as soon as a group leaves its server")
