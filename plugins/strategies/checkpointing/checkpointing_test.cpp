#include "checkpointing.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/program_builder.h"
#include "core/derive.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::checkpointing {
namespace {

constexpr int kLayers = 6;

// A gated MLP block between an embedding and a head.
Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Dimension('h', "hidden", 8);
  p.Dimension('f', "ffn", 24);
  p.Dimension('v', "vocabulary", 40);
  p.BeginClass("embedding", StagePosition::kFirst);
  p.Output(p.Lookup("embed", {p.Data("tokens", "bsv"), "bsv"}, {p.Parameter("table", "vh"), "vh"},
                    "bsh", TensorRole::kStream));
  p.EndClass();
  p.BeginClass("layer", StagePosition::kLayer, kLayers, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId n = p.Norm("n", {x, "bsh"}, {p.Parameter("w_norm", "h"), "h"}, "h");
  const TensorId gate = p.Product("gate", {n, "bsh"}, {p.Parameter("w_gate", "hf"), "hf"}, "bsf");
  const TensorId up = p.Product("up", {n, "bsh"}, {p.Parameter("w_up", "hf"), "hf"}, "bsf");
  const TensorId u = p.GatedSilu("u", {gate, "bsf"}, {up, "bsf"});
  const TensorId z =
      p.Product("z", {u, "bsf"}, {p.Parameter("w_down", "fh"), "fh"}, "bsh", TensorRole::kStream);
  p.Output(p.Add("out", {x, "bsh"}, {z, "bsh"}));
  p.EndClass();
  p.BeginClass("head", StagePosition::kLast);
  const TensorId last = p.Input("last", "bsh");
  p.Product("logits", {last, "bsh"}, {p.Parameter("w_head", "hv"), "hv"}, "bsv");
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

void Read(const std::string& toml, Checkpointing* strategy, Diagnostics* said) {
  const Value table = ParseToml(toml, "scenario.toml", *said);
  ParameterReader reader(&table, Place{}, {}, said);
  strategy->Visit(reader);
  reader.Finish();
  InitContext context;
  context.diagnostics = said;
  context.place_of = [&reader](const std::string& parameter) { return reader.PlaceOf(parameter); };
  context.is_given = [&reader](const std::string& parameter) { return reader.IsGiven(parameter); };
  strategy->Init(context);
}

Edited Apply(const std::string& toml) {
  Checkpointing strategy;
  Diagnostics said;
  Read(toml, &strategy, &said);
  std::optional<Edited> edited = ApplyStrategies(Model(), {{"checkpointing", &strategy, {}}},
                                                 AccountingRules{}, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

// Names of what the backward pass of the layers needs, by how long it is kept.
std::map<Residency, std::set<std::string>> Saved(const Edited& edited) {
  std::map<Residency, std::set<std::string>> found;
  for (const shardlab::Saved& saved : edited.derived.saved) {
    const ClassId reader = edited.program.op(saved.reader).layer_class;
    if (edited.program.layer_class(reader).name != "layer") continue;
    found[saved.residency].insert(edited.program.tensor(saved.tensor).name);
  }
  return found;
}
using Names = std::set<std::string>;

// A norm's gradient reads its input, a product's its operands, the gate's both of its inputs, a
// sum's nothing.
const Names kInside = {"n", "gate", "up", "u"};

TEST(Checkpointing, WhatIsKeptWithoutIt) {
  for (const char* toml : {"segment = 1", "mode = \"none\""}) {
    auto saved = Saved(Apply(toml));
    Names all = kInside;
    all.insert("x");
    EXPECT_EQ(saved[Residency::kKept], all);
    EXPECT_TRUE(saved[Residency::kBoundary].empty());
    EXPECT_TRUE(saved[Residency::kReplayed].empty());
  }
}

// Chen et al., arXiv 1604.06174, section 4: the input of each segment is kept, all else is computed
// again.
TEST(Checkpointing, WhatIsKeptOfABlock) {
  for (const int segment : {1, 2, 3}) {
    auto saved = Saved(Apply("mode = \"full\"\nsegment = " + std::to_string(segment)));
    EXPECT_TRUE(saved[Residency::kKept].empty());
    EXPECT_EQ(saved[Residency::kBoundary], Names{"x"});
    for (const std::string& name : kInside)
      EXPECT_EQ(saved[Residency::kReplayed].count(name), 1u) << name;
  }
}

TEST(Checkpointing, HowManyInputsAreKeptOfSixLayers) {
  for (const auto& [segment, kept] : std::map<int, int>{{1, 6}, {2, 3}, {3, 2}, {6, 1}}) {
    const Edited edited = Apply("mode = \"full\"\nsegment = " + std::to_string(segment));
    const Derived derived = Derive(Unroll(edited.program), edited.mesh);
    int boundaries = 0;
    for (const shardlab::Saved& saved : derived.saved)
      boundaries += saved.residency == Residency::kBoundary ? 1 : 0;
    EXPECT_EQ(boundaries, kept) << "segment " << segment;
  }
}

TEST(Checkpointing, WhatIsReplayed) {
  const Edited edited = Apply("mode = \"full\"");
  std::multiset<std::string> replayed;
  for (const Step& step : edited.derived.steps) {
    if (step.kind == StepKind::kCompute && step.phase == Phase::kReplay)
      replayed.insert(edited.program.op(step.op).name);
  }
  // The whole block once, its last op too; the embedding and the head are no blocks.
  EXPECT_EQ(replayed, (std::multiset<std::string>{"n", "gate", "up", "u", "z", "out"}));
  for (const Op& op : edited.program.ops) {
    EXPECT_EQ(op.recompute, edited.program.layer_class(op.layer_class).name == "layer") << op.name;
  }
}

// By need: what the replayed op makes is not kept, what it reads is.
TEST(Checkpointing, WhatIsKeptWhenOnlySomeOpsAreReplayed) {
  for (const char* module : {"u", "gated-silu"}) {
    const Edited edited =
        Apply("mode = \"selective\"\nmodules = [\"" + std::string(module) + "\"]");
    auto saved = Saved(edited);
    EXPECT_EQ(saved[Residency::kKept], (Names{"x", "n", "gate", "up"}));
    EXPECT_EQ(saved[Residency::kReplayed], Names{"u"});
    EXPECT_TRUE(saved[Residency::kBoundary].empty());
    std::multiset<std::string> replayed;
    for (const Step& step : edited.derived.steps) {
      if (step.kind == StepKind::kCompute && step.phase == Phase::kReplay)
        replayed.insert(edited.program.op(step.op).name);
    }
    EXPECT_EQ(replayed, std::multiset<std::string>{"u"});
  }
}

TEST(Checkpointing, WhichModulesAreRefused) {
  Checkpointing strategy;
  Diagnostics said;
  Read("mode = \"selective\"\nmodules = [\"mlp\"]", &strategy, &said);
  EXPECT_TRUE(said.all().empty());
  EXPECT_FALSE(ApplyStrategies(Model(), {{"checkpointing", &strategy, {}}}, AccountingRules{}, "",
                               Place{}, &said));
  ASSERT_EQ(said.all().size(), 1u);
  EXPECT_NE(said.all()[0].hint.find("gated-silu"), std::string::npos) << said.all()[0].hint;
  for (const char* toml : {"modules = [\"u\"]", "mode = \"selective\"\nmodules = []",
                           "mode = \"selective\"\nmodules = [1]"}) {
    Checkpointing other;
    Diagnostics mistakes;
    Read(toml, &other, &mistakes);
    EXPECT_EQ(mistakes.all().size(), 1u) << toml;
  }
}

TEST(Checkpointing, HasASegmentAMeaningWithoutRecomputation) {
  for (const char* toml : {"segment = 2", "mode = \"none\"\nsegment = 4"}) {
    Checkpointing strategy;
    Diagnostics said;
    Read(toml, &strategy, &said);
    ASSERT_EQ(said.all().size(), 1u) << toml;
    EXPECT_EQ(said.all()[0].code, "checkpointing.segment");
    EXPECT_NE(said.all()[0].hint.find("mode = \"full\""), std::string::npos);
  }
}

}  // namespace
}  // namespace shardlab::checkpointing
