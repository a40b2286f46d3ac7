#include "tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::tensor {
namespace {

// A dense block with grouped heads between an embedding and a head.
Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Alias('t', 's');
  p.Dimension('h', "hidden", 24);
  p.Dimension('k', "kv_heads", 2);
  p.Dimension('g', "group", 3);
  p.Dimension('d', "head_dim", 4);
  p.Dimension('f', "ffn", 48);
  p.Dimension('v', "vocabulary", 36);
  p.BeginClass("embedding", StagePosition::kFirst);
  p.Output(p.Lookup("embed", {p.Data("tokens", "bsv"), "bsv"},
                    {p.Parameter("w_embedding", "vh"), "vh"}, "bsh", TensorRole::kStream));
  p.EndClass();
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId n1 = p.Norm("n1", {x, "bsh"}, {p.Parameter("w_n1", "h"), "h"}, "h");
  const TensorId q = p.Product("q", {n1, "bsh"}, {p.Parameter("w_q", "hkgd"), "hkgd"}, "bskgd");
  const TensorId k = p.Product("k", {n1, "bsh"}, {p.Parameter("w_k", "hkd"), "hkd"}, "bskd");
  const TensorId v = p.Product("v", {n1, "bsh"}, {p.Parameter("w_v", "hkd"), "hkd"}, "bskd");
  const TensorId a = p.Attention("a", {q, "bskgd"}, {k, "btkd"}, {v, "btkd"}, "bskgd");
  const TensorId y = p.Product("y", {a, "bskgd"}, {p.Parameter("w_o", "kgdh"), "kgdh"}, "bsh",
                               TensorRole::kStream);
  const TensorId m = p.Add("m", {x, "bsh"}, {y, "bsh"});
  const TensorId n2 = p.Norm("n2", {m, "bsh"}, {p.Parameter("w_n2", "h"), "h"}, "h");
  const TensorId gate = p.Product("gate", {n2, "bsh"}, {p.Parameter("w_gate", "hf"), "hf"}, "bsf");
  const TensorId up = p.Product("up", {n2, "bsh"}, {p.Parameter("w_up", "hf"), "hf"}, "bsf");
  const TensorId u = p.GatedSilu("u", {gate, "bsf"}, {up, "bsf"});
  const TensorId z =
      p.Product("z", {u, "bsf"}, {p.Parameter("w_down", "fh"), "fh"}, "bsh", TensorRole::kStream);
  p.Output(p.Add("out", {m, "bsh"}, {z, "bsh"}));
  p.EndClass();
  p.BeginClass("head", StagePosition::kLast);
  const TensorId last = p.Input("last", "bsh");
  const TensorId n3 = p.Norm("n3", {last, "bsh"}, {p.Parameter("w_n3", "h"), "h"}, "h");
  p.Product("logits", {n3, "bsh"}, {p.Parameter("w_head", "hv"), "hv"}, "bsv");
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Edited Apply(const std::string& toml, bool regather = true) {
  Tensor strategy;
  Diagnostics said;
  const Value table = ParseToml(toml, "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  AccountingRules rules;
  rules.facts["tensor.regather_input"] = regather;
  std::optional<Edited> edited =
      ApplyStrategies(Model(), {{"tensor", &strategy, {}}}, rules, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

// The dimension along which each atom of the axis cuts a tensor, "" where it is whole: {"kv_heads",
// ""}.
using Cuts = std::vector<std::string>;
Cuts CutsOf(const Edited& edited, const std::string& name) {
  for (const shardlab::Tensor& tensor : edited.program.tensors) {
    if (tensor.name != name) continue;
    Cuts cuts;
    for (const AtomId atom : edited.mesh.axis(edited.mesh.Find("tensor")).order) {
      const Layout layout = tensor.use.at(atom);
      cuts.push_back(layout.cut()     ? edited.program.dimension(layout.dim()).name
                     : layout.whole() ? ""
                                      : "partial");
    }
    return cuts;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// What travels for one layer over a group with this atom of the axis, as "phase collective" ->
// tensors.
std::map<std::string, std::multiset<std::string>> Transfers(const Edited& edited,
                                                            std::size_t atom = 0) {
  std::map<std::string, std::multiset<std::string>> found;
  const AtomMask bit = Bit(edited.mesh.axis(edited.mesh.Find("tensor")).order[atom]);
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice ||
        (step.group & bit) == 0)
      continue;
    if (edited.program.layer_class(step.layer_class).name != "layer") continue;
    const std::string name = edited.program.tensor(step.source.tensor).name;
    found[std::string(Name(step.phase)) + " " + Name(step.collective)].insert(
        step.source.gradient ? "d" + name : name);
  }
  return found;
}
using Names = std::multiset<std::string>;

const Cuts kBoth[] = {{"ffn", "ffn"}, {"vocabulary", "vocabulary"}, {"sequence", "sequence"}};
const Cuts kWhole = {"", ""};

TEST(Tensor, WhichRowsAreCut) {
  for (const char* sp : {"false", "true"}) {
    const Edited edited = Apply(std::string("degree = 2\nsequence_parallel = ") + sp);
    // Heads: one atom takes key/value heads, the other the queries of each; keys and values are
    // whole on the second.
    for (const char* name : {"w_q", "w_o", "q", "a"})
      EXPECT_EQ(CutsOf(edited, name), (Cuts{"kv_heads", "group"})) << name;
    for (const char* name : {"w_k", "w_v", "k", "v"})
      EXPECT_EQ(CutsOf(edited, name), (Cuts{"kv_heads", ""})) << name;
    for (const char* name : {"w_gate", "w_up", "w_down", "gate", "up", "u"})
      EXPECT_EQ(CutsOf(edited, name), kBoth[0]) << name;
    for (const char* name : {"w_embedding", "w_head", "logits"})
      EXPECT_EQ(CutsOf(edited, name), kBoth[1]) << name;
    for (const char* name : {"w_n1", "w_n2", "w_n3"})
      EXPECT_EQ(CutsOf(edited, name), kWhole) << name;
    // Everyone may have the batch: it is not moved.
    EXPECT_EQ(CutsOf(edited, "tokens"), kWhole);
  }
}

TEST(Tensor, WhatDoesSequenceParallelismCut) {
  for (const char* name : {"embed", "x", "y", "m", "z", "out", "last"}) {
    EXPECT_EQ(CutsOf(Apply("degree = 2"), name), kWhole) << name;
    EXPECT_EQ(CutsOf(Apply("degree = 2\nsequence_parallel = true"), name), kBoth[2]) << name;
  }
}

// Figure 3 of arXiv 1909.08053: f and g are an all-reduce each, one of them in each direction,
// twice a layer.
TEST(Tensor, WhatTravelsInALayer) {
  const auto found = Transfers(Apply("degree = 2"));
  EXPECT_EQ(found.at("forward all-reduce"), (Names{"y", "z"}));
  EXPECT_EQ(found.at("backward all-reduce"), (Names{"dn1", "dn2"}));
  EXPECT_EQ(found.size(), 2u);  // norms see all tokens: their gradients are whole
}

// Figures 5 and 6 of arXiv 2205.05198: gathers and reduce-scatters in place of all-reduces;
// section 4.2.2: what was gathered is not kept, but gathered again for the weight gradient.
TEST(Tensor, WhatTravelsWithSequenceParallelism) {
  for (const bool regather : {true, false}) {
    auto found = Transfers(Apply("degree = 2\nsequence_parallel = true", regather));
    EXPECT_EQ(found["forward all-gather"], (Names{"n1", "n2"}));
    EXPECT_EQ(found["forward reduce-scatter"], (Names{"y", "z"}));
    Names gathered = {"dy", "dz"};
    EXPECT_EQ(found["backward all-gather"], gathered);
    EXPECT_EQ(found["backward reduce-scatter"], (Names{"dn1", "dn2"}));
    EXPECT_EQ(found["weight gradient all-gather"], regather ? (Names{"n1", "n2"}) : Names{});
    // Each rank has the norms' gradients of its own tokens.
    EXPECT_EQ(found["gradient reduction all-reduce"], (Names{"dw_n1", "dw_n2"}));
  }
}

// Ranks that share a key/value head hold the same keys and values and have the gradient of their
// own queries' use.
TEST(Tensor, WhatTravelsBeyondTheKeyValueHeads) {
  const Edited edited = Apply("degree = 6");
  const auto heads = Transfers(edited, 0), queries = Transfers(edited, 1);
  EXPECT_EQ(heads.at("backward all-reduce"), (Names{"dn1", "dn2"}));
  EXPECT_EQ(queries.at("backward all-reduce"), (Names{"dk", "dn1", "dn2", "dv"}));
  EXPECT_EQ(queries.at("forward all-reduce"), (Names{"y", "z"}));
}

TEST(Tensor, WhatMustTheDegreeDivide) {
  const auto required = [](const std::string& toml) {
    const Edited edited = Apply(toml);
    std::map<std::string, double> sizes;
    for (const Requirement& r : edited.requirements) {
      double size = 1;
      for (const DimensionId dim : r.dimensions) size *= edited.program.dimension(dim).size;
      sizes[r.what] = size;
    }
    return sizes;
  };
  std::map<std::string, double> expected = {
      {"attention heads", 6}, {"units of the MLP", 48}, {"words of the vocabulary", 36}};
  EXPECT_EQ(required("degree = 2"), expected);
  expected["tokens of a sequence"] = 16;
  EXPECT_EQ(required("degree = 2\nsequence_parallel = true"), expected);
}

TEST(Tensor, HowMuchOfItsTrafficHides) {
  const Edited edited = Apply("degree = 2\noverlap = 0.25");
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
    EXPECT_EQ(step.hide, HideBehind::kShare);
    EXPECT_EQ(step.share, 0.25);
  }
}

}  // namespace
}  // namespace shardlab::tensor
