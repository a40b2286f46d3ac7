#include "rail_latency.h"

SHARDLAB_PLUGIN("rail-latency", shardlab::rail_latency::RailLatency,
                "the rail network plus a latency for each step of a ring")
