// What does a rank hold and send when some of the tensor ranks share each expert?

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kLayers = 4, kHidden = 256, kExperts = 8, kTopK = 2, kInner = 512, kSequence = 512;
constexpr double kTensor = 4, kContext = 2, kDevices = 16, kMicroBatches = 4;

// 4 tensor x 2 context x 2 data ranks.
std::string Model(const std::string& expert, const std::string& method = "gather") {
  return SmallExperts(2, 8,
                      R"([strategy.tensor]
degree = 4
sequence_parallel = true

[strategy.context]
degree = 2
method = ")" + method + "\"\n\n[strategy.expert]\n" +
                          expert);
}

std::string Degrees(int expert, int slices) {
  return "degree = " + std::to_string(expert) + "\ntensor_degree = " + std::to_string(slices) +
         "\n";
}

double ExpertWeights(const Planned& plan) {
  double bytes = 0;
  for (const MemoryEntry& entry : plan.planned.explanation.ranks[0].entries) {
    if (entry.row.rfind("experts.", 0) == 0 && entry.account == Account::kParameters)
      bytes += entry.bytes;
  }
  return bytes;
}

double Sent(const Planned& plan, const std::string& axis, const std::string& collective,
            const std::string& tensor) {
  double bytes = 0;
  for (const auto& row : plan.document["communication"]) {
    const bool of = row["tensor"].get<std::string>().find(tensor) != std::string::npos;
    if (row["axis"] == axis && row["collective"] == collective && of)
      bytes += row["bytes"].get<double>();
  }
  return bytes;
}

// Whatever ranks they are: an expert's weights lie on e x f of them, and are repeated on the
// others.
TEST(ExpertTensor, WeightsLieOnAllRanksOfBothDegrees) {
  for (const int slices : {1, 2, 4}) {
    for (const int expert : {1, 2, 4, 8}) {
      const double together = expert * slices;
      const bool holds = expert % (static_cast<int>(kTensor) / slices) == 0;
      // One whole expert on each rank: of no degree, the tensor ranks share it.
      if (expert == 1 && slices == 1) continue;
      if (together > kDevices) continue;
      const Planned plan = PlanText(Model(Degrees(expert, slices)), !holds);
      if (!holds) {
        EXPECT_NE(plan.Said().find("write a multiple of"), std::string::npos) << plan.Said();
        continue;
      }
      const double weights = kLayers * kExperts * 3 * kHidden * kInner;
      EXPECT_EQ(ExpertWeights(plan), 2 * weights / together) << expert << " x " << slices;
      EXPECT_EQ(plan.document["plan"]["expert_data"], kDevices / together);
      EXPECT_EQ(plan.document["plan"]["expert"], expert);
      EXPECT_EQ(plan.document["plan"]["expert_tensor"], slices);
    }
  }
}

// Each rank sends its own tokens, s / (t c), once for each of their experts, there and back,
// forward and backward; what is gathered behind that are the tokens of the ranks that share its
// experts.
TEST(ExpertTensor, TokensAreExchangedAsTheyAreCut) {
  const double tokens = kSequence / (kTensor * kContext);
  const double payload = 2 * tokens * kTopK * kHidden;
  for (const int slices : {1, 2, 4}) {
    for (const int expert : {4, 8}) {
      if (expert * slices > kDevices) continue;
      const Planned plan = PlanText(Model(Degrees(expert, slices)));
      const double exchanged = kLayers * kMicroBatches * 4 * payload * (expert - 1) / expert;
      EXPECT_EQ(Sent(plan, "expert", "all-to-all", ""), exchanged) << expert << " x " << slices;
      // Gathered forward and again for the weight gradients; the backward pass of the scatter
      // gathers too. Of f pieces f - 1 come from others.
      const double gathered = Sent(plan, "expert_tensor", "all-gather", "dispatch");
      EXPECT_EQ(gathered, kLayers * kMicroBatches * 2 * payload * (slices - 1))
          << expert << " x " << slices;
    }
  }
}

// Beside every way to cut attention's sequence.
TEST(ExpertTensor, AnyContextMethodLendsItsRanks) {
  for (const char* method : {"gather", "ring", "all-to-all"}) {
    const Planned plan = PlanText(Model(Degrees(4, 2), method));
    EXPECT_EQ(plan.document["plan"]["expert_data"], 2) << method;
    EXPECT_EQ(ExpertWeights(plan), 2 * kLayers * kExperts * 3 * kHidden * kInner / 8) << method;
  }
}

TEST(ExpertTensor, ADegreeThatDoesNotDivideIsToldWhatIsLegal) {
  const Planned plan = PlanText(Model(Degrees(4, 3)), /*refused=*/true);
  EXPECT_NE(plan.Said().find("expert_tensor 3 does not divide the 4 ranks of tensor"),
            std::string::npos)
      << plan.Said();
  EXPECT_NE(plan.Said().find("legal: 1, 2 or 4"), std::string::npos) << plan.Said();
}

}  // namespace
}  // namespace shardlab
