#include "muon.h"

SHARDLAB_PLUGIN("muon", shardlab::muon::Muon,
                "Muon: a momentum for the layers' matrices, Adam for the rest")
