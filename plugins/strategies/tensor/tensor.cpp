#include "tensor.h"

SHARDLAB_PLUGIN("tensor", shardlab::tensor::Tensor,
                "splits every matrix, and with sequence parallelism the stream")
