#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kModelTemplate = {
    R"TEXT(// @NAME@: a tower of gated MLPs between an embedding and a head, without attention.
//
//   [model]
//   plugin = "@NAME@"
//   layers = 24

#include <string>

#include "api/model.h"

namespace {

using shardlab::StagePosition;
using shardlab::TensorId;
using shardlab::TensorRole;

class @CLASS@ final : public shardlab::Model {
 public:
  void Visit(shardlab::ParameterVisitor& v) override {
    v.Integer({.name = "layers", .description = "gated MLPs", .minimum = 1, .maximum = 100000}, &layers_);
    v.Integer({.name = "hidden", .description = "width of the stream", .minimum = 1}, &hidden_);
    v.Integer({.name = "ffn", .description = "width inside an MLP", .minimum = 1}, &ffn_);
    v.Integer({.name = "vocabulary", .description = "tokens", .minimum = 1}, &vocabulary_);
  }

  // The rows of one device, uncut: a letter stands for its dimension, ops are written like einsum.
  absl::Status Describe(shardlab::ProgramBuilder& p, const shardlab::ModelRequest& request) const override {
    if (request.coarse) {
      return absl::UnimplementedError("@NAME@ has no classroom program; write accounting = \"operator\"");
    }
    p.Dimension('h', "hidden", hidden_);
    p.Dimension('f', "ffn", ffn_);
    p.Dimension('v', "vocabulary", vocabulary_);
    p.Batch('b');
    p.Sequence('s', request.sequence_length);
    Embedding(p);
    Layer(p);
    Head(p);

    const double h = hidden_;
    const double ends = h * vocabulary_;
    p.facts().name = "@NAME@";
    p.facts().layers = layers_;
    // Must be the sum over the parameter rows, to the element.
    p.facts().parameters = layers_ * (h + 3 * h * ffn_) + ends + h + ends;
    p.facts().active_parameters = p.facts().parameters;
    p.facts().embedding_parameters = ends;
    p.facts().source = "assumed";
    return absl::OkStatus();
  }

 private:
  void Embedding(shardlab::ProgramBuilder& p) const {
    p.BeginClass("embedding", StagePosition::kFirst);
    const TensorId tokens = p.Data("tokens", "bsv");
    const TensorId table = p.Parameter("embedding", "vh");
    p.Output(p.Lookup("embed", {tokens, "bsv"}, {table, "vh"}, "bsh", TensorRole::kStream));
    p.EndClass();
  }

  void Layer(shardlab::ProgramBuilder& p) const {
    p.BeginClass("layer", StagePosition::kLayer, layers_, true);
    const TensorId x = p.Input("x", "bsh");
    const TensorId scale = p.Parameter("norm", "h");
    const TensorId gate = p.Parameter("gate", "hf");
    const TensorId up = p.Parameter("up", "hf");
    const TensorId down = p.Parameter("down", "fh");
    const TensorId n = p.Norm("normed", {x, "bsh"}, {scale, "h"}, "h");
    const TensorId g = p.Product("gated", {n, "bsh"}, {gate, "hf"}, "bsf");
    const TensorId u = p.Product("wide", {n, "bsh"}, {up, "hf"}, "bsf");
    const TensorId a = p.GatedSilu("silu", {g, "bsf"}, {u, "bsf"});
    const TensorId d = p.Product("narrow", {a, "bsf"}, {down, "fh"}, "bsh", TensorRole::kStream);
    p.Output(p.Add("residual", {x, "bsh"}, {d, "bsh"}));
    p.EndClass();
  }

  void Head(shardlab::ProgramBuilder& p) const {
    p.BeginClass("head", StagePosition::kLast);
    const TensorId x = p.Input("x", "bsh");
    const TensorId scale = p.Parameter("final_norm", "h");
    const TensorId head = p.Parameter("head", "hv");
    const TensorId targets = p.Data("targets", "bsv");
    const TensorId n = p.Norm("final", {x, "bsh"}, {scale, "h"}, "h");
    const TensorId logits = p.Product("logits", {n, "bsh"}, {head, "hv"}, "bsv");
    const TensorId max = p.MaxReduce("max", {logits, "bsv"}, "bs");
    const TensorId sum = p.SumExp("sum", {logits, "bsv"}, {max, "bs"}, "bs");
    const TensorId picked =
        p.Lookup("picked", {targets, "bsv"}, {logits, "bsv"}, "bs", TensorRole::kStatistic);
    p.LogLoss("loss", {sum, "bs"}, {max, "bs"}, {picked, "bs"});
    p.EndClass();
  }

  int layers_ = 24;
  int hidden_ = 4096;
  int ffn_ = 16384;
  int vocabulary_ = 32000;
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "a tower of gated MLPs between an embedding and a head")
)TEXT",
    "An embedding, `layers` gated MLPs with a norm before each, a last norm, a head and the loss.",
    "Parameters = layers x (hidden + 3 x hidden x ffn) + 2 x hidden x vocabulary + hidden.",
    "No attention, and no classroom program: `accounting = \"textbook\"` is refused.",
    R"TEXT(name = "@NAME@ on 8 GPUs"

[model]
plugin = "@NAME@"
layers = 4

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 1024
micro_batch_size = 1
global_batch_size = 8

[expect]
"model.parameters" = 1067470848     # 4 x (4096 + 3 x 4096 x 16384) + 2 x 4096 x 32000 + 4096
"memory.fits" = true
)TEXT",
    "",
};

}  // namespace shardlab
