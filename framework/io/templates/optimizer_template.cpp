#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kOptimizerTemplate = {
    R"TEXT(// @NAME@: gradient descent with momentum: one moment for each parameter, where Adam has two.
//
//   [optimizer]
//   plugin = "@NAME@"

#include <string>
#include <vector>

#include "api/optimizer.h"

namespace {

class @CLASS@ final : public shardlab::Optimizer {
 public:
  // What is kept for each parameter between steps; strategies that shard state shard whatever stands here.
  std::vector<shardlab::OptimizerState> States(const shardlab::Precision& precision) const override {
    std::vector<shardlab::OptimizerState> states;
    if (precision.master != shardlab::Dtype::kNone) states.push_back({"master weight", precision.master, 1});
    states.push_back({"momentum", precision.moments, 1});
    return states;
  }

  // momentum = mu x momentum + gradient, weight = weight - rate x momentum.
  double FlopsPerParameter() const override { return 4; }

  std::string source() const override { return "Sutskever et al., ICML 2013, equations 1 and 2"; }
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "gradient descent with momentum: master weight and one moment")
)TEXT",
    "Gradient descent with momentum keeps a full-precision weight and one moment for each "
    "parameter.",
    "Optimizer bytes = parameters x (bytes of the master weight + bytes of a moment): 8 in fp32.",
    "Learning rates and weight decay are not state and are not counted.",
    R"TEXT(name = "an 8B model with @NAME@ on 8 GPUs"
accounting = "textbook"

[model]
plugin = "llama"
preset = "llama3.1-8b"

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 4096
micro_batch_size = 1
global_batch_size = 8

[optimizer]
plugin = "@NAME@"

[strategy.tensor]
degree = 8

[expect]
"memory.ranks[0].optimizer_bytes" = { max = "8.1 GB" }   # 8 bytes x 8.03e9 parameters / 8 ranks
)TEXT",
    "",
};

}  // namespace shardlab
