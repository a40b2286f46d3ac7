// Recipes that keep inputs of products and of SwiGLU in fp8 (DeepSeek-V3 report, arXiv 2412.19437,
// section 3.3.3): which tensors of a layer lose how many bytes?

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 512, kFfn = 1536, kSequence = 256, kBatch = 2, kHeads = 8;
constexpr double kTokens = kSequence * kBatch;

std::string Llama(int layers, const std::string& rest) {
  return "[model]\nplugin = \"llama\"\nlayers = " + std::to_string(layers) + R"(
hidden = 512
heads = 8
kv_heads = 8
ffn = 1536
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 256
micro_batch_size = 2
global_batch_size = 16
)" + rest;
}

// What one more layer keeps.
double Layer(const std::string& rest) {
  return (PlanText(Llama(8, rest)).Bytes(0, "activations") -
          PlanText(Llama(4, rest)).Bytes(0, "activations")) /
         4;
}

const std::string kBf16 = "[precision]\nrecipe = \"megatron-fp8\"\n";
const std::string kFp8 = "[precision]\nrecipe = \"deepseek-fp8\"\n";
const std::string kReplayed =
    "[strategy.checkpointing]\nmode = \"selective\"\nmodules = [\"norm\", \"gated-silu\"]\n";

// Of a layer are kept, in elements a token: two inputs of norms, h each; two outputs of norms, h
// each, inputs of products; queries, keys, values, 3h; attention's output, h, input of a product;
// gate and up, 2f, inputs of SwiGLU; its output, f, input of a product; and 4 B a head.
TEST(KeptInputs, OfProductsAndSwiGluTakeOneByte) {
  const double statistics = 4 * kTokens * kHeads;
  EXPECT_EQ(Layer(kBf16), kTokens * 2 * (8 * kHidden + 3 * kFfn) + statistics);
  const double wide = 2 * kHidden + 3 * kHidden, narrow = 3 * kHidden + 3 * kFfn;
  EXPECT_EQ(Layer(kFp8), kTokens * (2 * wide + narrow) + statistics);
}

// The report's: norms and SwiGLU are computed again, so their outputs are not kept.
TEST(KeptInputs, WithNormsAndSwiGluReplayed) {
  const double statistics = 4 * kTokens * kHeads;
  const double wide = 2 * kHidden + 3 * kHidden, narrow = kHidden + 2 * kFfn;
  EXPECT_EQ(Layer(kFp8 + kReplayed), kTokens * (2 * wide + narrow) + statistics);
}

TEST(KeptInputs, ExplainSaysTheWidthAndItsSource) {
  const Planned plan = PlanText(Llama(4, kFp8));
  int narrow = 0;
  for (const auto& rank : plan.planned.explanation.ranks) {
    double sum = 0;
    for (const MemoryEntry& entry : rank.entries) {
      if (entry.account != Account::kActivations) continue;
      sum += entry.bytes;
      if (entry.source.find("2412.19437") == std::string::npos) continue;
      ++narrow;
      EXPECT_NE(entry.formula.find(" x 1 B"), std::string::npos) << entry.formula;
    }
    EXPECT_DOUBLE_EQ(sum, rank.memory.bytes[static_cast<std::size_t>(Account::kActivations)]);
  }
  EXPECT_GT(narrow, 4);
  bool told = false;
  for (const auto& constant : plan.document["provenance"])
    told |= constant["name"] == "precision.saved.linear.bytes" && constant["value"] == 1;
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace shardlab
