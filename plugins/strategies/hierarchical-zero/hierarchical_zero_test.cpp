#include "hierarchical_zero.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::hierarchical_zero {
namespace {

// Replicas on different sequences, and another axis that cuts one dimension.
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

Edited Apply(bool first, const std::map<std::string, bool>& facts = {}) {
  HierarchicalZero strategy;
  const Replicas replicas;
  Diagnostics said;
  const Value table = ParseToml("group = 4", "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  AccountingRules rules;
  rules.facts = facts;
  std::vector<StrategyUse> uses = {{"replicas", &replicas, {}},
                                   {"hierarchical-zero", &strategy, {}}};
  if (first) std::reverse(uses.begin(), uses.end());
  std::optional<Edited> edited = ApplyStrategies(Model(), uses, rules, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

AtomMask Atoms(const Edited& edited, const char* axis) {
  return edited.mesh.axis(edited.mesh.Find(axis)).atoms;
}

// What moves for one weight over the replicas: "micro-batch forward all-gather inner" -> times.
using Found = std::map<std::string, int>;
Found Transfers(const Edited& edited, const std::string& weight) {
  Found found;
  const AtomMask data = Atoms(edited, "data"), inner = Atoms(edited, "inner");
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
    if (edited.program.tensor(step.source.tensor).name != weight) continue;
    if ((step.group & ~data) != 0) continue;
    const char* over = step.group == inner             ? " inner"
                       : step.group == (data & ~inner) ? " outer"
                       : step.group == data            ? " all"
                                                       : " ?";
    ++found[std::string(step.when == When::kStep ? "step " : "micro-batch ") + Name(step.phase) +
            " " + Name(step.collective) + over];
  }
  return found;
}

TEST(HierarchicalZero, WhatIsCutOverWhat) {
  for (const bool first : {true, false}) {
    const Edited edited = Apply(first);
    const AtomMask data = Atoms(edited, "data"), inner = Atoms(edited, "inner");
    EXPECT_NE(data, inner);
    EXPECT_EQ(data & inner, inner);
    for (const Tensor& w : edited.program.tensors) {
      if (w.role != TensorRole::kParameter) continue;
      EXPECT_EQ(w.home.Flat(), inner) << w.name;
      EXPECT_EQ(w.gradient.Flat(), data) << w.name;
      EXPECT_EQ(w.state.Flat(), data) << w.name;
      EXPECT_EQ(w.use.Flat(), 0) << w.name;
      EXPECT_TRUE(w.reduce_each_micro_batch) << w.name;
    }
  }
}

TEST(HierarchicalZero, WhatTravels) {
  for (const bool first : {true, false}) {
    const Edited edited = Apply(first);
    for (const char* weight : {"w_up", "w_down"}) {
      EXPECT_EQ(Transfers(edited, weight),
                (Found{{"micro-batch forward all-gather inner", 1},
                       {"micro-batch backward all-gather inner", 1},
                       {"micro-batch gradient reduction reduce-scatter all", 1},
                       {"step weight restore all-gather outer", 1}}))
          << weight;
    }
  }
}

TEST(HierarchicalZero, WhatOfAWeightThatAnotherStrategyCuts) {
  const Edited edited = Apply(false);
  const AtomMask other = Atoms(edited, "other");
  const DimensionId ffn = edited.program.FindDimension("ffn");
  for (const Tensor& w : edited.program.tensors) {
    if (w.role != TensorRole::kParameter || w.name == "w_norm") continue;
    EXPECT_EQ(w.home.CutOf(ffn), other) << w.name;
    EXPECT_EQ(w.state.CutOf(ffn), other) << w.name;
  }
}

TEST(HierarchicalZero, WhatHidesAndWhatIsStated) {
  const Edited edited = Apply(false);
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || (step.group & ~Atoms(edited, "data")) != 0) continue;
    if (!edited.program.tensor(step.source.tensor).layer_class.valid()) continue;
    if (edited.program.tensor(step.source.tensor).role != TensorRole::kParameter) continue;
    EXPECT_EQ(step.hide,
              step.when == When::kMicroBatch ? HideBehind::kPrefetch : HideBehind::kNothing);
  }
  ASSERT_EQ(edited.derived.declared.size(), 1u);
  EXPECT_EQ(edited.derived.declared[0].bytes, 4);
  EXPECT_TRUE(Apply(false, {{"optimizer.gradient_norm", false}}).derived.declared.empty());
}

}  // namespace
}  // namespace shardlab::hierarchical_zero
