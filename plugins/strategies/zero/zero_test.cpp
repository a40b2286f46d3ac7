#include "zero.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::zero {
namespace {

// Replicas on different sequences, and another axis that cuts one weight: what ZeRO has to live
// with, not know.
class Replicas final : public Strategy {
 public:
  void Apply(Editor& edit) const override {
    AxisSpec data;
    data.name = "data";
    data.role = AxisRole::kData;
    edit.Fill(edit.Axis(data), "batch", [](const TensorView&) { return true; });
    AxisSpec other;
    other.name = "other";
    other.role = AxisRole::kTensor;
    other.degree = 2;
    edit.Shard(edit.Axis(other), "ffn",
               [](const TensorView& t) { return t.role() != TensorRole::kData; });
  }
};

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
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId n = p.Norm("n", {x, "bsh"}, {p.Parameter("w_norm", "h"), "h"}, "h");
  const TensorId up = p.Product("up", {n, "bsh"}, {p.Parameter("w_up", "hf"), "hf"}, "bsf");
  p.Output(p.Product("down", {up, "bsf"}, {p.Parameter("w_down", "fh"), "fh"}, "bsh",
                     TensorRole::kStream));
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Edited Apply(const std::string& toml, const std::map<std::string, bool>& facts = {}) {
  Zero strategy;
  const Replicas replicas;
  Diagnostics said;
  const Value table = ParseToml(toml, "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  AccountingRules rules;
  rules.facts = facts;
  std::optional<Edited> edited = ApplyStrategies(
      Model(), {{"replicas", &replicas, {}}, {"zero", &strategy, {}}}, rules, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

AtomId AtomOf(const Edited& edited, const char* axis) {
  return edited.mesh.axis(edited.mesh.Find(axis)).order[0];
}

// What moves over the replicas for one weight: "micro-batch forward all-gather" -> times.
std::map<std::string, int> Transfers(const Edited& edited, const std::string& weight) {
  std::map<std::string, int> found;
  const AtomMask data = Bit(AtomOf(edited, "data"));
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice || step.group != data)
      continue;
    if (edited.program.tensor(step.source.tensor).name != weight) continue;
    ++found[std::string(step.when == When::kStep ? "step " : "micro-batch ") + Name(step.phase) +
            " " + Name(step.collective)];
  }
  return found;
}
using Found = std::map<std::string, int>;

// Figure 1 of arXiv 1910.02054: what each stage cuts over the replicas, of every weight.
TEST(Zero, WhatDoesEachStageCut) {
  struct Case {
    const char* toml;
    bool state, gradient, home, each;
  };
  for (const Case& c :
       {Case{"stage = 0", false, false, false, false}, Case{"stage = 1", true, false, false, false},
        Case{"stage = 2", true, true, false, true}, Case{"stage = 3", true, true, true, true}}) {
    const Edited edited = Apply(c.toml);
    const AtomId data = AtomOf(edited, "data");
    for (const Tensor& w : edited.program.tensors) {
      if (w.role != TensorRole::kParameter) continue;
      const auto layout = [](bool cut) { return cut ? Layout::Flat() : Layout::Whole(); };
      EXPECT_EQ(w.state.at(data), layout(c.state)) << c.toml << " " << w.name;
      EXPECT_EQ(w.gradient.at(data), layout(c.gradient)) << c.toml << " " << w.name;
      EXPECT_EQ(w.home.at(data), layout(c.home)) << c.toml << " " << w.name;
      EXPECT_EQ(w.use.at(data), Layout::Whole()) << c.toml << " " << w.name;
      EXPECT_EQ(w.reduce_each_micro_batch, c.each) << c.toml << " " << w.name;
    }
  }
}

TEST(Zero, WhatOfAWeightThatAnotherStrategyCuts) {
  const Edited edited = Apply("stage = 3");
  const AtomId other = AtomOf(edited, "other");
  const Layout ffn = Layout::Cut(edited.program.FindDimension("ffn"));
  for (const Tensor& w : edited.program.tensors) {
    if (w.role != TensorRole::kParameter) continue;
    const Layout expected = w.name == "w_up" || w.name == "w_down" ? ffn : Layout::Whole();
    EXPECT_EQ(w.home.at(other), expected) << w.name;
    EXPECT_EQ(w.state.at(other), expected) << w.name;
  }
}

// Section 7 of arXiv 1910.02054: stages 1 and 2 send what an all-reduce sends, stage 3 gathers once
// more.
TEST(Zero, WhatTravels) {
  EXPECT_EQ(Transfers(Apply("stage = 0"), "w_up"),
            (Found{{"step gradient reduction all-reduce", 1}}));
  EXPECT_EQ(Transfers(Apply("stage = 1"), "w_up"),
            (Found{{"step gradient reduction reduce-scatter", 1},
                   {"step weight restore all-gather", 1}}));
  EXPECT_EQ(Transfers(Apply("stage = 2"), "w_up"),
            (Found{{"micro-batch gradient reduction reduce-scatter", 1},
                   {"step weight restore all-gather", 1}}));
  EXPECT_EQ(Transfers(Apply("stage = 3"), "w_up"),
            (Found{{"micro-batch forward all-gather", 1},
                   {"micro-batch backward all-gather", 1},
                   {"micro-batch gradient reduction reduce-scatter", 1}}));
}

// Reduced once a step, gradients are whole until then; only an accounting that counts the end of
// the step may cut them.
TEST(Zero, WhenDoesStageTwoReduce) {
  for (const bool whole : {true, false}) {
    const Edited edited =
        Apply("stage = 2\nreduce = \"step\"", {{"zero.whole_gradients_until_reduced", whole}});
    EXPECT_EQ(Transfers(edited, "w_up"), (Found{{"step gradient reduction reduce-scatter", 1},
                                                {"step weight restore all-gather", 1}}));
    for (const Tensor& w : edited.program.tensors) {
      if (w.role != TensorRole::kParameter) continue;
      EXPECT_EQ(w.gradient.at(AtomOf(edited, "data")), whole ? Layout::Whole() : Layout::Flat())
          << w.name;
      EXPECT_FALSE(w.reduce_each_micro_batch);
    }
  }
}

TEST(Zero, WhatIsStatedAndNotDerived) {
  EXPECT_EQ(Apply("stage = 0").derived.declared.size(), 0u);
  EXPECT_EQ(Apply("stage = 1", {{"optimizer.gradient_norm", false}}).derived.declared.size(), 0u);
  const Edited edited = Apply("stage = 1");
  ASSERT_EQ(edited.derived.declared.size(), 1u);
  EXPECT_EQ(edited.derived.declared[0].bytes, 4);
  EXPECT_FALSE(edited.derived.declared[0].why.empty());
}

TEST(Zero, WhatHidesStageThreesTraffic) {
  const Edited edited = Apply("stage = 3");
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.group != Bit(AtomOf(edited, "data"))) continue;
    EXPECT_EQ(step.hide, HideBehind::kPrefetch) << Name(step.phase) << " " << Name(step.collective);
  }
}

}  // namespace
}  // namespace shardlab::zero
