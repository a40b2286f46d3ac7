#include "pipeline_csv.h"

SHARDLAB_PLUGIN("pipeline-csv", shardlab::pipeline_csv::OrderOfFile,
                "any order, read from a schedule CSV as PyTorch writes it")
