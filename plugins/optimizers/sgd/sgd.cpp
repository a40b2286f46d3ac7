#include "sgd.h"

SHARDLAB_PLUGIN("sgd", shardlab::sgd::Sgd, "stochastic gradient descent, with momentum or without")
