#include "adam.h"

SHARDLAB_PLUGIN("adam", shardlab::adam::Adam, "Adam and AdamW: master weight and two moments")
