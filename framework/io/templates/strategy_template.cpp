#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kStrategyTemplate = {
    R"TEXT(// @NAME@: each data-parallel rank keeps only its share of the optimizer state, as ZeRO-1 does.
//
//   [strategy.@NAME@]
//   gradients = true

#include "api/strategy.h"

namespace {

class @CLASS@ final : public shardlab::Strategy {
 public:
  // One visitor serves reading, defaults, documentation and search; the value below is the default.
  void Visit(shardlab::ParameterVisitor& v) override {
    v.Boolean({.name = "gradients", .description = "cut the accumulated gradients too"}, &gradients_);
  }

  // Edits, in any order: the framework derives what must travel. No other strategy is named here.
  void Apply(shardlab::Editor& edit) const override {
    shardlab::StateEdit state;
    state.which = [](const shardlab::TensorView&) { return true; };
    state.roles = {shardlab::AxisRole::kData, shardlab::AxisRole::kContext};
    state.shard_state = true;
    state.shard_gradient = gradients_;
    edit.State(state);
  }

 private:
  bool gradients_ = false;
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "keeps a share of the optimizer state on each data-parallel rank")
)TEXT",
    "Every data-parallel rank holds the same optimizer state. Here each keeps a share of it, "
    "updates that\n"
    "share of the weights, and the ranks gather the updated weights.",
    "Optimizer bytes per rank = optimizer bytes / ranks of data x context.",
    "Parameters whose gradient is whole on these ranks anyway are not cut.",
    R"TEXT(name = "@NAME@: an 8B model on 8 GPUs"
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

[strategy.@NAME@]

[expect]
"memory.fits" = true
"memory.ranks[0].optimizer_bytes" = { max = "12.1 GB" }   # 12 bytes x 8.03e9 parameters / 8 ranks
)TEXT",
    "",
};

}  // namespace shardlab
