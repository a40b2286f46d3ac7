// Which stages have the layers with experts, where they and dense layers take turns?

#include "formulas/planned.h"

namespace shardlab {
namespace {

std::string Model(const std::string& more, const std::string& rest) {
  return R"(
[model]
plugin = "moe"
layers = 12
hidden = 256
heads = 8
ffn = 1024
vocabulary = 512
experts = 8
top_k = 2
expert_ffn = 512
)" + more +
         R"(
[hardware]
plugin = "h100-dgx"
nodes = 2

[training]
sequence_length = 512
micro_batch_size = 1
global_batch_size = 64

)" + rest;
}

constexpr double kAttention = 4 * 256 * 256 + 2 * 256;
constexpr double kDense = kAttention + 3 * 256 * 1024;
constexpr double kRouted = kAttention + 256 * 8 + 8 * 3 * 256 * 512;

// Of every two layers the second has experts, so that stages of two or four have half of each.
TEST(Turns, EveryStageHasItsShare) {
  const Planned plan =
      PlanText(Model("moe_every = 2\n", "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 2\n"));
  const double ends = 512 * 256;
  EXPECT_EQ(plan.Bytes(0, "parameters"), 2 * (3 * kDense + 3 * kRouted + ends));
  EXPECT_EQ(plan.Bytes(1, "parameters"), 2 * (3 * kDense + 3 * kRouted + ends + 256));
}

// Four stages of three layers: D D E | D D E | ... behind no dense layers.
TEST(Turns, OneInThree) {
  const Planned plan =
      PlanText(Model("moe_every = 3\n", "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\n"));
  for (std::size_t r = 1; r < 3; ++r)
    EXPECT_EQ(plan.Bytes(r, "parameters"), 2 * (2 * kDense + kRouted)) << r;
}

// Two dense layers first; the stages' first layers are then D D E D E D.
TEST(Turns, BehindDenseLayers) {
  const Planned plan = PlanText(Model("dense_layers = 2\nmoe_every = 2\n",
                                      "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\n"));
  // 12 layers: D D | D E D E D E D E D E, in threes: DDD EDE DED EDE.
  EXPECT_EQ(plan.Bytes(1, "parameters"), 2 * (kDense + 2 * kRouted));
  EXPECT_EQ(plan.Bytes(2, "parameters"), 2 * (2 * kDense + kRouted));
}

TEST(Turns, OnePipelineRankHasThemAll) {
  const Planned plan = PlanText(Model("moe_every = 2\n", ""));
  EXPECT_EQ(plan.document["model"]["parameters"].get<double>() * 2, plan.Bytes(0, "parameters"));
}

TEST(Turns, SegmentsWouldMixKinds) {
  EXPECT_THAT(
      PlanText(Model("moe_every = 2\n", "[strategy.checkpointing]\nmode = \"full\"\nsegment = 2\n"),
               true)
          .Said(),
      testing::HasSubstr("take turns"));
}

}  // namespace
}  // namespace shardlab
