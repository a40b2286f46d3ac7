// Chunks of a rank that hold different amounts: is the most memory found at the instant when it is
// held, and are reductions of chunks that end early played where they go?

#include <random>

#include "core/simulate.h"
#include "formulas/planned.h"

namespace shardlab {
namespace {

std::string Scenario(const std::string& schedule, int ranks, const std::vector<int>& layers,
                     const std::string& rest = "") {
  std::string list;
  int sum = 0;
  for (const int n : layers) {
    list += (list.empty() ? "" : ", ") + std::to_string(n);
    sum += n;
  }
  return "[model]\nplugin = \"llama\"\nlayers = " + std::to_string(sum) + R"(
hidden = 1024
heads = 8
ffn = 4096
vocabulary = 1024

[hardware]
plugin = "h100-dgx"
nodes = 2

[training]
sequence_length = 2048
micro_batch_size = 1
global_batch_size = 96

[schedule]
plugin = ")" +
         schedule + "\"\ndegree = " + std::to_string(ranks) +
         "\nchunks = " + std::to_string(static_cast<int>(layers.size()) / ranks) + "\nlayers = [" +
         list + "]\n" + rest;
}

Simulation Played(const Planned& plan) {
  const Composition& c = *plan.planned.composed.composition;
  return Simulate(c, c.plan, plan.planned.order ? &*plan.planned.order : nullptr, {});
}

// Of interleaved 1F1B on two ranks with two chunks of 2 and 1 layers rank 0 holds 4 and 1 of them
// when it holds most, 9 layers, and never 3 and 2 at a cost of more: what counts are bytes.
TEST(UnevenChunks, MostIsHeldWhenBytesAre) {
  const Planned plan = PlanText(Scenario("pipeline-interleaved", 2, {2, 1, 1, 1}));
  ASSERT_TRUE(plan.ok());
  const ScheduleOrder order = plan.planned.composed.composition->schedule->Order(
      {2, 2, plan.document["plan"]["micro_batches"].get<int>()});
  int layers = 0, most = 0;
  for (const Work& work : order[0]) {
    layers += (work.kind == WorkKind::kF ? 1 : -1) * (work.chunk == 0 ? 2 : 1);
    most = std::max(most, layers);
  }
  EXPECT_EQ(most, 9);
  double of_one = 0;
  for (const MemoryEntry& entry : plan.planned.explanation.ranks[0].entries) {
    if (entry.row != "attention norm" || entry.account != Account::kActivations) continue;
    of_one = entry.bytes;
  }
  EXPECT_EQ(of_one, most * 2.0 * 2048 * 1024);
}

TEST(UnevenChunks, ThePeakIsTheSimulations) {
  std::mt19937 random(7);
  const auto between = [&random](int a, int b) {
    return std::uniform_int_distribution<int>(a, b)(random);
  };
  int uneven = 0;
  for (const char* schedule : {"pipeline-interleaved", "pipeline-breadth-first",
                               "pipeline-interleaved-zb", "pipeline-zb-v", "pipeline-v-half"}) {
    for (int draw = 0; draw < 12; ++draw) {
      const int ranks = between(1, 2) * 2;
      const bool two = std::string(schedule).find("-v") != std::string::npos;
      std::vector<int> layers(static_cast<std::size_t>(ranks * (two ? 2 : between(2, 4))));
      for (int& n : layers) n = between(1, 4);
      const char* const recompute[] = {
          "", "[strategy.checkpointing]\nmode = \"full\"\n",
          "[strategy.checkpointing]\nmode = \"full\"\nlayers = 1\n",
          "[strategy.checkpointing]\nmode = \"selective\"\nmodules = [\"norm\"]\n"};
      const std::string text = Scenario(schedule, ranks, layers, recompute[draw % 4]);
      SCOPED_TRACE(text);
      const Planned plan = PlanText(text);
      ASSERT_TRUE(plan.ok());
      const Simulation s = Played(plan);
      for (std::size_t r = 0; r < s.ranks.size(); ++r) {
        const double planned = plan.planned.explanation.ranks[r].memory.total;
        EXPECT_NEAR(s.ranks[r].peak, planned, 1e-9 * planned) << r;
        double sum = 0;
        for (const MemoryEntry& entry : plan.planned.explanation.ranks[r].entries)
          sum += entry.bytes;
        EXPECT_NEAR(sum, planned, 1e-9 * planned) << r;
      }
      ++uneven;
    }
  }
  EXPECT_EQ(uneven, 60);
}

// Gradients of a chunk that ends early are reduced while the others still work.
TEST(UnevenChunks, ReductionsOfEarlyChunksAreWithinTwoPercent) {
  double worst = 0;
  for (const char* schedule : {"pipeline-interleaved", "pipeline-breadth-first"}) {
    for (const int chunks : {2, 3, 4}) {
      for (const int per : {1, 3}) {
        const std::vector<int> layers(static_cast<std::size_t>(4 * chunks), per);
        const Planned plan =
            PlanText(Scenario(schedule, 4, layers, "[strategy.zero]\nstage = 1\n"));
        ASSERT_TRUE(plan.ok());
        const double step = plan.planned.explanation.evaluation.step;
        const double off = std::abs(Played(plan).makespan - step) / step;
        EXPECT_LE(off, 0.02) << schedule << " " << chunks << " " << per;
        worst = std::max(worst, off);
      }
    }
  }
  std::cout << "most off: " << worst << "\n";
}

}  // namespace
}  // namespace shardlab
