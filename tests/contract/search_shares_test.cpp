// Are shares of layers found as each of them is planned? Of the strategy that offers shares, and of
// one that does with the number what no composition with another number tells.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/plan_document.h"
#include "io/search_run.h"
#include "support/program.h"

namespace shardlab {
namespace {

struct Shared {
  double step = 0;
  int share = 0;
};

// All plans of the grid that are legal and fit, each planned by itself, the fastest first.
std::vector<Shared> PlanEach(const PluginRegistry& registry, const SearchGrid& grid) {
  std::vector<Shared> all;
  for (int g = 0; g < grid.group_count(); ++g) {
    EachPoint(grid, g, 0, [&](const SearchPoint& point) {
      Diagnostics own;
      const PlannedScenario planned = PlanScenario(registry, ScenarioOf(grid, point), &own);
      if (planned.composed.composition == nullptr || !planned.explanation.evaluation.fits) return;
      const Pipeline& pipeline = grid.Group(g).pipelines[static_cast<std::size_t>(point.pipeline)];
      all.push_back({planned.explanation.evaluation.step, pipeline.share});
    });
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Shared& a, const Shared& b) { return a.step < b.step; });
  return all;
}

void FindsWhatIsPlanned(const std::vector<std::string>& folders, const std::string& fixed) {
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load(folders, diagnostics);
  ASSERT_FALSE(diagnostics.HasErrors()) << diagnostics.all()[0].message;
  const std::string text = absl::StrCat(
      "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
      "[hardware]\nplugin = \"h100-dgx\"\nnodes = 2\n"
      "[training]\nsequence_length = 4096\nglobal_batch_size = 64\n[search]\nfix = [",
      fixed,
      "\"strategy.tensor.degree\", \"strategy.context.degree\", \"strategy.zero.stage\"]\n"
      "vary = { \"schedule.degree\" = [1, 2, 4, 8], \"schedule.chunks\" = [1, 2], "
      "\"training.micro_batch_size\" = [1, 2] }\n");
  Diagnostics own;
  const Scenario scenario = ScenarioFromText(text, "shares.toml", {}, own);
  const std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &own);
  ASSERT_TRUE(grid) << own.all()[0].message;
  const std::vector<Shared> planned = PlanEach(registry, *grid);
  std::set<int> shares;
  for (const Shared& plan : planned) shares.insert(plan.share);
  EXPECT_GE(shares.size(), 6u);
  for (const int jobs : {1, 2}) {
    const SearchResult best =
        RunSearch(registry, *grid, {.jobs = jobs, .top = 1}, [](std::int64_t) {});
    ASSERT_EQ(best.best.size(), 1u);
    EXPECT_NEAR(best.best[0].step, planned[0].step, 1e-12 * planned[0].step);
  }
  for (const bool bounds : {false, true}) {
    const SearchResult found = RunSearch(
        registry, *grid, {.jobs = 2, .top = planned.size(), .bounds = bounds}, [](std::int64_t) {});
    EXPECT_EQ(found.counts.considered, grid->size());
    EXPECT_EQ(found.counts.considered,
              found.counts.illegal + found.counts.pruned + found.counts.evaluated);
    ASSERT_EQ(found.best.size(), planned.size());
    for (std::size_t i = 0; i < planned.size(); ++i)
      EXPECT_NEAR(found.best[i].step, planned[i].step, 1e-12 * planned[i].step);
  }
}

std::vector<std::string> With(const std::string& strategy) {
  return {SHARDLAB_BINARY_DIR "/plugins",
          absl::StrCat(SHARDLAB_BINARY_DIR "/contract-plugins/", strategy)};
}
constexpr const char kNoOther[] = "\"strategy.checkpointing.mode\", ";

TEST(SearchShares, OneCompositionServesAllSharesOfAStrategyThatOnlyCountsLayers) {
  FindsWhatIsPlanned({SHARDLAB_BINARY_DIR "/plugins"}, "");
}

TEST(SearchShares, AStrategyThatFollowsNoRuleIsComposedForEachShare) {
  FindsWhatIsPlanned(With("half-layers"), kNoOther);
}

TEST(SearchShares, AShareThatIsRefusedIsNoOtherSharesRefusal) {
  FindsWhatIsPlanned(With("picky-first"), kNoOther);
}

TEST(SearchShares, WhatIsFoundIsNoShareThatIsRefused) {
  FindsWhatIsPlanned(With("picky-later"), kNoOther);
}

}  // namespace
}  // namespace shardlab
