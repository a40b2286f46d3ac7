#include "moe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "api/model.h"
#include "laws/made.h"

namespace shardlab::moe {
namespace {

constexpr double kSequence = 128;

Program Rows(const std::string& parameters, bool coarse = false) {
  const auto model = Made<Model>("moe", {parameters});
  ProgramBuilder builder;
  EXPECT_TRUE(model->Describe(builder, {coarse, kSequence}).ok());
  absl::StatusOr<Program> program = builder.Take();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

double Elements(const Program& program, const Tensor& tensor) {
  double elements = tensor.scale;
  for (const DimensionId dim : tensor.dims) elements *= program.dimension(dim).size;
  return elements;
}

// By name, of one layer or end; layers of two kinds: of the last.
std::map<std::string, double> Weights(const Program& program) {
  std::map<std::string, double> weights;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kParameter) weights[tensor.name] = Elements(program, tensor);
  }
  return weights;
}

// A Mixtral layer keeps 59 s b h bytes in the classroom, 46 of them of routed tokens; its work is
// that of the active parameters.
TEST(Moe, WhatDoesTheClassroomCount) {
  const Program program = Rows("preset = \"mixtral-8x7b\"", true);
  double kept = 0, routed = 0, work = 0;
  for (const Op& op : program.ops) {
    for (const TensorId id : op.stash) {
      const Tensor& stash = program.tensor(id);
      kept += 2 * Elements(program, stash);
      if (stash.role == TensorRole::kRouted) routed += 2 * Elements(program, stash);
    }
    if (op.kind != OpKind::kWork) continue;
    const Tensor& done = program.tensor(op.output);
    double flops = op.flops * (done.role == TensorRole::kRouted ? done.scale : 1);
    for (const Factor& factor : op.factors) flops *= program.dimension(factor.dim).size;
    work += flops;
  }
  EXPECT_DOUBLE_EQ(kept, 59 * kSequence * 4096);
  EXPECT_DOUBLE_EQ(routed, 46 * kSequence * 4096);
  EXPECT_DOUBLE_EQ(work, 2 * 12'879'925'248.0 * kSequence);
  ASSERT_EQ(program.limits.size(), 1u);
  EXPECT_EQ(program.limits[0].role, AxisRole::kTensor);
}

TEST(Moe, WhichTensorsAreRouted) {
  const Program program = Rows(
      "layers = 2\nhidden = 32\nheads = 4\nvocabulary = 50\nexperts = 8\ntop_k = 2\n"
      "expert_ffn = 16\nshared_experts = 2");
  int routed = 0;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role != TensorRole::kRouted) continue;
    ++routed;
    EXPECT_EQ(tensor.scale, 2.0 / 8) << tensor.name;
    EXPECT_TRUE(tensor.Has(program.FindDimension("expert"))) << tensor.name;
  }
  EXPECT_EQ(routed, 5);  // sent, gate, up, their product, down
  const std::map<std::string, double> weights = Weights(program);
  EXPECT_EQ(weights.at("experts.gate"), 8 * 32 * 16);
  EXPECT_EQ(weights.at("shared.up"), 32 * 2 * 16);
  EXPECT_EQ(weights.at("router"), 32 * 8);
  // No layer has a plain MLP, so nothing asks that its width divides.
  EXPECT_FALSE(program.FindDimension("ffn").valid());
}

TEST(Moe, WhatDoesLatentAttentionHold) {
  const Program program = Rows("preset = \"deepseek-v3\"");
  const std::map<std::string, double> weights = Weights(program);
  EXPECT_EQ(weights.at("attention.q_down"), 7168 * 1536);
  EXPECT_EQ(weights.at("attention.q_up"), 1536.0 * 128 * 192);
  EXPECT_EQ(weights.at("attention.kv_down") + weights.at("attention.k_rope"), 7168 * 576);
  EXPECT_EQ(weights.at("attention.k_up") + weights.at("attention.v_up"), 512.0 * 128 * 256);
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::kAttention) continue;
    double flops = op.flops;
    for (const Factor& factor : op.factors) flops *= program.dimension(factor.dim).size;
    // Scores over 192 columns, values over 128, of half the pairs.
    EXPECT_DOUBLE_EQ(flops, kSequence * kSequence * 128 * (192 + 128));
  }
}

// What the checkpoints hold beyond the model: 13,463,426,304 of DeepSeek-V3's, 5,539,962,272 of
// GLM-4.5's, 3,616,573,568 of GLM-4.5-Air's.
TEST(Moe, HowLargeIsALayerThatPredictsAFurtherToken) {
  const auto total = [](const std::string& parameters) {
    const Program program = Rows(parameters);
    double sum = 0;
    for (const Tensor& tensor : program.tensors) {
      if (tensor.role != TensorRole::kParameter) continue;
      sum += Elements(program, tensor) * program.layer_class(tensor.layer_class).repeat;
    }
    EXPECT_EQ(std::llround(sum), std::llround(program.facts.parameters));
    return std::llround(sum);
  };
  const auto more = [&](const std::string& preset) {
    const std::string line = "preset = \"" + preset + "\"\n";
    return total(line + "mtp = true") - total(line);
  };
  EXPECT_EQ(more("deepseek-v3"), 13'463'426'304);
  EXPECT_EQ(more("glm-4.5"), 5'539'962'272);
  EXPECT_EQ(more("glm-4.5-air"), 3'616'573'568);
}

TEST(Moe, DenseLayersComeFirst) {
  const Program program = Rows("preset = \"deepseek-v3\"");
  std::vector<std::pair<std::string, int>> layers;
  for (const LayerClass& row : program.classes) {
    if (row.position == StagePosition::kLayer) layers.emplace_back(row.name, row.repeat);
  }
  const std::vector<std::pair<std::string, int>> expected = {{"dense layer", 3}, {"layer", 58}};
  EXPECT_EQ(layers, expected);
}

}  // namespace
}  // namespace shardlab::moe
