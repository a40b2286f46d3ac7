// Do a layer's rows add up to the paper's formula? Korthikanti et al. 2022, arXiv 2205.05198,
// equations 1 to 4: s b h (34 + 5 a s / h) bytes with 16-bit activations, dropout everywhere and
// scores in memory.

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 512, kHeads = 8, kSequence = 256, kBatch = 2;
constexpr double kSbh = kSequence * kBatch * kHidden;
constexpr double kScores = kHeads * kSequence / kHidden;  // a s / h

std::string Gpt(int layers, const std::string& training, const std::string& rest) {
  return R"(
[model]
plugin = "gpt"
layers = )" +
         std::to_string(layers) + R"(
hidden = 512
heads = 8
ffn = 2048
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[precision]
recipe = "megatron-bf16"

[training]
sequence_length = 256
micro_batch_size = 2
global_batch_size = 16
)" + training +
         rest;
}

// What one more layer keeps.
double Layer(const std::string& training, const std::string& rest = "") {
  return (PlanText(Gpt(8, training, rest)).Bytes(0, "activations") -
          PlanText(Gpt(4, training, rest)).Bytes(0, "activations")) /
         4;
}

const std::string kEager = "attention = \"eager\"\ndropout = 0.1\n";
const std::string kTensor4 = "[strategy.tensor]\ndegree = 4\n";

TEST(Activations, OneDevice) { EXPECT_EQ(Layer(kEager), kSbh * (34 + 5 * kScores)); }

TEST(Activations, TensorParallelismLeavesTenWhole) {
  EXPECT_EQ(Layer(kEager, kTensor4), kSbh * (10 + 24.0 / 4 + 5 * kScores / 4));
}

TEST(Activations, SequenceParallelismCutsAll) {
  EXPECT_EQ(Layer(kEager, kTensor4 + "sequence_parallel = true\n"), kSbh * (34 + 5 * kScores) / 4);
}

// Section 5 leaves 34: here the output of attention, 2 s b h, is replayed too.
TEST(Activations, SelectiveRecomputationDropsTheScores) {
  const std::string selective =
      "[strategy.checkpointing]\nmode = \"selective\"\nmodules = [\"attention\"]\n";
  const double kept = Layer(kEager, selective);
  EXPECT_EQ(kept, kSbh * 32);
}

// Without dropout: no masks of one byte, and no copy of the probabilities.
TEST(Activations, WithoutDropout) {
  EXPECT_EQ(Layer("attention = \"eager\"\n"), kSbh * (32 + 2 * kScores));
}

// A fused kernel keeps one fp32 number a query and head, and of dropout nothing.
TEST(Activations, FusedAttentionKeepsNoScores) {
  const double statistics = 4 * kSequence * kBatch * kHeads;
  EXPECT_EQ(Layer("dropout = 0.1\n"), kSbh * 34 + statistics);
  EXPECT_EQ(Layer(""), kSbh * 32 + statistics);
}

TEST(Activations, TheEmbeddingHasAMaskToo) {
  const double with = PlanText(Gpt(4, "dropout = 0.1\n", "")).Bytes(0, "activations"),
               without = PlanText(Gpt(4, "", "")).Bytes(0, "activations");
  EXPECT_EQ(with - without, (4 * 2 + 1) * kSbh);
}

TEST(Activations, ContextRanksKeepTheirQueriesScores) {
  EXPECT_EQ(Layer("attention = \"eager\"\n", "[strategy.context]\ndegree = 4\n"),
            kSbh * (32 + 2 * kScores) / 4);
}

// Scores that go through memory, and both halves of the square, take longer than a fused kernel.
TEST(Activations, EagerTakesLonger) {
  const auto seconds = [](const std::string& training) {
    // A framework whose layers never wait for their host.
    return PlanText(Gpt(4, training, "[software]\npreset = \"maxtext\"\n"))
        .document["time"]["step_seconds"]
        .get<double>();
  };
  EXPECT_GT(seconds(kEager), 1.05 * seconds(""));
  EXPECT_THAT(PlanText("accounting = \"textbook\"\n" + Gpt(4, kEager, ""), true).Said(),
              testing::HasSubstr("leaves out the scores"));
}

}  // namespace
}  // namespace shardlab
