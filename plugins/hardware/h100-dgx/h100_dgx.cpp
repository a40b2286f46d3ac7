#include "h100_dgx.h"

SHARDLAB_PLUGIN("h100-dgx", shardlab::h100_dgx::H100Dgx,
                "DGX H100: eight H100 SXM 80 GB a server, a 400 Gb/s port each")
