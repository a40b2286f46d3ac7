#include "llama.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/parameter_io.h"
#include "io/toml_value.h"

// The plugin's own functions are in its source file. Its entry function stays out: the executable
// that holds the tests of all plugins has none.
#undef SHARDLAB_PLUGIN
#define SHARDLAB_PLUGIN(name, Class, description)
#include "llama.cpp"

namespace shardlab::llama {
namespace {

const std::string kFolder = SHARDLAB_SOURCE_DIR "/plugins/models/llama";
constexpr double kSequence = 128;

// A model as [model] asks for it, with what was said against it.
struct Asked {
  explicit Asked(const std::string& toml) : table(ParseToml(toml, "scenario.toml", said)) {
    ParameterReader reader(&table, Place{"scenario.toml", 1, 1, "model"}, {}, &said);
    model.Visit(reader);
    reader.Finish();
    InitContext context;
    context.rules = &rules;
    context.precision = &precision;
    context.directory = kFolder;
    context.diagnostics = &said;
    context.read_toml = [this](const std::string& file) {
      return ReadTomlFile(kFolder + "/" + file, said);
    };
    context.list_files = [](const std::string& subdirectory) {
      std::vector<std::string> names;
      for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/" + subdirectory)) {
        names.push_back(entry.path().filename().string());
      }
      return names;
    };
    context.place_of = [&reader](const std::string& parameter) {
      return reader.PlaceOf(parameter);
    };
    context.is_given = [&reader](const std::string& parameter) {
      return reader.IsGiven(parameter);
    };
    model.Init(context);
  }

  Program Rows(bool coarse) const {
    ProgramBuilder builder;
    EXPECT_TRUE(model.Describe(builder, {coarse, kSequence}).ok());
    absl::StatusOr<Program> program = builder.Take();
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? *std::move(program) : Program();
  }

  std::string Complaints() const {
    std::string all;
    for (const Diagnostic& d : said.all()) all += d.code + ": " + d.message + " (" + d.hint + ")\n";
    return all;
  }

  Diagnostics said;
  AccountingRules rules;
  Precision precision;
  Value table;
  Llama model;
};

double Elements(const Program& program, const Tensor& tensor) {
  double elements = tensor.scale;
  for (const DimensionId dim : tensor.dims) elements *= program.dimension(dim).size;
  return elements;
}

// Over all layers, to the element.
long long Parameters(const Program& program) {
  double sum = 0;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kParameter) {
      sum += Elements(program, tensor) * program.layer_class(tensor.layer_class).repeat;
    }
  }
  EXPECT_LT(std::abs(sum - std::round(sum)), 1e-3);
  return std::llround(sum);
}

// By name, of one layer or end.
std::map<std::string, double> Weights(const Program& program) {
  std::map<std::string, double> weights;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kParameter) weights[tensor.name] = Elements(program, tensor);
  }
  return weights;
}

// The totals of the model cards.
TEST(Llama, DoParametersMatchThePublishedTotalsInBothPrograms) {
  const std::map<std::string, long long> published = {{"llama3.1-8b", 8'030'261'248},
                                                      {"llama3.1-70b", 70'553'706'496},
                                                      {"llama3.1-405b", 405'853'388'800}};
  std::size_t presets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/presets")) {
    ++presets;
    const std::string name = entry.path().stem().string();
    const Asked asked("preset = \"" + name + "\"");
    ASSERT_EQ(asked.Complaints(), "");
    for (const bool coarse : {false, true}) {
      const Program program = asked.Rows(coarse);
      EXPECT_EQ(Parameters(program), program.facts.parameters)
          << name << (coarse ? ", coarse" : "");
      const auto known = published.find(name);
      if (known == published.end()) continue;
      EXPECT_EQ(Parameters(program), known->second) << name << (coarse ? ", coarse" : "");
    }
  }
  EXPECT_GE(presets, published.size());
}

TEST(Llama, HowManyColumnsDoQueriesKeysAndValuesHave) {
  // 12 query heads share 3 key/value heads of width 8; hidden 40 is not heads x head_dim.
  const Asked asked(
      "layers = 2\nhidden = 40\nheads = 12\nkv_heads = 3\nhead_dim = 8\nffn = 56\nvocabulary = "
      "100");
  ASSERT_EQ(asked.Complaints(), "");
  const std::map<std::string, double> weights = Weights(asked.Rows(false));
  EXPECT_EQ(weights.at("attention.q"), 40 * 12 * 8);
  EXPECT_EQ(weights.at("attention.k"), 40 * 3 * 8);
  EXPECT_EQ(weights.at("attention.v"), 40 * 3 * 8);
  EXPECT_EQ(weights.at("attention.o"), 12 * 8 * 40);
  EXPECT_EQ(weights.at("attention.norm"), 40);
  EXPECT_EQ(weights.at("mlp.gate") + weights.at("mlp.up") + weights.at("mlp.down"), 3 * 40 * 56);
  EXPECT_EQ(weights.at("mlp.norm"), 40);
  EXPECT_EQ(weights.at("embedding"), 100 * 40);
  EXPECT_EQ(weights.at("head"), 40 * 100);
  EXPECT_EQ(weights.at("norm"), 40);
  EXPECT_EQ(asked.Rows(false).facts.embedding_parameters, 100 * 40);
  EXPECT_EQ(asked.Rows(false).facts.attention_width, 12 * 8);
}

TEST(Llama, WhatDoesASingleQueryGroupMean) {
  // Without kv_heads each query head has its own keys: multi-head attention, and head_dim is hidden
  // / heads.
  const Asked asked("layers = 1\nhidden = 32\nheads = 4\nffn = 64\nvocabulary = 10");
  ASSERT_EQ(asked.Complaints(), "");
  const std::map<std::string, double> weights = Weights(asked.Rows(false));
  EXPECT_EQ(weights.at("attention.k"), 32 * 32);
  EXPECT_EQ(weights.at("attention.q"), 32 * 32);
}

TEST(Llama, DoKeysBesideAPresetOverrideIt) {
  const Asked asked("preset = \"llama3.1-70b\"\nlayers = 4\nvocabulary = 1024");
  ASSERT_EQ(asked.Complaints(), "");
  const Program program = asked.Rows(false);
  // A layer of 70B: q and o 8192 x 8192, k and v 8192 x 1024, three of 8192 x 28672, two norms.
  const long long layer = 2LL * 8192 * 8192 + 2LL * 8192 * 1024 + 3LL * 8192 * 28672 + 2LL * 8192;
  EXPECT_EQ(Parameters(program), 4 * layer + 2LL * 1024 * 8192 + 8192);
  EXPECT_EQ(program.facts.layers, 4);
}

// Megatron's count of a forward pass, 2 FLOPs a weight and token, and 4 s a t for scores and
// values, of which a causal model needs half (arXiv 2205.05198, appendix A; arXiv 2307.08691,
// section 3.1).
TEST(Llama, HowManyFlopsHasAForwardPass) {
  const Asked asked("layers = 1\nhidden = 32\nheads = 4\nkv_heads = 2\nffn = 64\nvocabulary = 10");
  const Program program = asked.Rows(false);
  double products = 0, attention = 0;
  for (const Op& op : program.ops) {
    double flops = op.flops;
    for (const Factor& factor : op.factors) flops *= program.dimension(factor.dim).size;
    if (op.kind == OpKind::kProduct) products += flops;
    if (op.kind == OpKind::kAttention) attention += flops;
  }
  const double s = kSequence, weights = 32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64 + 32 * 10;
  EXPECT_EQ(products, 2 * weights * s);
  EXPECT_EQ(attention, 4 * s * s * 32 / 2);
}

// 34 s b h bytes a layer, 10 of them of the stream; 2 P FLOPs a token (arXiv 2205.05198, equation
// 2).
TEST(Llama, WhatDoesTheClassroomCount) {
  const Asked asked("preset = \"llama3.1-8b\"");
  const Program program = asked.Rows(true);
  double stream = 0, inside = 0, work = 0;
  for (const Op& op : program.ops) {
    for (const TensorId id : op.stash) {
      const Tensor& tensor = program.tensor(id);
      EXPECT_EQ(tensor.dtype, DtypeSlot::kCompute);
      (tensor.role == TensorRole::kStream ? stream : inside) += 2 * Elements(program, tensor);
    }
    if (op.kind != OpKind::kWork) continue;
    double flops = op.flops;
    for (const Factor& factor : op.factors) flops *= program.dimension(factor.dim).size;
    work += flops;
  }
  const double sbh = kSequence * 4096;
  EXPECT_DOUBLE_EQ(stream, 10 * sbh);
  EXPECT_DOUBLE_EQ(inside, 24 * sbh);
  EXPECT_DOUBLE_EQ(work, 2 * 8'030'261'248.0 * kSequence);
}

TEST(Llama, IsEveryMistakeSaidAtOnce) {
  const std::string complaints =
      Asked("hidden = 30\nheads = 4\nkv_heads = 3\nffn = 64\nnorms = 3").Complaints();
  for (const char* part :
       {"a block has no 3 norms", "needs layers", "needs vocabulary", "4 heads do not divide by 3",
        "legal: 1, 2 or 4", "hidden 30 does not divide by 4 heads"}) {
    EXPECT_NE(complaints.find(part), std::string::npos) << part << " is not in\n" << complaints;
  }
}

TEST(Llama, WhatDoRelativesAddToALayer) {
  const std::string plain =
      "layers = 1\nhidden = 32\nheads = 4\nkv_heads = 2\nffn = 64\nvocabulary = 10";
  const auto count = [&](const std::string& more) {
    const Asked asked(plain + "\n" + more);
    EXPECT_EQ(asked.Complaints(), "");
    const Program program = asked.Rows(false);
    EXPECT_EQ(Parameters(program), program.facts.parameters) << more;
    EXPECT_EQ(Parameters(asked.Rows(true)), program.facts.parameters) << more << ", coarse";
    return Parameters(program);
  };
  const long long base = count("");
  EXPECT_EQ(count("qkv_bias = true"), base + 32 + 2 * 16);
  EXPECT_EQ(count("o_bias = true"), base + 32);
  EXPECT_EQ(count("mlp_bias = true"), base + 2 * 64 + 32);
  EXPECT_EQ(count("qk_norm = \"head\""), base + 2 * 8);
  EXPECT_EQ(count("qk_norm = \"full\""), base + 32 + 16);
  EXPECT_EQ(count("norms = 4"), base + 2 * 32);
  EXPECT_EQ(count("parallel = true\nnorms = 1"), base - 32);
  EXPECT_EQ(count("norm = \"none\""), base - 3 * 32);
  EXPECT_EQ(count("norm = \"layer\""), base + 3 * 32);
  EXPECT_EQ(count("tied = true"), base - 320);
  EXPECT_EQ(count("post_norm = true"), base);
}

// A window of w of s tokens leaves w s - w^2 / 2 of the s^2 / 2 pairs.
TEST(Llama, HowMuchAttentionIsInAWindow) {
  const auto flops = [](const std::string& more) {
    const Asked asked("layers = 4\nhidden = 32\nheads = 4\nffn = 64\nvocabulary = 10\n" + more);
    for (const Op& op : asked.Rows(false).ops) {
      if (op.kind == OpKind::kAttention) return op.flops;
    }
    return 0.0;
  };
  const double s = kSequence, w = 32, inside = (w * s - w * w / 2) / (s * s / 2);
  EXPECT_DOUBLE_EQ(flops("sliding_window = 32"), flops("") * inside);
  EXPECT_DOUBLE_EQ(flops("sliding_window = 32\nfull_attention_every = 2"),
                   flops("") * (1 + inside) / 2);
  EXPECT_DOUBLE_EQ(flops("sliding_window = 128"), flops(""));
}

TEST(Llama, WhatIfAPresetIsMisspelt) {
  const std::string complaints = Asked("preset = \"llama3.1-7b\"").Complaints();
  EXPECT_NE(complaints.find("did you mean \"llama3.1-"), std::string::npos) << complaints;
  EXPECT_NE(complaints.find("llama3.1-405b"), std::string::npos) << complaints;
}

}  // namespace
}  // namespace shardlab::llama
