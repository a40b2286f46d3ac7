#include "gpt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "api/model.h"
#include "laws/made.h"

namespace shardlab::gpt {
namespace {

constexpr double kSequence = 128;

Program Rows(const std::string& parameters, bool coarse = false) {
  const auto model = Made<Model>("gpt", {parameters});
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

TEST(Gpt, WhichWeightsHasABlock) {
  const std::map<std::string, double> weights =
      Weights(Rows("layers = 2\nhidden = 32\nheads = 4\nkv_heads = 1\nffn = 128\nvocabulary = 50\n"
                   "positions = 64\nhead_bias = true\nembedding_norm = true"));
  EXPECT_EQ(weights.at("attention.q"), 32 * 32);
  EXPECT_EQ(weights.at("attention.q.bias"), 32);
  EXPECT_EQ(weights.at("attention.k"), 32 * 8);
  EXPECT_EQ(weights.at("attention.v.bias"), 8);
  EXPECT_EQ(weights.at("attention.o.bias"), 32);
  EXPECT_EQ(weights.at("attention.norm") + weights.at("attention.norm.bias"), 64);
  EXPECT_EQ(weights.at("mlp.up") + weights.at("mlp.down"), 2 * 32 * 128);
  EXPECT_EQ(weights.at("mlp.up.bias") + weights.at("mlp.down.bias"), 128 + 32);
  EXPECT_EQ(weights.at("positions"), 64 * 32);
  EXPECT_EQ(weights.at("embedding.norm.bias"), 32);
  EXPECT_EQ(weights.at("head.bias"), 50);
  EXPECT_EQ(weights.count("mlp.gate"), 0u);
}

// A tied head reads the embedding's table and has none of its own.
TEST(Gpt, WhatIsATiedHead) {
  const Program program =
      Rows("layers = 1\nhidden = 32\nheads = 4\nffn = 128\nvocabulary = 50\ntied = true");
  EXPECT_EQ(Weights(program).count("head"), 0u);
  EXPECT_TRUE(program.limits.empty());
  int readers = 0;
  for (const Op& op : program.ops) {
    for (const Operand& operand : op.inputs)
      readers += program.tensor(operand.tensor).name == "embedding" ? 1 : 0;
  }
  EXPECT_EQ(readers, 2);
}

// One norm of a parallel block feeds both.
TEST(Gpt, WhatIsAParallelBlock) {
  const std::string dims = "layers = 1\nhidden = 32\nheads = 4\nffn = 128\nvocabulary = 50\n";
  const std::map<std::string, double> one = Weights(Rows(dims + "parallel = true\nnorms = 1"));
  EXPECT_EQ(one.count("attention.norm"), 1u);
  EXPECT_EQ(one.count("mlp.norm"), 0u);
  EXPECT_EQ(Weights(Rows(dims + "parallel = true")).count("mlp.norm"), 1u);
}

}  // namespace
}  // namespace shardlab::gpt
