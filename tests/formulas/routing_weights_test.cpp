// What do the routing weights keep and send? Multiplied with what experts return, each output is
// kept, as long as a token; sent along and multiplied inside the expert, only the weights are.

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kLayers = 4, kHidden = 256, kTopK = 2, kTokens = 512, kRanks = 4;
constexpr double kMicroBatches = 4;

std::string Experts(const std::string& rest) {
  return SmallExperts(1, 32, "[strategy.expert]\ndegree = 4\n" + rest);
}

// Of the rows of tensors with this name: bytes that a rank sends.
double Sent(const Planned& plan, const std::string& tensor, const std::string& phase) {
  double bytes = 0;
  for (const auto& row : plan.document["communication"]) {
    if (row["tensor"] == tensor && row["phase"] == phase && row["axis"] == "expert")
      bytes += row["bytes"].get<double>();
  }
  return bytes;
}

const std::string kInside = "[software]\npreset = \"megatron-bridge\"\n";

TEST(RoutingWeights, InsideTheExpertNoOutputIsKept) {
  const double kept = PlanText(Experts("")).Bytes(0, "activations");
  const double sent = PlanText(Experts(kInside)).Bytes(0, "activations");
  // One weight of two bytes for each copy of a token, instead of h elements.
  EXPECT_EQ(kept - sent, kLayers * kTokens * kTopK * 2 * (kHidden - 1));
}

TEST(RoutingWeights, TravelWithTheTokens) {
  const Planned plan = PlanText(Experts(kInside));
  const double copies = kLayers * kMicroBatches * kTokens * kTopK * 2 * (kRanks - 1) / kRanks;
  EXPECT_EQ(Sent(plan, "dispatch weights", "forward"), copies);
  EXPECT_EQ(Sent(plan, "dispatch weights gradient", "backward"), copies);
  EXPECT_EQ(Sent(plan, "dispatch", "forward"), copies * kHidden);
  const Planned kept = PlanText(Experts(""));
  EXPECT_EQ(Sent(kept, "dispatch weights", "forward"), 0);
  EXPECT_EQ(Sent(kept, "dispatch", "forward"), copies * kHidden);
}

// DeepSeek-V3 report, arXiv 2412.19437, section 3.3.3: what is dispatched travels in fp8, tokens
// forward and gradients of outputs backward; what is combined in bf16.
TEST(RoutingWeights, ARecipeMayDispatchInFp8) {
  const std::string recipe = "[precision]\nrecipe = \"";
  const Planned wide = PlanText(Experts(recipe + "megatron-fp8\"\n"));
  const Planned narrow = PlanText(Experts(recipe + "deepseek-fp8\"\n"));
  for (const auto& [tensor, phase, ratio] :
       std::vector<std::tuple<std::string, std::string, double>>{
           {"dispatch", "forward", 0.5},
           {"dispatch gradient", "backward", 1},
           {"expert down", "forward", 1},
           {"expert down gradient", "backward", 0.5}}) {
    EXPECT_GT(Sent(wide, tensor, phase), 0) << tensor << " " << phase;
    EXPECT_EQ(Sent(narrow, tensor, phase), ratio * Sent(wide, tensor, phase))
        << tensor << " " << phase;
  }
}

}  // namespace
}  // namespace shardlab
