#include "data.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::data {
namespace {

// y = x w, with a table in front and a loss behind.
Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Dimension('h', "hidden", 8);
  p.Dimension('f', "ffn", 24);
  p.BeginClass("embedding", StagePosition::kFirst);
  p.Output(p.Lookup("embed", {p.Data("tokens", "bsf"), "bsf"}, {p.Parameter("table", "fh"), "fh"},
                    "bsh", TensorRole::kStream));
  p.EndClass();
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId up = p.Product("up", {x, "bsh"}, {p.Parameter("w_up", "hf"), "hf"}, "bsf");
  p.Output(p.Product("down", {up, "bsf"}, {p.Parameter("w_down", "fh"), "fh"}, "bsh",
                     TensorRole::kStream));
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Data Configured(const std::string& toml) {
  Data strategy;
  Diagnostics said;
  const Value table = ParseToml(toml, "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  EXPECT_TRUE(said.empty());
  return strategy;
}

Edited Apply(const std::vector<StrategyUse>& uses) {
  Diagnostics said;
  std::optional<Edited> edited =
      ApplyStrategies(Model(), uses, AccountingRules{}, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

const Tensor& Named(const Edited& edited, const std::string& name) {
  for (const Tensor& tensor : edited.program.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return edited.program.tensors[0];
}

// Takes some of the data axis's ranks and cuts the wide tensors over them, as experts do.
class Borrower final : public Strategy {
 public:
  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "borrower";
    spec.role = AxisRole::kExpert;
    spec.degree = 2;
    spec.borrow_from = {AxisRole::kData};
    edit.Shard(edit.Axis(spec), "ffn",
               [](const TensorView& t) { return t.name() == "w_up" || t.name() == "up"; });
  }
};

TEST(Data, IsTheBatchCutAndNoWeight) {
  const Data data;
  const Edited edited = Apply({{"data", &data, {}}});
  const AtomId atom = edited.mesh.axis(edited.mesh.Find("data")).order[0];
  const Layout batch = Layout::Cut(edited.program.FindKind(DimensionKind::kBatch));
  for (const Tensor& tensor : edited.program.tensors) {
    const bool weight = tensor.role == TensorRole::kParameter;
    EXPECT_EQ(tensor.use.at(atom), weight ? Layout::Whole() : batch) << tensor.name;
  }
}

// Each replica has the gradient of its own sequences: one sum a step and weight, and nothing else
// travels.
TEST(Data, WhatTravels) {
  const Data data;
  const Edited edited = Apply({{"data", &data, {}}});
  int reductions = 0;
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
    ++reductions;
    EXPECT_EQ(step.collective, Collective::kAllReduce);
    EXPECT_EQ(step.when, When::kStep);
    EXPECT_EQ(step.phase, Phase::kReduce);
    EXPECT_TRUE(step.source.gradient);
    EXPECT_EQ(edited.program.tensor(step.source.tensor).role, TensorRole::kParameter);
  }
  EXPECT_EQ(reductions, 3);  // table, w_up, w_down
}

TEST(Data, DoesFillLeaveBorrowedRanksAlone) {
  const Data data;
  const Borrower borrower;
  for (const bool first : {true, false}) {  // the order of the file does not matter
    std::vector<StrategyUse> uses = {{"data", &data, {}}, {"borrower", &borrower, {}}};
    if (!first) std::swap(uses[0], uses[1]);
    const Edited edited = Apply(uses);
    const Axis& axis = edited.mesh.axis(edited.mesh.Find("data"));
    const AtomId borrowed = edited.mesh.axis(edited.mesh.Find("borrower")).order[0];
    ASSERT_EQ(axis.order.size(), 2u);  // its own ranks and the lent ones
    const AtomId own = axis.order[0] == borrowed ? axis.order[1] : axis.order[0];
    const Layout batch = Layout::Cut(edited.program.FindKind(DimensionKind::kBatch));
    const Layout ffn = Layout::Cut(edited.program.FindDimension("ffn"));
    EXPECT_EQ(Named(edited, "up").use.at(borrowed), ffn);
    EXPECT_EQ(Named(edited, "up").use.at(own), batch);
    EXPECT_EQ(Named(edited, "w_up").use.at(borrowed), ffn);
    EXPECT_EQ(Named(edited, "w_up").use.at(own), Layout::Whole());
    for (const char* other : {"x", "down", "embed", "tokens"}) {
      EXPECT_EQ(Named(edited, other).use.at(borrowed), batch) << other;
      EXPECT_EQ(Named(edited, other).use.at(own), batch) << other;
    }
  }
}

TEST(Data, WhatDoesTheReductionHideBehind) {
  const std::vector<std::pair<std::string, HideBehind>> cases = {
      {"full", HideBehind::kLastBackward},
      {"none", HideBehind::kNothing},
      {"ignore", HideBehind::kIgnored}};
  for (const auto& [word, behind] : cases) {
    const Data data = Configured("overlap = \"" + word + "\"");
    const Edited edited = Apply({{"data", &data, {}}});
    for (const Step& step : edited.derived.steps) {
      if (step.kind != StepKind::kMove || step.phase != Phase::kReduce) continue;
      EXPECT_EQ(step.hide, behind) << word;
    }
  }
}

TEST(Data, IsTheDegreeWhatIsLeftUnlessWritten) {
  const Data left, four = Configured("degree = 4");
  const Edited open = Apply({{"data", &left, {}}}), stated = Apply({{"data", &four, {}}});
  EXPECT_EQ(open.mesh.axis(open.mesh.Find("data")).degree, 0);
  EXPECT_EQ(stated.mesh.axis(stated.mesh.Find("data")).degree, 4);
}

}  // namespace
}  // namespace shardlab::data
