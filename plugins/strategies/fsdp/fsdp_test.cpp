#include "fsdp.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::fsdp {
namespace {

// Replicas on different sequences, and pieces of each: what is sharded over, not known.
class Replicas final : public Strategy {
 public:
  void Apply(Editor& edit) const override {
    AxisSpec data;
    data.name = "data";
    data.role = AxisRole::kData;
    edit.Fill(edit.Axis(data), "batch", [](const TensorView&) { return true; });
    AxisSpec pieces;
    pieces.name = "pieces";
    pieces.role = AxisRole::kContext;
    pieces.degree = 2;
    edit.Fill(edit.Axis(pieces), "sequence", [](const TensorView&) { return true; });
  }
};

Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Dimension('h', "hidden", 8);
  p.Dimension('v', "vocabulary", 40);
  p.BeginClass("embedding", StagePosition::kFirst);
  p.Output(p.Lookup("embed", {p.Data("tokens", "bsv"), "bsv"}, {p.Parameter("table", "vh"), "vh"},
                    "bsh", TensorRole::kStream));
  p.EndClass();
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  p.Alias('k', 'h');
  p.Output(p.Product("up", {x, "bsk"}, {p.Parameter("w", "kh"), "kh"}, "bsh", TensorRole::kStream));
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Edited Apply(const std::string& toml, const std::map<std::string, bool>& facts = {}) {
  Fsdp strategy;
  const Replicas replicas;
  Diagnostics said;
  const Value table = ParseToml("a = 1\n" + toml, "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {"a"}, &said);
  strategy.Visit(reader);
  reader.Finish();
  AccountingRules rules;
  rules.facts = facts;
  std::optional<Edited> edited = ApplyStrategies(
      Model(), {{"replicas", &replicas, {}}, {"fsdp", &strategy, {}}}, rules, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

const Tensor& Weight(const Edited& edited) {
  for (const Tensor& tensor : edited.program.tensors) {
    if (tensor.name == "w") return tensor;
  }
  ADD_FAILURE();
  return edited.program.tensors[0];
}

AtomMask AtomsOf(const Edited& edited, const char* axis) {
  return edited.mesh.axis(edited.mesh.Find(axis)).atoms;
}

// "micro-batch forward all-gather" over the named axes -> times, of the layers' weight.
using Found = std::map<std::string, int>;
Found Transfers(const Edited& edited) {
  Found found;
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
    if (edited.program.tensor(step.source.tensor).name != "w") continue;
    ++found[std::string(step.when == When::kStep ? "step " : "micro-batch ") + Name(step.phase) +
            " " + Name(step.collective) + " over " + edited.mesh.NameOf(step.group)];
  }
  return found;
}

TEST(Fsdp, WhatIsCutOverAllReplicas) {
  const Edited edited = Apply("");
  const AtomMask all = AtomsOf(edited, "data") | AtomsOf(edited, "pieces");
  EXPECT_EQ(Weight(edited).home.Flat(), all);
  EXPECT_EQ(Weight(edited).gradient.Flat(), all);
  EXPECT_EQ(Weight(edited).state.Flat(), all);
  EXPECT_EQ(Weight(edited).use.Flat(), 0);
  EXPECT_EQ(edited.plan_degrees.at("fsdp_shard"), all);
}

TEST(Fsdp, WhatTravels) {
  EXPECT_EQ(Transfers(Apply("")),
            (Found{{"micro-batch forward all-gather over pieces.data", 1},
                   {"micro-batch backward all-gather over pieces.data", 1},
                   {"micro-batch gradient reduction reduce-scatter over pieces.data", 1}}));
  EXPECT_EQ(Transfers(Apply("reshard_after_forward = false")),
            (Found{{"micro-batch forward all-gather over pieces.data", 1},
                   {"micro-batch gradient reduction reduce-scatter over pieces.data", 1}}));
}

// Hybrid: gathers stay in the group, and groups sum their shards.
TEST(Fsdp, WhatDoesAHybridGroupDo) {
  const Edited edited = Apply("shard = 4");
  const AtomMask group = AtomsOf(edited, "shard"), pieces = AtomsOf(edited, "pieces");
  EXPECT_EQ(Weight(edited).home.Flat(), group | pieces);
  EXPECT_EQ(edited.plan_degrees.at("fsdp_shard"), group | pieces);
  EXPECT_EQ(edited.plan_degrees.at("replicate"), AtomsOf(edited, "data") & ~group);
  int sums = 0;
  for (const Step& step : edited.derived.steps) {
    if (step.collective == Collective::kAllGather && step.kind == StepKind::kMove) {
      EXPECT_EQ(step.group, group | pieces);
    }
    if (step.collective != Collective::kAllReduce || step.kind != StepKind::kMove) continue;
    EXPECT_EQ(step.group, AtomsOf(edited, "data") & ~group);
    ++sums;
  }
  EXPECT_EQ(sums, 2);  // the table and the weight
}

TEST(Fsdp, OneRankACopyIsPlainDataParallelism) {
  const Edited edited = Apply("shard = 1");
  EXPECT_EQ(Weight(edited).state.Flat(), 0);
  EXPECT_TRUE(edited.plan_facts.empty());
}

// The classroom's reading: whole all step long, one gather a step.
TEST(Fsdp, WhatOfKeptWeightsThatAreWhole) {
  const Edited edited =
      Apply("reshard_after_forward = false", {{"fsdp.kept_weights_are_whole", true}});
  EXPECT_EQ(Weight(edited).home.Flat(), 0);
  EXPECT_EQ(Transfers(edited),
            (Found{{"micro-batch gradient reduction reduce-scatter over pieces.data", 1},
                   {"step weight restore all-gather over pieces.data", 1}}));
}

TEST(Fsdp, WhatHides) {
  for (const int ahead : {0, 1, 3}) {
    const Edited edited = Apply("prefetch = " + std::to_string(ahead) + "\nblocks_per_unit = 2");
    EXPECT_EQ(Weight(edited).ahead, ahead);
    EXPECT_EQ(Weight(edited).unit, 2);
    for (const Step& step : edited.derived.steps) {
      if (step.kind != StepKind::kMove || step.when == When::kStep ||
          edited.program.tensor(step.source.tensor).role != TensorRole::kParameter)
        continue;
      const bool hides = step.source.gradient || ahead > 0;
      EXPECT_EQ(step.hide, hides ? HideBehind::kPrefetch : HideBehind::kNothing);
    }
  }
}

}  // namespace
}  // namespace shardlab::fsdp
