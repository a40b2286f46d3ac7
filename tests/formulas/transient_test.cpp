// How much memory do gradients and gathered copies take that nobody keeps?

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 256, kHeads = 8, kHeadDim = 32, kFfn = 1024;
constexpr double kLayer = 4 * kHidden * kHeads * kHeadDim + 3 * kHidden * kFfn + 2 * kHidden;
constexpr double kTokens = 2 * 512;  // of a micro-batch

std::string Small(const std::string& rest) { return SmallLlama(rest); }

TEST(Transient, FsdpHasAUnitOfWholeGradientsInBf16AndTheirBucketInFp32) {
  const Planned plan = PlanText(Small("[strategy.fsdp]\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), (2 + 4) * kLayer);
}

TEST(Transient, AUnitOfTwoBlocksHasTwiceAsMuch) {
  const Planned plan = PlanText(Small("[strategy.fsdp]\nblocks_per_unit = 2\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), 2 * (2 + 4) * kLayer);
}

TEST(Transient, TheBucketIsInTheDtypeOfTheReduction) {
  const Planned plan =
      PlanText(Small("[strategy.fsdp]\n[precision]\nrecipe = \"fsdp-mixed\"\n"
                     "gradient_reduce = \"bf16\"\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), (2 + 2) * kLayer);
}

TEST(Transient, GradientsThatStayWholeAreAnAccountOfTheirOwn) {
  for (const char* stage : {"1", "2\nreduce = \"step\""}) {
    const Planned plan = PlanText(Small(std::string("[strategy.zero]\nstage = ") + stage + "\n"));
    EXPECT_EQ(plan.Bytes(0, "transient"), 0) << stage;
  }
}

// Megatron keeps one buffer for what sequence parallelism gathers: s b h in two bytes.
TEST(Transient, SequenceParallelismGathersOneStreamAtATime) {
  const Planned plan = PlanText(Small("[strategy.tensor]\ndegree = 4\nsequence_parallel = true\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), 2 * kTokens * kHidden);
}

TEST(Transient, TensorParallelismAloneGathersNothing) {
  const Planned plan = PlanText(Small("[strategy.tensor]\ndegree = 4\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), 0);
}

// Keys and values of all tokens at once, or two of the ring's pieces of each.
TEST(Transient, ContextParallelismGathersKeysAndValues) {
  const double keys_and_values = 2 * 2 * kTokens * kHeads * kHeadDim;
  EXPECT_EQ(PlanText(Small("[strategy.context]\ndegree = 4\nmethod = \"gather\"\n"))
                .Bytes(0, "transient"),
            keys_and_values);
  EXPECT_EQ(
      PlanText(Small("[strategy.context]\ndegree = 4\nmethod = \"ring\"\n")).Bytes(0, "transient"),
      2 * keys_and_values / 4);
}

TEST(Transient, TheClassroomCountsNone) {
  const Planned plan = PlanText("accounting = \"textbook\"\n" + Small("[strategy.fsdp]\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), 0);
}

}  // namespace
}  // namespace shardlab
