// What does the busiest expert rank cost the classroom? Compute and activations of a layer are two
// parts: what a rank makes of its own tokens, and what its experts make of the tokens that they
// get. Only the second grows with the load; the others wait for it.

#include <array>

#include "formulas/planned.h"

namespace shardlab {
namespace {

// Mixtral 8x7B: layers, hidden, an expert's inner width, experts of a token, active parameters.
constexpr double kLayers = 32, kHidden = 4096, kInner = 14336, kTopK = 2, kActive = 12'879'925'248;
constexpr double kSequence = 4096, kPeak = 989e12, kEfficiency = 0.5, kNvlink = 450e9;

std::string Mixtral(const std::string& expert, const std::string& more = "") {
  return R"(
accounting = "textbook"
[model]
plugin = "moe"
preset = "mixtral-8x7b"

[hardware]
plugin = "h100-dgx"
devices = 8
efficiency = 0.5

[training]
sequence_length = 4096
global_batch_size = 8

[strategy.expert]
)" + expert +
         "\n" + more;
}

double Compute(const Planned& plan) {
  const auto& time = plan.document["time"];
  return time["forward_seconds"].get<double>() + time["backward_seconds"].get<double>() +
         time["recompute_seconds"].get<double>();
}

TEST(ExpertImbalance, ExpertsWorkHoldAndSendAsMuchMoreAsTheBusiestRankHas) {
  const double routed = kLayers * kTopK * 3 * kHidden * kInner;
  const double rate = kPeak * kEfficiency;
  for (const double load : {1.0, 1.25, 2.0, 4.0}) {
    const Planned plan = PlanText(Mixtral("degree = 8\nimbalance = " + std::to_string(load)));
    const double work = 6 * kSequence * (kActive - routed + load * routed);
    EXPECT_NEAR(Compute(plan), work / rate, 1e-12) << load;
    // 10 + 2 (1 + 2 x 8/32) of its own tokens, 2 + 6 x 14336/4096 for each copy at an expert.
    const double held = kLayers * kSequence * kHidden * (13 + load * kTopK * 23);
    EXPECT_EQ(plan.Bytes(0, "activations"), held) << load;
    const double sent = 4 * kLayers * load * (2 * kSequence * kTopK * kHidden) * 7 / 8;
    EXPECT_NEAR(plan.document["time"]["exposed"]["expert_seconds"].get<double>(), sent / kNvlink,
                1e-12)
        << load;
  }
}

// Replayed once more: a third of the compute, and two more all-to-alls of six.
TEST(ExpertImbalance, RecomputationReplaysTheBusiestRanksWork) {
  const double routed = kLayers * kTopK * 3 * kHidden * kInner;
  const Planned plan = PlanText(
      Mixtral("degree = 8\nimbalance = 1.5", "[strategy.checkpointing]\nmode = \"full\"\n"));
  const double work = 8 * kSequence * (kActive - routed + 1.5 * routed);
  EXPECT_NEAR(Compute(plan), work / (kPeak * kEfficiency), 1e-12);
  const double held = kSequence * kHidden * (2 * kLayers + 13 + 1.5 * kTopK * 23);
  EXPECT_EQ(plan.Bytes(0, "activations"), held);
}

// More tokens than all is no load: 8 experts of which a token takes 2 stop at 4 times the mean. One
// rank has all experts and its own tokens, whatever they choose.
TEST(ExpertImbalance, StopsAtAllTokensAndIsNothingOnOneRank) {
  const Planned most = PlanText(Mixtral("degree = 8\nimbalance = 4"));
  const Planned beyond = PlanText(Mixtral("degree = 8\nimbalance = 64"));
  EXPECT_EQ(beyond.document["time"], most.document["time"]);
  for (const char* accounting : {"textbook", "operator"}) {
    const std::string words = std::string("accounting = \"") + accounting + "\"\n";
    const auto with = [&](const std::string& expert) {
      std::string text = Mixtral(expert);
      text.replace(text.find("accounting"), text.find('\n', 1) - text.find("accounting") + 1,
                   words);
      return PlanText(text);
    };
    const Planned even = with("degree = 1"), busy = with("degree = 1\nimbalance = 2");
    EXPECT_EQ(busy.document["time"], even.document["time"]) << accounting;
    EXPECT_EQ(busy.document["memory"], even.document["memory"]) << accounting;
  }
}

}  // namespace
}  // namespace shardlab
