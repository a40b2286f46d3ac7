#include "rail.h"

SHARDLAB_PLUGIN("rail", shardlab::rail::Rail,
                "classroom network: rings use one port for each rank in a server")
