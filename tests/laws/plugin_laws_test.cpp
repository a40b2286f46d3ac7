// Every plugin of every kind: its parameters are documented, its defaults are legal and read back
// unchanged, its README names what it has. Optimizers and models: what their interfaces promise.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "api/model.h"
#include "api/optimizer.h"
#include "laws/made.h"

namespace shardlab {
namespace {

template <class F>
void EachPlugin(F check) {
  EXPECT_GE(BuiltPlugins().List().size(), 10u) << "no plugins are built";
  for (const PluginInfo& info : BuiltPlugins().List()) {
    SCOPED_TRACE(info.kind + " " + info.name);
    check(info);
  }
}

TEST(PluginLaws, EveryPluginAndParameterIsDescribed) {
  EachPlugin([](const PluginInfo& info) {
    EXPECT_FALSE(info.description.empty());
    std::set<std::string> names;
    for (const ParameterDoc& doc : DocsOf(info.kind, info.name)) {
      SCOPED_TRACE(doc.name);
      EXPECT_TRUE(names.insert(doc.name).second) << "twice";
      EXPECT_GE(doc.description.size(), 5u);
      EXPECT_LE(doc.minimum, doc.maximum);
      EXPECT_FALSE(doc.DefaultText().empty() && doc.type != "string")
          << "no default and no word for it";
    }
  });
}

TEST(PluginLaws, ReadingItsOwnDefaultsBackChangesNothing) {
  EachPlugin([](const PluginInfo& info) {
    const std::vector<ParameterDoc> docs = DocsOf(info.kind, info.name);
    std::string text = "a = 1\n";  // an empty file is no TOML of ours
    for (const ParameterDoc& doc : docs) {
      if (doc.automatic.empty() && doc.default_value.kind != Value::kNone) {
        absl::StrAppend(&text, doc.name, " = ", ToToml(doc.default_value), "\n");
      }
    }
    Diagnostics diagnostics;
    const Value table = ParseToml(text, "defaults", diagnostics);
    auto made = BuiltPlugins().Make(info.kind, info.name);
    ASSERT_TRUE(made.ok());
    ParameterReader reader(&table, {}, {"a"}, &diagnostics);
    (*made)->Visit(reader);
    reader.Finish();
    for (const Diagnostic& d : diagnostics.all()) ADD_FAILURE() << d.message << " in\n" << text;
    ParameterDocumenter again;
    (*made)->Visit(again);
    ASSERT_EQ(again.docs().size(), docs.size());
    for (std::size_t i = 0; i < docs.size(); ++i) {
      EXPECT_EQ(ParameterDocToJson(again.docs()[i]).dump(), ParameterDocToJson(docs[i]).dump());
    }
  });
}

TEST(PluginLaws, TheReadmeNamesEveryParameter) {
  EachPlugin([](const PluginInfo& info) {
    const std::string folder = SourceFolderOf(info.name);
    ASSERT_FALSE(folder.empty());
    std::ifstream file(folder + "/README.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_GT(text.size(), 200u) << "README.md says what it does, with formula, source and limits";
    for (const ParameterDoc& doc : DocsOf(info.kind, info.name)) {
      EXPECT_NE(text.find(doc.name), std::string::npos) << "README.md does not name " << doc.name;
    }
  });
}

TEST(OptimizerLaws, StateIsNamedAndSized) {
  for (const std::string& name : BuiltPlugins().Names(Optimizer::kKind)) {
    SCOPED_TRACE(name);
    const auto optimizer = Made<Optimizer>(name);
    EXPECT_FALSE(optimizer->source().empty());
    EXPECT_GE(optimizer->FlopsPerParameter(), 0);
    for (const std::string& recipe : CatalogNames(BuiltPlugins(), "precision")) {
      SCOPED_TRACE(recipe);
      Diagnostics diagnostics;
      const std::optional<Precision> precision =
          ReadRecipe(BuiltPlugins(), recipe, {}, diagnostics);
      ASSERT_TRUE(precision.has_value());
      const auto bytes = [&](const Precision& p) {
        double sum = 0;
        std::set<std::string> names;
        for (const OptimizerState& state : optimizer->States(p)) {
          EXPECT_FALSE(state.name.empty());
          EXPECT_TRUE(names.insert(state.name).second) << state.name << " twice";
          EXPECT_GT(state.per_parameter, 0);
          EXPECT_GT(BytesPerElement(state.dtype), 0) << state.name << " has no bytes";
          sum += BytesPerElement(state.dtype) * state.per_parameter;
        }
        return sum;
      };
      // A master copy costs its dtype, whatever else there is.
      Precision without = *precision, with = *precision;
      without.master = Dtype::kNone;
      with.master = Dtype::kFp32;
      EXPECT_GE(bytes(*precision), 0);
      EXPECT_EQ(bytes(with) - bytes(without), 4);
    }
  }
}

// The recipes' bytes a parameter: weights / gradients / optimizer state of the accountings'
// optimizer.
TEST(OptimizerLaws, TheRecipesComeToTheirBytes) {
  struct Expected {
    const char* recipe;
    double parameters, gradients, state;
  };
  constexpr Expected kExpected[] = {{"textbook", 2, 2, 12},     {"megatron-bf16", 2, 4, 12},
                                    {"fsdp-mixed", 4, 4, 8},    {"pure-bf16", 2, 2, 4},
                                    {"megatron-fp8", 2, 4, 12}, {"deepseek-fp8", 2, 4, 8}};
  Diagnostics diagnostics;
  const std::optional<Accounting> accounting =
      ReadAccounting(BuiltPlugins(), "operator", {}, diagnostics);
  ASSERT_TRUE(accounting.has_value());
  const Value* optimizer_name = accounting->defaults.FindPath("optimizer.plugin");
  ASSERT_NE(optimizer_name, nullptr);
  const auto optimizer = Made<Optimizer>(optimizer_name->text);
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.recipe);
    const std::optional<Precision> precision =
        ReadRecipe(BuiltPlugins(), expected.recipe, {}, diagnostics);
    ASSERT_TRUE(precision.has_value());
    double state = 0;
    for (const OptimizerState& s : optimizer->States(*precision))
      state += BytesPerElement(s.dtype) * s.per_parameter;
    EXPECT_EQ(BytesOf(*precision, DtypeSlot::kParameters), expected.parameters);
    EXPECT_EQ(BytesOf(*precision, DtypeSlot::kGradients), expected.gradients);
    EXPECT_EQ(state, expected.state);
  }
}

TEST(ModelLaws, RowsAddUpToTheParametersOfTheFacts) {
  int presets = 0;
  for (const std::string& name : BuiltPlugins().Names(Model::kKind)) {
    for (const std::string& preset : PresetsOf(name)) {
      ++presets;
      SCOPED_TRACE(name + " " + preset);
      const auto model = Made<Model>(name, {absl::StrCat("preset = \"", preset, "\"\n")});
      ASSERT_NE(model, nullptr);
      for (const bool coarse : {false, true}) {
        SCOPED_TRACE(coarse ? "coarse" : "rows");
        const auto describe = [&] {
          ProgramBuilder builder;
          const absl::Status status = model->Describe(builder, {coarse, 4096});
          EXPECT_TRUE(status.ok()) << status;
          auto program = builder.Take();
          EXPECT_TRUE(program.ok()) << program.status();
          return program.ok() ? *std::move(program) : Program();
        };
        const Program program = describe();
        double elements = 0;
        for (const Tensor& tensor : program.tensors) {
          if (tensor.role != TensorRole::kParameter) continue;
          double product = tensor.scale * program.layer_class(tensor.layer_class).repeat;
          for (const DimensionId dim : tensor.dims) product *= program.dimension(dim).size;
          elements += product;
        }
        EXPECT_EQ(std::llround(elements), std::llround(program.facts.parameters));
        EXPECT_LE(program.facts.active_parameters, program.facts.parameters);
        EXPECT_GT(program.facts.active_parameters, 0);
        EXPECT_LT(program.facts.embedding_parameters, program.facts.parameters);
        EXPECT_FALSE(program.facts.source.empty());
        int layers = 0;
        for (const LayerClass& row : program.classes) {
          if (row.position == StagePosition::kLayer) layers += row.repeat;
        }
        EXPECT_EQ(layers, program.facts.layers);
        const Program again = describe();
        ASSERT_EQ(again.tensors.size(), program.tensors.size())
            << "the same object gives the same rows";
        ASSERT_EQ(again.ops.size(), program.ops.size());
        for (std::size_t i = 0; i < program.tensors.size(); ++i) {
          EXPECT_EQ(again.tensors[i].name, program.tensors[i].name);
          EXPECT_EQ(again.tensors[i].scale, program.tensors[i].scale);
        }
      }
    }
  }
  EXPECT_GE(presets, 3);
}

}  // namespace
}  // namespace shardlab
