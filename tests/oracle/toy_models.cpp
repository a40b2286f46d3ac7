#include "oracle/toy_models.h"

#include <gtest/gtest.h>

#include "api/program_builder.h"

namespace shardlab::oracle {
namespace {

constexpr int kTopExperts = 2;

// Returns the table, which a tied head reads too.
TensorId Embedding(ProgramBuilder& p) {
  p.BeginClass("embedding", StagePosition::kFirst);
  const TensorId tokens = p.Data("tokens", "bsv");
  const TensorId table = p.Parameter("embedding", "vh");
  p.Output(p.Lookup("embedded", {tokens, "bsv"}, {table, "vh"}, "bsh", TensorRole::kStream));
  p.EndClass();
  return table;
}

TensorId AttentionHalf(ProgramBuilder& p, TensorId x) {
  const TensorId norm = p.Norm("norm1", {x, "bsh"}, {p.Parameter("w_norm1", "h"), "h"}, "h");
  const TensorId q = p.Product("q", {norm, "bsh"}, {p.Parameter("w_q", "hkgd"), "hkgd"}, "bskgd");
  const TensorId k = p.Product("k", {norm, "bsh"}, {p.Parameter("w_k", "hkd"), "hkd"}, "bskd");
  const TensorId v = p.Product("v", {norm, "bsh"}, {p.Parameter("w_v", "hkd"), "hkd"}, "bskd");
  const TensorId a = p.Attention("attention", {q, "bskgd"}, {k, "btkd"}, {v, "btkd"}, "bskgd");
  const TensorId y = p.Product("y", {a, "bskgd"}, {p.Parameter("w_o", "kgdh"), "kgdh"}, "bsh",
                               TensorRole::kStream);
  return p.Add("add1", {x, "bsh"}, {y, "bsh"});
}

TensorId DenseHalf(ProgramBuilder& p, TensorId norm) {
  const TensorId gate =
      p.Product("gate", {norm, "bsh"}, {p.Parameter("w_gate", "hf"), "hf"}, "bsf");
  const TensorId up = p.Product("up", {norm, "bsh"}, {p.Parameter("w_up", "hf"), "hf"}, "bsf");
  const TensorId gated = p.GatedSilu("silu", {gate, "bsf"}, {up, "bsf"});
  return p.Product("down", {gated, "bsf"}, {p.Parameter("w_down", "fh"), "fh"}, "bsh",
                   TensorRole::kStream);
}

TensorId ExpertHalf(ProgramBuilder& p, TensorId norm, double experts) {
  const TensorRole routed = TensorRole::kRouted;
  const double density = kTopExperts / experts;
  // Of the stream: sequence parallelism cuts the router's work too.
  const TensorId scores = p.Product("scores", {norm, "bsh"}, {p.Parameter("w_router", "he"), "he"},
                                    "bse", TensorRole::kStream);
  const TensorId routes = p.TopK("routes", {scores, "bse"}, "e", kTopExperts);
  const TensorId sent = p.Dispatch("sent", {norm, "bsh"}, {routes, "bse"}, "bseh", density);
  const TensorId gate = p.Product("expert_gate", {sent, "bseh"},
                                  {p.Parameter("w_expert_gate", "ehm"), "ehm"}, "bsem", routed);
  const TensorId up = p.Product("expert_up", {sent, "bseh"},
                                {p.Parameter("w_expert_up", "ehm"), "ehm"}, "bsem", routed);
  const TensorId gated = p.GatedSilu("expert_silu", {gate, "bsem"}, {up, "bsem"}, routed);
  const TensorId down = p.Product("expert_down", {gated, "bsem"},
                                  {p.Parameter("w_expert_down", "emh"), "emh"}, "bseh", routed);
  for (const TensorId tensor : {gate, up, gated, down}) p.Scale(tensor, density);
  return p.Product("combine", {down, "bseh"}, {routes, "bse"}, "bsh", TensorRole::kStream);
}

void Layers(ProgramBuilder& p, const ToyModelOptions& options) {
  p.BeginClass("layer", StagePosition::kLayer, options.layers, true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId middle = AttentionHalf(p, x);
  const TensorId norm = p.Norm("norm2", {middle, "bsh"}, {p.Parameter("w_norm2", "h"), "h"}, "h");
  const TensorId z =
      options.experts ? ExpertHalf(p, norm, options.sizes.experts) : DenseHalf(p, norm);
  p.Output(p.Add("add2", {middle, "bsh"}, {z, "bsh"}));
  p.EndClass();
}

// `tied`: the embedding's table, or none.
void Head(ProgramBuilder& p, TensorId tied) {
  p.BeginClass("head", StagePosition::kLast);
  const TensorId x = p.Input("last", "bsh");
  const TensorId targets = p.Data("targets", "bsv");
  const TensorId norm = p.Norm("norm3", {x, "bsh"}, {p.Parameter("w_norm3", "h"), "h"}, "h");
  const Arg table = tied.valid() ? Arg{tied, "vh"} : Arg{p.Parameter("w_head", "hv"), "hv"};
  const TensorId logits = p.Product("logits", {norm, "bsh"}, table, "bsv");
  const TensorId largest = p.MaxReduce("largest", {logits, "bsv"}, "bs");
  const TensorId total = p.SumExp("total", {logits, "bsv"}, {largest, "bs"}, "bs");
  const TensorId picked =
      p.Product("picked", {targets, "bsv"}, {logits, "bsv"}, "bs", TensorRole::kStatistic);
  p.LogLoss("loss", {total, "bs"}, {largest, "bs"}, {picked, "bs"});
  p.EndClass();
}

}  // namespace

Program ToyModel(const ToyModelOptions& options) {
  const ToySizes& n = options.sizes;
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', n.sequence);
  p.Alias('t', 's');
  p.Dimension('h', "hidden", n.hidden);
  p.Dimension('k', "kv_heads", n.kv_heads);
  p.Dimension('g', "group", n.group);
  p.Dimension('d', "head_dim", n.head_dim);
  p.Dimension('f', "ffn", n.ffn);
  p.Dimension('v', "vocabulary", n.vocabulary);
  p.Dimension('e', "expert", n.experts);
  p.Dimension('m', "expert_ffn", n.expert_ffn);
  const TensorId table = Embedding(p);
  Layers(p, options);
  Head(p, options.tied_embedding ? table : TensorId());
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

}  // namespace shardlab::oracle
