#include "context.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "api/program_builder.h"
#include "core/edits.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::context {
namespace {

// Another user of the same ranks: it borrows some and cuts one tensor over them.
class Borrower final : public Strategy {
 public:
  void Apply(Editor& edit) const override {
    AxisSpec spec;
    spec.name = "borrower";
    spec.role = AxisRole::kExpert;
    spec.degree = 2;
    spec.borrow_from = {AxisRole::kContext};
    edit.Shard(edit.Axis(spec), "hidden", [](const TensorView& t) { return t.name() == "y"; });
  }
};

Program Model() {
  ProgramBuilder p;
  p.Batch('b');
  p.Sequence('s', 16);
  p.Alias('t', 's');
  p.Dimension('h', "hidden", 8);
  p.Dimension('k', "kv_heads", 2);
  p.Dimension('g', "group", 2);
  p.Dimension('d', "head_dim", 2);
  p.BeginClass("layer", StagePosition::kLayer, 4, /*block=*/true);
  const TensorId x = p.Input("x", "bsh");
  const TensorId q = p.Product("q", {x, "bsh"}, {p.Parameter("wq", "hkgd"), "hkgd"}, "bskgd");
  const TensorId k = p.Product("k", {x, "bsh"}, {p.Parameter("wk", "hkd"), "hkd"}, "bskd");
  const TensorId v = p.Product("v", {x, "bsh"}, {p.Parameter("wv", "hkd"), "hkd"}, "bskd");
  const TensorId o = p.Attention("o", {q, "bskgd"}, {k, "btkd"}, {v, "btkd"}, "bskgd");
  p.Output(p.Product("y", {o, "bskgd"}, {p.Parameter("wo", "kgdh"), "kgdh"}, "bsh",
                     TensorRole::kStream));
  p.EndClass();
  absl::StatusOr<Program> program = p.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Edited Apply(const std::string& method, const Strategy* other = nullptr) {
  Context strategy;
  Diagnostics said;
  const Value table = ParseToml("degree = 4\nmethod = \"" + method + "\"", "scenario.toml", said);
  ParameterReader reader(&table, Place{}, {}, &said);
  strategy.Visit(reader);
  reader.Finish();
  std::vector<StrategyUse> uses = {{"context", &strategy, {}}};
  if (other != nullptr) uses.push_back({"other", other, {}});
  std::optional<Edited> edited =
      ApplyStrategies(Model(), uses, AccountingRules{}, "", Place{}, &said);
  for (const Diagnostic& d : said.all()) ADD_FAILURE() << d.message;
  return edited ? *std::move(edited) : Edited();
}

const Tensor& Named(const Edited& edited, const std::string& name) {
  for (const Tensor& tensor : edited.program.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << name;
  return edited.program.tensors[0];
}

// What moves inside a layer: "forward all-gather k".
using Found = std::map<std::string, int>;
Found Transfers(const Edited& edited) {
  Found found;
  for (const Step& step : edited.derived.steps) {
    if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
    const Tensor& tensor = edited.program.tensor(step.source.tensor);
    if (tensor.role == TensorRole::kParameter) continue;
    ++found[std::string(Name(step.phase)) + " " + Name(step.collective) + " " +
            (step.source.gradient ? "d" : "") + tensor.name];
  }
  return found;
}

TEST(Context, WhatTravelsForEachMethod) {
  const Found gathered = {{"forward all-gather k", 1},       {"forward all-gather v", 1},
                          {"backward all-gather k", 1},      {"backward all-gather v", 1},
                          {"backward reduce-scatter dk", 1}, {"backward reduce-scatter dv", 1}};
  EXPECT_EQ(Transfers(Apply("gather")), gathered);
  EXPECT_EQ(Transfers(Apply("ring")), gathered) << "a ring carries what a gather carries";
  const Found exchanged = Transfers(Apply("all-to-all"));
  for (const char* one : {"forward all-to-all q", "forward all-to-all o", "backward all-to-all dq",
                          "backward all-to-all do"}) {
    EXPECT_EQ(exchanged.count(one), 1u) << one;
  }
}

TEST(Context, WhereDoesAttentionWork) {
  for (const char* method : {"gather", "ring", "all-to-all"}) {
    const Edited edited = Apply(method);
    const AtomMask all = edited.mesh.axis(edited.mesh.Find("context")).atoms;
    const DimensionId sequence = edited.program.FindDimension("sequence");
    EXPECT_EQ(Named(edited, "q").use.CutOf(sequence), all) << method;
    EXPECT_EQ(Named(edited, "x").use.CutOf(sequence), all) << method;
    const bool heads = std::string(method) == "all-to-all";
    EXPECT_EQ(Named(edited, "o").use.CutOf(sequence), heads ? 0 : all) << method;
    EXPECT_EQ(Named(edited, "o").use.AnyCut(), all) << method;
  }
}

TEST(Context, WhatHidesUnderAttention) {
  for (const char* method : {"gather", "ring"}) {
    const Edited edited = Apply(method);
    for (const Step& step : edited.derived.steps) {
      if (step.kind != StepKind::kMove || step.collective == Collective::kSlice) continue;
      const bool parameter =
          edited.program.tensor(step.source.tensor).role == TensorRole::kParameter;
      const bool hides = std::string(method) == "ring" && !parameter;
      EXPECT_EQ(step.hide, hides ? HideBehind::kOp : HideBehind::kNothing);
      if (hides) {
        EXPECT_EQ(edited.program.op(step.op).kind, OpKind::kAttention);
      }
    }
  }
}

TEST(Context, WhatOfRanksThatAreBorrowed) {
  const Borrower borrower;
  const Edited edited = Apply("gather", &borrower);
  const AtomId lent = edited.mesh.axis(edited.mesh.Find("borrower")).order[0];
  EXPECT_EQ(Named(edited, "y").use.at(lent), Layout::Cut(edited.program.FindDimension("hidden")));
  EXPECT_EQ(Named(edited, "x").use.at(lent), Layout::Cut(edited.program.FindDimension("sequence")));
}

}  // namespace
}  // namespace shardlab::context
