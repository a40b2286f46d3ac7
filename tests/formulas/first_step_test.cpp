// What does a device hold before its optimizer has all of its state?

#include <algorithm>

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 256, kVocabulary = 512;
constexpr double kLayer = 4 * kHidden * kHidden + 3 * kHidden * 1024 + 2 * kHidden;
constexpr double kAll = 4 * kLayer + 2 * kVocabulary * kHidden + kHidden;

std::string Model(const std::string& rest) { return SmallLlama(rest); }

double Peak(const Planned& plan, const char* which) {
  return plan.rank(0)[std::string(which) + "_peak_bytes"].get<double>();
}

// What the allocator reserves and what lies outside of it are the machine's, as in every step.
double Allocated(const Planned& plan, double peak) {
  const Machine& machine = plan.planned.composed.composition->hardware->machine();
  return (peak - machine.outside_allocator.value()) / (1 + machine.fragmentation);
}

// 2 bytes of weights, 4 of gradient buffers and 4 of master weights over 8 ranks; the moments'
// 8 come with the first update.
TEST(FirstStep, TheModelIsMadeWithoutMoments) {
  const Planned plan = PlanText(Model("[strategy.zero]\n"));
  EXPECT_NEAR(Allocated(plan, Peak(plan, "initialisation")), (2 + 4 + 4.0 / 8) * kAll, 2);
  const Planned plain = PlanText(Model(""));
  EXPECT_NEAR(Allocated(plain, Peak(plain, "initialisation")), (2 + 4 + 4) * kAll, 2);
}

// The first passes hold all but moments; the first update all state, but no activations. The
// steady step holds both.
TEST(FirstStep, MomentsAndActivationsDoNotMeet) {
  for (const char* state : {"", "[strategy.zero]\n", "[strategy.fsdp]\n"}) {
    const Planned plan = PlanText(Model(state));
    const bool fsdp = std::string(state) == "[strategy.fsdp]\n";
    const double moments = 8 * kAll / (*state == 0 ? 1 : 8);
    double work = 0;
    for (const char* account : {"activations", "gathered", "transient"})
      work += plan.Bytes(0, account);
    const double steady = plan.rank(0)["allocated_bytes"].get<double>();
    EXPECT_NEAR(Allocated(plan, Peak(plan, "first_step")), steady - std::min(work, moments), 2)
        << state << (fsdp ? "of fp32 shards" : "");
    EXPECT_LE(Peak(plan, "first_step"), plan.rank(0)["total_bytes"].get<double>());
  }
}

// FSDP's weights are kept in fp32. On the meta device only the shards are ever made.
TEST(FirstStep, AModelThatIsMadeWholeNeedsAllOfItsWeights) {
  const Planned meta = PlanText(Model("[strategy.fsdp]\n")),
                whole = PlanText(Model("[strategy.fsdp]\ninit_device = \"device\"\n"));
  EXPECT_NEAR(Allocated(meta, Peak(meta, "initialisation")), 4 * kAll / 8, 2);
  EXPECT_NEAR(Allocated(whole, Peak(whole, "initialisation")), 4 * kAll, 2);
  EXPECT_EQ(meta.rank(0)["total_bytes"], whole.rank(0)["total_bytes"]);
  EXPECT_EQ(meta.document["time"], whole.document["time"]);
}

TEST(FirstStep, EntriesAddUp) {
  const Planned plan = PlanText(Model("[strategy.zero]\n"));
  double initialisation = 0, first_step = 0;
  const FirstPeaks& first = plan.planned.explanation.ranks[0].first;
  for (const FirstEntry& entry : first.entries) {
    (entry.initialisation ? initialisation : first_step) += entry.bytes;
    EXPECT_FALSE(entry.source.empty());
  }
  EXPECT_DOUBLE_EQ(initialisation, first.initialisation);
  EXPECT_DOUBLE_EQ(first_step, first.first_step);
}

}  // namespace
}  // namespace shardlab
