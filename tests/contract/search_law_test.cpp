// Does pruning lose anything? On random small spaces a search finds what planning every point by
// itself finds: the top N, and the Pareto front of the naive definition.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/plan_document.h"
#include "io/search_run.h"
#include "io/toml_value.h"
#include "support/program.h"

namespace shardlab {
namespace {

constexpr int kSpaces = 200, kMostPoints = 60;

const char* const kNamed[] = {"pipeline-1f1b",      "pipeline-interleaved",   "pipeline-zb-h2",
                              "pipeline-zb-v",      "pipeline-v-half",        "pipeline-v-min",
                              "pipeline-gpipe",     "pipeline-breadth-first", "pipeline-dualpipe",
                              "pipeline-dualpipe-v"};

struct Planned {
  std::int64_t number = 0;
  double step = 0, peak = 0;
  bool good = false;  // legal, fits, and leaves the headroom
};

class RandomSpace {
 public:
  explicit RandomSpace(unsigned seed) : random_(seed) {}

  std::string Scenario() {
    const bool experts = Chance(3);
    std::string text = experts ? "[model]\nplugin = \"moe\"\npreset = \"mixtral-8x7b\"\n"
                               : absl::StrCat("[model]\nplugin = \"llama\"\npreset = \"",
                                              Pick({"llama3.1-8b", "gemma-2-27b"}), "\"\n");
    const bool textbook = Chance(5);  // it knows no selective recomputation
    const bool named = Chance(2);     // schedules beside those that are tried by default
    if (textbook) text = absl::StrCat("accounting = \"textbook\"\n", text);
    absl::StrAppend(&text, "[hardware]\nplugin = \"h100-dgx\"\nnodes = ", Pick({"1", "2"}),
                    "\n[training]\nsequence_length = ", Pick({"2048", "4096"}),
                    "\nglobal_batch_size = ", Pick({"16", "32", "64"}), "\n");
    absl::StrAppend(&text, "[strategy.checkpointing]\nmode = \"",
                    Pick({"none", "full", textbook ? "none" : "selective"}),
                    "\"\n[strategy.zero]\nstage = ", Pick({"0", "1"}), "\n");
    std::vector<std::string> fix, vary;
    // Some of them overlap pairs: a rank is then busy for less than the sum of its passes.
    const std::vector<std::string> schedules(std::begin(kNamed), std::end(kNamed));
    bool chunks_free = true;
    if (named) {
      absl::StrAppend(&text, "[schedule]\nplugin = \"", Pick(schedules), "\"\n");
      const bool fixed = Chance(2);
      if (fixed) fix.emplace_back("\"schedule.plugin\"");
      if (!fixed && Chance(2)) {
        std::vector<std::string> quoted;
        for (const std::string& name : schedules) quoted.push_back(absl::StrCat("\"", name, "\""));
        vary.push_back(List("schedule.plugin", quoted));
      }
      chunks_free = Chance(2);
      if (!chunks_free && fixed) fix.emplace_back("\"schedule.chunks\"");
      // A split of its own, where its stages are two.
      if (Chance(2))
        absl::StrAppend(&text, "degree = 2\n",
                        Pick({"layers = [15, 17]\n", "layers = [22, 24]\n", "balance = \"time\"\n",
                              "balance = \"memory\"\n"}));
    }
    if (Chance(2)) fix.push_back("\"strategy.checkpointing.mode\"");
    if (Chance(2)) fix.push_back("\"strategy.zero.stage\"");
    vary.push_back(List("strategy.tensor.degree", {"1", "2", "4", "8"}));
    vary.push_back(List("strategy.context.degree", {"1", "2"}));
    if (experts) vary.push_back(List("strategy.expert.degree", {"1", "2", "4"}));
    vary.push_back(List("schedule.degree", {"1", "2", "4"}));
    if (chunks_free) vary.push_back(List("schedule.chunks", {"2", "4"}));
    vary.push_back(List("training.micro_batch_size", {"1", "2", "4"}));
    absl::StrAppend(&text, "[search]\nfix = [", absl::StrJoin(fix, ", "), "]\nvary = { ",
                    absl::StrJoin(vary, ", "), " }\n");
    if (Chance(3)) absl::StrAppend(&text, "min_headroom = ", Pick({"0.1", "0.3"}), "\n");
    return text;
  }

 private:
  bool Chance(int one_in) { return std::uniform_int_distribution<int>(1, one_in)(random_) == 1; }
  std::string Pick(const std::vector<std::string>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random_)];
  }
  std::string List(const std::string& key, const std::vector<std::string>& from) {
    std::set<std::string> some = {Pick(from), Pick(from)};
    return absl::StrCat("\"", key, "\" = [", absl::StrJoin(some, ", "), "]");
  }
  std::mt19937 random_;
};

// `legal`: how many plans of each schedule were.
std::vector<Planned> PlanEach(const PluginRegistry& registry, const SearchGrid& grid,
                              std::map<std::string, int>* legal) {
  std::vector<Planned> all;
  for (int g = 0; g < grid.group_count(); ++g) {
    EachPoint(grid, g, static_cast<std::int64_t>(all.size()), [&](const SearchPoint& point) {
      Planned plan;
      plan.number = point.number;
      Diagnostics own;
      const PlannedScenario planned = PlanScenario(registry, ScenarioOf(grid, point), &own);
      if (planned.composed.composition != nullptr) {
        const Pipeline& pipeline =
            grid.Group(g).pipelines[static_cast<std::size_t>(point.pipeline)];
        if (pipeline.degree > 1) ++(*legal)[pipeline.as_file ? "as the file" : pipeline.schedule];
        const Evaluation& e = planned.explanation.evaluation;
        plan.step = e.step;
        plan.peak = e.peak;
        plan.good = e.fits && e.peak <= (1 - grid.min_headroom) * e.capacity;
      }
      all.push_back(plan);
    });
  }
  return all;
}

// How many points differ in what they set.
std::int64_t Distinct(const SearchGrid& grid) {
  std::set<std::string> plans;
  for (int g = 0; g < grid.group_count(); ++g) {
    EachPoint(grid, g, 0, [&](const SearchPoint& point) {
      std::string text;
      for (const auto& [key, value] : SettingsOf(grid, point))
        absl::StrAppend(&text, key, "=", ToToml(value), "\n");
      plans.insert(std::move(text));
    });
  }
  return static_cast<std::int64_t>(plans.size());
}

std::vector<double> Steps(const std::vector<Found>& found) {
  std::vector<double> steps;
  for (const Found& f : found) steps.push_back(f.step);
  return steps;
}

TEST(SearchLaw, PruningKeepsTheTopAndTheParetoFront) {
  Diagnostics diagnostics;
  const PluginRegistry registry =
      PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
  int spaces = 0;
  std::map<std::string, int> legal;
  std::int64_t pruned = 0;
  for (unsigned seed = 1; spaces < kSpaces; ++seed) {
    ASSERT_LT(seed, 100u * kSpaces);
    const std::string text = RandomSpace(seed).Scenario();
    Diagnostics own;
    const Scenario scenario = ScenarioFromText(text, "space.toml", {}, own);
    const std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &own);
    ASSERT_TRUE(grid) << text << (own.all().empty() ? "" : own.all()[0].message);
    if (grid->size() > kMostPoints) continue;
    ++spaces;
    SCOPED_TRACE(text);
    std::vector<Planned> good = PlanEach(registry, *grid, &legal);
    EXPECT_EQ(static_cast<std::int64_t>(good.size()), grid->size());
    EXPECT_EQ(Distinct(*grid), grid->size());
    good.erase(std::remove_if(good.begin(), good.end(), [](const Planned& p) { return !p.good; }),
               good.end());
    std::stable_sort(good.begin(), good.end(),
                     [](const Planned& a, const Planned& b) { return a.step < b.step; });
    const std::size_t top = 1 + seed % 4;
    const SearchResult found = RunSearch(
        registry, *grid, {.jobs = static_cast<int>(1 + seed % 3), .top = top}, [](std::int64_t) {});
    pruned += found.counts.pruned;
    EXPECT_EQ(found.counts.considered, grid->size());
    EXPECT_EQ(found.counts.considered,
              found.counts.illegal + found.counts.pruned + found.counts.evaluated);
    ASSERT_EQ(found.best.size(), std::min(top, good.size()));
    for (std::size_t i = 0; i < found.best.size(); ++i)
      EXPECT_NEAR(found.best[i].step, good[i].step, 1e-12 * good[i].step);

    // None is at least as good in both and better in one.
    std::vector<double> front;
    for (const Planned& p : good) {
      const bool beaten = std::any_of(good.begin(), good.end(), [&](const Planned& q) {
        const bool ties = q.step == p.step && q.peak == p.peak;
        return q.step <= p.step && q.peak <= p.peak && (!ties || q.number < p.number);
      });
      if (!beaten) front.push_back(p.step);
    }
    const SearchResult pareto =
        RunSearch(registry, *grid, {.jobs = 2, .top = top, .pareto = true}, [](std::int64_t) {});
    const std::vector<double> steps = Steps(pareto.pareto);
    ASSERT_EQ(steps.size(), front.size());
    for (std::size_t i = 0; i < front.size(); ++i)
      EXPECT_NEAR(steps[i], front[i], 1e-12 * front[i]);
  }
  EXPECT_GT(pruned, 0);
  for (const char* name : kNamed) EXPECT_GT(legal[name], 0) << name;
  EXPECT_GT(legal["as the file"], 0);
}

// Default grids, whose shardings, shares of recomputation and schedules are all there: dropped by
// bounds, or every legal plan evaluated to the end.
TEST(SearchLaw, BoundsLoseNothingOfADefaultGrid) {
  Diagnostics diagnostics;
  const PluginRegistry registry =
      PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
  const std::string dense =
      "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = \"h100-dgx\"\n"
      "nodes = 2\n[training]\nsequence_length = 8192\nglobal_batch_size = 64\n";
  const std::string experts =
      "[model]\nplugin = \"moe\"\npreset = \"mixtral-8x7b\"\n[hardware]\nplugin = \"h100-dgx\"\n"
      "nodes = 2\n[training]\nsequence_length = 4096\nglobal_batch_size = 32\n"
      "[search]\nobjective = \"tokens_per_second_per_device\"\nmin_headroom = 0.1\n"
      "vary = { \"training.micro_batch_size\" = [1, 2], \"schedule.degree\" = [1, 2, 4] }\n";
  for (const std::string& text : {dense, experts}) {
    SCOPED_TRACE(text);
    Diagnostics own;
    const Scenario scenario = ScenarioFromText(text, "space.toml", {}, own);
    const std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &own);
    ASSERT_TRUE(grid) << (own.all().empty() ? "" : own.all()[0].message);
    EXPECT_GT(grid->size(), 1000);
    const SearchResult all = RunSearch(registry, *grid, {.top = 25, .bounds = false},
                                       [](std::int64_t) {}),
                       found =
                           RunSearch(registry, *grid, {.jobs = 2, .top = 25}, [](std::int64_t) {});
    EXPECT_EQ(all.counts.pruned, 0);
    EXPECT_EQ(found.counts.illegal, all.counts.illegal);
    EXPECT_LT(found.counts.evaluated, all.counts.evaluated / 2);
    ASSERT_EQ(found.best.size(), all.best.size());
    for (std::size_t i = 0; i < all.best.size(); ++i) {
      EXPECT_EQ(found.best[i].point.number, all.best[i].point.number);
      EXPECT_EQ(found.best[i].step, all.best[i].step);
      EXPECT_EQ(found.best[i].peak, all.best[i].peak);
    }
    ASSERT_EQ(found.best_unfitting.size(), all.best_unfitting.size());
    for (std::size_t i = 0; i < all.best_unfitting.size(); ++i)
      EXPECT_EQ(found.best_unfitting[i].step, all.best_unfitting[i].step);
  }
}

}  // namespace
}  // namespace shardlab
