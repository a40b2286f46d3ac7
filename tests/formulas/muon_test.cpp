// What does an optimizer cost that works on whole matrices?

#include <algorithm>

#include "formulas/planned.h"

namespace shardlab {
namespace {

std::string Model(const std::string& rest) {
  return R"(
[model]
plugin = "llama"
layers = 8
hidden = 2048
heads = 16
ffn = 8192
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 512
global_batch_size = 64

)" + rest;
}

double Optimizer(const std::string& rest) {
  return PlanText(Model(rest)).document["time"]["optimizer_seconds"].get<double>();
}

// Five times (4 r^2 c + 2 r^3) for r rows and c columns, r <= c (Jordan et al. 2024).
double NewtonSchulz(double r, double c) { return 5 * (4 * r * r * c + 2 * r * r * r); }

TEST(Muon, TheProductsOfEveryLayerAreTimed) {
  const double flops = 8 * (4 * NewtonSchulz(2048, 2048) + 3 * NewtonSchulz(2048, 8192));
  const double at_peak = flops / 989e12;
  const double more =
      Optimizer("[optimizer]\nplugin = \"muon\"\n") - Optimizer("[optimizer]\nplugin = \"adam\"\n");
  // Slower than the peak, and Adam's second moment is not read and written.
  EXPECT_GT(more, at_peak - 8 * 8 * (4 * 2048.0 * 2048 + 3 * 2048.0 * 8192) / 2.7e12);
  EXPECT_LT(more, at_peak / 0.4);
}

TEST(Muon, RanksThatShareTheStateShareTheMatrices) {
  const Planned whole = PlanText(Model("[optimizer]\nplugin = \"muon\"\n")),
                shared = PlanText(Model("[optimizer]\nplugin = \"muon\"\n[strategy.zero]\n"));
  const auto products = [](const Planned& plan) {
    double seconds = 0;
    for (const TimeEntry& entry : plan.planned.explanation.times) {
      if (entry.row.find("as matrices") != std::string::npos) seconds += entry.seconds;
    }
    return seconds;
  };
  EXPECT_GT(products(whole), 0);
  EXPECT_NEAR(products(shared), products(whole) / 8, 1e-9 * products(whole));
}

// A rank's eighth of all matrices of the layers in bf16, of which an eighth is for itself: there
// and back.
TEST(Muon, PiecesOfMatricesGoToTheRanksThatWorkOnThem) {
  const double matrices = 8 * (4 * 2048.0 * 2048 + 3 * 2048.0 * 8192);
  for (const char* state : {"[strategy.zero]\n", "[strategy.fsdp]\n"}) {
    const Planned plan = PlanText(Model(std::string("[optimizer]\nplugin = \"muon\"\n") + state));
    int found = 0;
    for (const auto& row : plan.document["communication"]) {
      if (row["collective"] != "all-to-all") continue;
      ++found;
      EXPECT_EQ(row["bytes"], 2 * matrices / 8 * 7 / 8) << state;
      EXPECT_EQ(row["author"], "muon");
      EXPECT_EQ(row["count"], 8) << "layers";
      EXPECT_GT(row["seconds"], 0);
      EXPECT_EQ(row["exposed_seconds"], row["seconds"]);
    }
    EXPECT_EQ(found, 2) << state;
  }
  const Planned alone = PlanText(Model("[optimizer]\nplugin = \"muon\"\n"));
  for (const auto& row : alone.document["communication"])
    EXPECT_NE(row["collective"], "all-to-all") << "whole matrices are everywhere";
}

TEST(Muon, TheClassroomTimesNoOptimizer) {
  const Planned plan =
      PlanText("accounting = \"textbook\"\n" + Model("[optimizer]\nplugin = \"muon\"\n"));
  EXPECT_EQ(plan.document["time"]["optimizer_seconds"], 0);
}

}  // namespace
}  // namespace shardlab
