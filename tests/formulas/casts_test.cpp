// What do the casts of products in fp8 cost?

#include <map>

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kTokens = 4096, kHidden = 4096, kFfn = 8192, kLayers = 4;

std::string Model(const std::string& recipe, const std::string& rest = "") {
  return R"(
[model]
plugin = "llama"
layers = 4
hidden = 4096
heads = 32
kv_heads = 32
ffn = 8192
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 4096
global_batch_size = 16

[precision]
recipe = ")" +
         recipe + "\"\n" + rest;
}

// Seconds of the casts by part.
std::map<std::string, double> Casts(const Planned& plan) {
  std::map<std::string, double> seconds;
  for (const TimeEntry& entry : plan.planned.explanation.times) {
    if (entry.row.find(" to fp8") != std::string::npos) seconds[entry.part] += entry.seconds;
  }
  return seconds;
}

// Each element is read in two bytes and written in one, twice: itself and transposed. Inputs of
// q, k, v and of gate and up come from norms, which leave them cast; o's and down's are cast.
// Gradients are cast of all seven outputs. Weights once a step.
TEST(Casts, EveryOperandIsReadOnceAndWrittenTwice) {
  const Planned plan = PlanText(Model("megatron-fp8"));
  const auto casts = Casts(plan);
  const double micro_batches = 2;
  const double bandwidth = 3.35e12;
  const double forward = 4 * kTokens * (kHidden + kFfn) * kLayers * micro_batches / bandwidth;
  const double backward =
      4 * kTokens * (5 * kHidden + 2 * kFfn) * kLayers * micro_batches / bandwidth;
  const double weights = 4 * (4 * kHidden * kHidden + 3 * kHidden * kFfn) * kLayers / bandwidth;
  // No stream reaches all of the data sheet's bandwidth, and each kernel has a launch.
  const auto about = [](double seconds, double at_best) {
    EXPECT_GT(seconds, at_best);
    EXPECT_LT(seconds, 1.4 * at_best);
  };
  about(casts.at("forward"), forward);
  about(casts.at("backward"), backward);
  about(casts.at("optimizer"), weights);
  // Of one kind, they cost as their bytes do.
  EXPECT_NEAR(casts.at("backward") / casts.at("forward"), backward / forward,
              0.05 * backward / forward);
}

TEST(Casts, NothingIsCastWhereProductsHaveTheDtypeOfTensors) {
  EXPECT_TRUE(Casts(PlanText(Model("megatron-bf16"))).empty());
  EXPECT_TRUE(Casts(PlanText("accounting = \"textbook\"\n" + Model("megatron-fp8"))).empty());
}

// Shards are gathered in bf16 and cast for each pass: no copies are kept.
TEST(Casts, WeightsWithoutCopiesAreCastForEachPass) {
  const std::string fsdp = "compute = \"fp8\"\n[strategy.fsdp]\n";
  const auto casts = Casts(PlanText(Model("fsdp-mixed", fsdp)));
  EXPECT_EQ(casts.count("optimizer"), 0u);
  const auto kept = Casts(PlanText(Model("megatron-fp8")));
  const double weights = 4 * (4 * kHidden * kHidden + 3 * kHidden * kFfn) * kLayers * 2 / 3.35e12;
  EXPECT_GT(casts.at("forward") - kept.at("forward"), weights);
  EXPECT_LT(casts.at("forward") - kept.at("forward"), 1.4 * weights);
}

// Recomputed layers cast their inputs again.
TEST(Casts, ReplayedProductsCastAgain) {
  const auto casts =
      Casts(PlanText(Model("megatron-fp8", "[strategy.checkpointing]\nmode = \"full\"\n")));
  EXPECT_NEAR(casts.at("recompute"), casts.at("forward"), 1e-9);
}

// Casts are no arithmetic.
TEST(Casts, ModelAndHardwareFlopsAreWhatTheyWere) {
  const auto narrow = PlanText(Model("megatron-fp8")).document["throughput"],
             wide = PlanText(Model("megatron-bf16")).document["throughput"];
  EXPECT_EQ(narrow["model_flops_per_token"], wide["model_flops_per_token"]);
  EXPECT_EQ(narrow["hfu"], narrow["mfu"]);
}

}  // namespace
}  // namespace shardlab
