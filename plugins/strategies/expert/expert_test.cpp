#include "expert.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::expert {
namespace {

// The ranks that experts borrow, and what those axes cut.
class Lenders final : public Strategy {
 public:
  explicit Lenders(bool sequences) : sequences_(sequences) {}
  void Apply(Editor& edit) const override {
    AxisSpec data;
    data.name = "data";
    data.role = AxisRole::kData;
    edit.Fill(edit.Axis(data), "batch", [](const TensorView&) { return true; });
    AxisSpec neighbours;
    neighbours.name = "neighbours";
    neighbours.role = AxisRole::kTensor;
    neighbours.degree = 2;
    const AxisPart axis = edit.Axis(neighbours);
    if (!sequences_) return;
    edit.Fill(axis, "sequence", [](const TensorView& t) {
      return t.role() == TensorRole::kStream ||
             (t.role() == TensorRole::kRouted && !t.Has("expert_ffn"));
    });
  }

 private:
  bool sequences_;
};

Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Dimension('h', "hidden", 8);
  p.Dimension('e', "expert", 8);
  p.Dimension('m', "expert_ffn", 4);
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId scores = p.Product("scores", {x, "bsh"}, {p.Parameter("router", "he"), "he"},
                                    "bse", TensorRole::kStream);
  const TensorId routes = p.TopK("routes", {scores, "bse"}, "e", 2);
  const TensorId sent = p.Dispatch("sent", {x, "bsh"}, {routes, "bse"}, "bseh", 0.25);
  const TensorId up = p.Product("up", {sent, "bseh"}, {p.Parameter("w_up", "ehm"), "ehm"}, "bsem",
                                TensorRole::kRouted);
  const TensorId down = p.Product("down", {up, "bsem"}, {p.Parameter("w_down", "emh"), "emh"},
                                  "bseh", TensorRole::kRouted);
  p.Scale(up, 0.25);
  p.Scale(down, 0.25);
  p.Output(p.Product("combine", {down, "bseh"}, {routes, "bse"}, "bsh", TensorRole::kStream));
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Edited Apply(const std::string& toml, bool sequences = true, bool dense = false) {
  Expert strategy;
  const Lenders lenders(sequences);
  Diagnostics said;
  const Value table = ParseToml(toml, "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  Program program = Model();
  if (dense) program.dimensions[3].name = "something";
  std::optional<Edited> edited =
      ApplyStrategies(std::move(program), {{"lenders", &lenders, {}}, {"expert", &strategy, {}}},
                      AccountingRules{}, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) {
    if (d.severity == Severity::kError) ADD_FAILURE() << d.message;
  }
  EXPECT_EQ(said.all().size(), dense ? 1u : 0u);
  return edited ? *std::move(edited) : Edited();
}

const Tensor& Named(const Edited& edited, const std::string& name) {
  for (const Tensor& tensor : edited.program.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << name;
  return edited.program.tensors[0];
}

AtomMask AtomsOf(const Edited& edited, const char* axis) {
  return edited.mesh.axis(edited.mesh.Find(axis)).atoms;
}

int Count(const Edited& edited, Collective collective, AtomMask group) {
  int count = 0;
  for (const Step& step : edited.derived.steps) {
    const bool counted = step.kind == StepKind::kMove && step.collective == collective &&
                         step.group == group && step.when == When::kMicroBatch;
    count += counted ? 1 : 0;
  }
  return count;
}

TEST(Expert, WholeExpertsAreSpreadOverTheTensorRanksToo) {
  const Edited edited = Apply("degree = 8");
  const DimensionId expert = edited.program.FindDimension("expert");
  const AtomMask all = AtomsOf(edited, "expert");
  EXPECT_EQ(all & AtomsOf(edited, "neighbours"), AtomsOf(edited, "neighbours"));
  for (const char* name : {"w_up", "w_down", "sent", "up", "down"})
    EXPECT_EQ(Named(edited, name).use.CutOf(expert), all) << name;
  for (const char* name : {"router", "scores", "routes"})
    EXPECT_EQ(Named(edited, name).use.CutOf(expert), 0) << name;
  EXPECT_EQ(Count(edited, Collective::kAllToAll, all), 4) << "there and back, twice";
  EXPECT_EQ(edited.mesh.RoleOf(all), AxisRole::kExpert);
  EXPECT_EQ(edited.mesh.RoleOf(AtomsOf(edited, "neighbours")), AxisRole::kTensor);
}

TEST(Expert, SlicedExpertsUseTheTensorRanksAsSlices) {
  const Edited edited = Apply("degree = 4\ntensor_degree = 2");
  const DimensionId expert = edited.program.FindDimension("expert"),
                    inner = edited.program.FindDimension("expert_ffn");
  const AtomMask slices = AtomsOf(edited, "expert_tensor"), all = AtomsOf(edited, "neighbours");
  EXPECT_EQ(slices & all, slices);
  EXPECT_EQ(Named(edited, "w_up").use.CutOf(expert), AtomsOf(edited, "expert"));
  EXPECT_EQ(Named(edited, "w_up").use.CutOf(inner), slices);
  EXPECT_EQ(Count(edited, Collective::kAllToAll, AtomsOf(edited, "expert")), 4);
  EXPECT_GT(Count(edited, Collective::kAllGather, slices), 0);
  EXPECT_EQ(edited.mesh.RoleOf(slices), AxisRole::kTensor);
}

// Tensor ranks that do not share an expert hold different ones: a part of the same axis each.
TEST(Expert, TensorRanksAreSlicesOrHoldExpertsButNotBoth) {
  const Edited edited = Apply("degree = 8\ntensor_degree = 2");
  const AtomMask slices = AtomsOf(edited, "expert_tensor"), experts = AtomsOf(edited, "expert"),
                 all = AtomsOf(edited, "neighbours");
  EXPECT_EQ(slices & experts, 0);
  EXPECT_EQ((slices | experts) & all, all);
  const DimensionId sequence = edited.program.FindDimension("sequence");
  // Tokens are exchanged as they are cut over the slices' ranks, and gathered there behind that.
  EXPECT_EQ(Named(edited, "sent").use.CutOf(sequence), slices);
}

// Gradients of experts are summed where the same experts are, all others everywhere.
TEST(Expert, WhereAreGradientsSummed) {
  const Edited edited = Apply("degree = 8");
  const AtomMask others = AtomsOf(edited, "data") & ~AtomsOf(edited, "expert");
  std::map<std::string, int> summed;
  for (const Step& step : edited.derived.steps) {
    if (step.phase != Phase::kReduce || step.kind != StepKind::kMove) continue;
    summed[edited.program.tensor(step.source.tensor).name] |= step.group & AtomsOf(edited, "data");
  }
  EXPECT_EQ(summed.size(), 3u);
  for (const auto& [name, group] : summed)
    EXPECT_EQ(group, name == "router" ? AtomsOf(edited, "data") : others) << name;
  EXPECT_EQ(edited.plan_degrees.at("expert_data"), others);
}

TEST(Expert, OneRankChangesNothing) {
  const Edited edited = Apply("degree = 1");
  EXPECT_EQ(edited.mesh.axes().size(), 2u);
  EXPECT_FALSE(edited.mesh.Find("expert").valid());
}

TEST(Expert, RanksWithTheSameTokensAreRefused) {
  EXPECT_TRUE(Apply("degree = 8").requirements.back().message.empty());
  const Edited edited = Apply("degree = 8", /*sequences=*/false);
  EXPECT_EQ(edited.requirements.back().atoms, AtomsOf(edited, "neighbours"));
  EXPECT_FALSE(edited.requirements.back().message.empty());
}

TEST(Expert, TheBusiestRankHasMoreButNeverAll) {
  const std::map<std::string, double> cases = {{"imbalance = 1.5", 0.375},
                                               {"capacity_factor = 2", 0.5},
                                               {"capacity_factor = 1", 0.25},
                                               {"imbalance = 64", 1}};
  for (const auto& [toml, density] : cases)
    EXPECT_DOUBLE_EQ(Named(Apply("degree = 8\n" + toml), "sent").scale, density) << toml;
  // A single rank is as busy as the mean, but pads all the same.
  EXPECT_DOUBLE_EQ(Named(Apply("imbalance = 1.5"), "sent").scale, 0.25);
  EXPECT_DOUBLE_EQ(Named(Apply("capacity_factor = 2"), "sent").scale, 0.5);
}

TEST(Expert, AModelWithoutExpertsIsWarnedOf) { Apply("degree = 8", true, /*dense=*/true); }

}  // namespace
}  // namespace shardlab::expert
