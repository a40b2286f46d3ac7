// The strategies that are shipped, on the same tiny worlds: they add requirements, prices and facts
// to what the plain ones of this folder do, and must not change the numbers.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "../../plugins/strategies/checkpointing/checkpointing.h"
#include "../../plugins/strategies/context/context.h"
#include "../../plugins/strategies/data/data.h"
#include "../../plugins/strategies/expert/expert.h"
#include "../../plugins/strategies/fsdp/fsdp.h"
#include "../../plugins/strategies/hierarchical-zero/hierarchical_zero.h"
#include "../../plugins/strategies/tensor/tensor.h"
#include "../../plugins/strategies/zero/zero.h"
#include "core/mesh_builder.h"
#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

// Gives parameters values by name; all others keep their defaults.
class Settings final : public ParameterVisitor {
 public:
  explicit Settings(std::map<std::string, Value> values) : values_(std::move(values)) {}

  void Boolean(const Parameter& p, bool* value) override {
    if (const Value* given = Find(p)) *value = given->boolean;
  }
  void Integer(const Parameter& p, int* value) override {
    if (const Value* given = Find(p)) *value = static_cast<int>(given->integer);
  }
  void Text(const Parameter& p, std::string* value) override {
    if (const Value* given = Find(p)) *value = given->text;
  }
  void Number(const Parameter&, double*) override {}
  void Amount(const Parameter&, Unit, double*) override {}
  void Integers(const Parameter&, std::vector<int>*) override {}
  void IntegerOr(const Parameter& p, const std::string&, int* value) override { Integer(p, value); }
  void Raw(const Parameter&, Value*) override {}

 private:
  const Value* Find(const Parameter& p) const {
    const auto it = values_.find(p.name);
    return it == values_.end() ? nullptr : &it->second;
  }
  std::map<std::string, Value> values_;
};

template <class Plugin>
Choice With(std::string name, std::map<std::string, Value> values) {
  auto plugin = std::make_shared<Plugin>();
  Settings settings(std::move(values));
  plugin->Visit(settings);
  return {std::move(name), std::move(plugin)};
}

Choice ShippedTensor(bool sequence_parallel) {
  return With<tensor::Tensor>(sequence_parallel ? "tensor, sequence parallel" : "tensor",
                              {{"sequence_parallel", Value::Boolean(sequence_parallel)}});
}
Choice ShippedZero(int stage, const char* reduce = "micro_batch") {
  return With<zero::Zero>("zero " + std::to_string(stage) + " " + reduce,
                          {{"stage", Value::Integer(stage)}, {"reduce", Value::Text(reduce)}});
}
Choice ShippedCheckpointing(int segment) {
  return With<checkpointing::Checkpointing>(
      "checkpointing " + std::to_string(segment),
      {{"mode", Value::Text("full")}, {"segment", Value::Integer(segment)}});
}

Choice ShippedHierarchicalZero() {
  return With<hierarchical_zero::HierarchicalZero>("hierarchical zero", {});
}
Choice ShippedFsdp(int shard, bool reshard_after_forward = true) {
  return With<fsdp::Fsdp>("fsdp " + std::to_string(shard) + (reshard_after_forward ? "" : " kept"),
                          {{"shard", Value::Integer(shard)},
                           {"reshard_after_forward", Value::Boolean(reshard_after_forward)}});
}
Choice ShippedContext(const char* method) {
  return With<context::Context>(std::string("context ") + method,
                                {{"degree", Value::Integer(2)}, {"method", Value::Text(method)}});
}
Choice ShippedExpert(int tensor_degree) {
  return With<expert::Expert>(
      "expert, expert-tensor " + std::to_string(tensor_degree),
      {{"degree", Value::Integer(2)}, {"tensor_degree", Value::Integer(tensor_degree)}});
}

const Choices kNone;

TEST(PluginWorldsTest, ShippedFullyShardedAndContext) {
  Tally tally;
  const Choices data = {With<data::Data>("data", {})};
  for (const bool experts : {false, true}) {
    const Setting setting(Unroll(ToyModel({.experts = experts, .layers = 1})), {});
    for (const Choices& choices : Product({
             {data},
             {kNone, {ShippedTensor(false)}, {ShippedTensor(true)}},
             {kNone, {ShippedFsdp(0)}, {ShippedFsdp(0, false)}, {ShippedFsdp(2)}, {ShippedZero(1)}},
             {{ShippedContext("ring")}, {ShippedContext("gather")}, {ShippedContext("all-to-all")}},
         })) {
      const bool few = choices.size() <= 3;
      RunEveryMesh(setting, choices, 8, tally,
                   [few](int number) { return few || number % 3 == 1; });
    }
  }
  Conclude(tally, "shipped, fully sharded and context");
}

// Attention's output is replayed by need.
TEST(PluginWorldsTest, ShippedSelectiveCheckpointing) {
  Tally tally;
  const Choices data = {With<data::Data>("data", {})};
  const Setting setting(Unroll(ToyModel({.experts = false, .layers = 1})), {});
  for (const Choices& choices : Product({
           {data},
           {kNone, {ShippedTensor(true)}},
           {kNone, {ShippedFsdp(0)}, {ShippedFsdp(0, false)}},
           {kNone, {ShippedContext("ring")}, {ShippedContext("all-to-all")}},
           {{With<checkpointing::Checkpointing>("selective",
                                                {{"mode", Value::Text("selective")}})}},
       })) {
    RunEveryMesh(setting, choices, 8, tally);
  }
  Conclude(tally, "shipped, selective checkpointing");
}

TEST(PluginWorldsTest, ShippedExperts) {
  Tally tally;
  const Choices data = {With<data::Data>("data", {})};
  const Setting setting(Unroll(ToyModel({.experts = true, .layers = 1})), {});
  for (const Choices& choices : Product({
           {data},
           {{ShippedExpert(1)},
            {ShippedTensor(true), ShippedExpert(1)},
            {ShippedTensor(true), ShippedExpert(2)}},
           {kNone, {ShippedContext("ring")}, {ShippedContext("all-to-all")}},
           {kNone, {ShippedZero(1)}, {ShippedFsdp(0)}, {ShippedFsdp(2)}},
       })) {
    const bool few = choices.size() <= 3;
    RunEveryMesh(setting, choices, 8, tally, [few](int number) { return few || number % 3 == 1; });
  }
  Conclude(tally, "shipped, experts");
}

// On sixteen ranks there is room for tensor ranks that share an expert, others that hold different
// ones, and experts over context and data ranks beside them. A share of the meshes, of which those
// with all of that are what is looked for.
TEST(PluginWorldsTest, ShippedExpertsInSlicesOfSomeTensorRanks) {
  Tally tally;
  const Choices data = {With<data::Data>("data", {})};
  const Setting setting(Unroll(ToyModel({.experts = true, .layers = 1})), {});
  for (const Choices& choices : Product({
           {data},
           {{ShippedTensor(true), ShippedExpert(2)}},
           {kNone, {ShippedContext("ring")}, {ShippedContext("all-to-all")}},
           {kNone, {ShippedZero(1)}, {ShippedFsdp(0)}},
       })) {
    const std::optional<Edited> edited = Apply(setting.program, choices);
    ASSERT_TRUE(edited.has_value());
    const AtomMask tensor = AtomsOf(edited->mesh, {"tensor"}),
                   slices = AtomsOf(edited->mesh, {"expert_tensor"}),
                   experts = AtomsOf(edited->mesh, {"expert"});
    const auto size = [](const std::vector<int>& degrees, AtomMask atoms) {
      int product = 1;
      for (std::size_t a = 0; a < degrees.size(); ++a) product *= atoms >> a & 1 ? degrees[a] : 1;
      return product;
    };
    int number = 0;
    ++tally.compositions;
    for (const std::vector<int>& degrees : Meshes(*edited, 16)) {
      const bool straddles = size(degrees, slices) > 1 && size(degrees, tensor & experts) > 1 &&
                             size(degrees, experts) > size(degrees, tensor & experts);
      if (!straddles || ++number % 7 != 1 || (kSanitized && number % 70 != 1)) continue;
      const std::string wrong = WhatIsWrong(setting, *edited, edited->derived, degrees, tally);
      if (wrong.empty()) continue;
      ++tally.failures;
      ADD_FAILURE() << NameOf(choices) << NameOf(*edited, degrees) << ": " << wrong;
    }
  }
  Conclude(tally, "shipped, experts in slices");
}

TEST(PluginWorldsTest, ShippedStrategiesOnEveryMesh) {
  Tally tally;
  const Choices data = {With<data::Data>("data", {})};
  for (const bool experts : {false, true}) {
    const Program rolled = ToyModel({.experts = experts, .layers = 2});
    const Setting setting(Unroll(rolled), {});
    for (const Choices& choices : Product({
             {data},
             {{}, {ShippedTensor(false)}, {ShippedTensor(true)}},
             {{},
              {ShippedZero(0)},
              {ShippedZero(1)},
              {ShippedZero(2)},
              {ShippedZero(2, "step")},
              {ShippedZero(3)},
              {ShippedHierarchicalZero()}},
             {{}, {ShippedCheckpointing(1)}, {ShippedCheckpointing(2)}},
             {{}, {ContextGather()}},
         })) {
      const std::optional<Edited> edited = ApplyThenUnroll(rolled, choices);
      ASSERT_TRUE(edited.has_value());
      const bool few = choices.size() <= 3;
      RunEveryMesh(setting, choices, *edited, 8, tally,
                   [few](int number) { return few || number % 5 == 3; });
    }
  }
  Conclude(tally, "shipped strategies");
}

}  // namespace
}  // namespace shardlab::oracle
