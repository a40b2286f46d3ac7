// `shardlab search`: the same as planning every point of its grid one by one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "io/plan_document.h"
#include "io/search_run.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char kDense[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 32\n";
constexpr const char kExperts[] =
    "[model]\nplugin = \"moe\"\npreset = \"mixtral-8x7b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 16\n";
constexpr const char kSmaller[] =
    "[search]\nvary = { \"schedule.degree\" = [1, 2, 3], \"schedule.chunks\" = [2, 4], "
    "\"training.micro_batch_size\" = [1, 2], \"strategy.tensor.degree\" = [1, 2, 4] }\n";

class Search : public ::testing::Test {
 protected:
  Search() : inside_(folder_.path()) {
    WriteFile("dense.toml", absl::StrCat(kDense, kSmaller));
    WriteFile("experts.toml", absl::StrCat(kExperts, kSmaller));
  }

  static Json Document(std::vector<std::string> more) {
    std::vector<std::string> args = {"search", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    return Json::parse(run.out, nullptr, false);
  }

  // Plans each point by itself, as `shardlab plan` would.
  static void EqualsBruteForce(const std::string& file) {
    Diagnostics diagnostics;
    const PluginRegistry registry =
        PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
    const Scenario scenario = ReadScenario(file, {}, diagnostics);
    const std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &diagnostics);
    ASSERT_TRUE(grid) << diagnostics.all()[0].message;
    SweepCounts counts;
    std::vector<double> steps;
    std::int64_t begin = 0;
    for (int g = 0; g < grid->group_count(); ++g) {
      EachPoint(*grid, g, begin, [&](const SearchPoint& point) {
        EXPECT_EQ(point.number, counts.considered);
        ++counts.considered;
        Diagnostics own;
        const PlannedScenario planned = PlanScenario(registry, ScenarioOf(*grid, point), &own);
        if (planned.composed.composition == nullptr) {
          ++counts.illegal;
          return;
        }
        ++counts.evaluated;
        const Evaluation& e = planned.explanation.evaluation;
        if (e.fits) steps.push_back(e.step);
        counts.not_fitting += e.fits ? 0 : 1;
      });
      begin = counts.considered;
    }
    EXPECT_EQ(counts.considered, grid->size());
    std::sort(steps.begin(), steps.end());
    const SearchResult found =
        RunSearch(registry, *grid, {.jobs = 2, .top = steps.size() + 1, .bounds = false},
                  [](std::int64_t) {});
    EXPECT_EQ(found.counts, counts) << CountsToJson(found.counts) << CountsToJson(counts);
    EXPECT_GT(counts.evaluated, 0);
    ASSERT_EQ(found.best.size(), steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i)
      EXPECT_NEAR(found.best[i].step, steps[i], 1e-12 * steps[i]);
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(Search, EqualsBruteForceDense) { EqualsBruteForce("dense.toml"); }
TEST_F(Search, EqualsBruteForceWithExperts) { EqualsBruteForce("experts.toml"); }

TEST_F(Search, CountIsWhatIsConsideredAndCountsAddUp) {
  const Json document = Document({"dense.toml"});
  const Json& counts = document["counts"];
  EXPECT_EQ(document["schema"], "shardlab.search/1");
  EXPECT_EQ(
      counts["considered"].get<int>(),
      counts["illegal"].get<int>() + counts["pruned"].get<int>() + counts["evaluated"].get<int>());
  EXPECT_EQ(RunProgram({"search", "dense.toml", "--count"}).out,
            absl::StrCat(counts["considered"].get<int>(), "\n"));
  std::int64_t illegal = 0;
  for (const Json& reason : document["illegal"]) illegal += reason["count"].get<std::int64_t>();
  EXPECT_EQ(counts["illegal"], illegal);
}

TEST_F(Search, SameBytesForAnyNumberOfThreadsAndRowsAreSorted) {
  const Json one = Document({"dense.toml", "--jobs", "1", "--top", "20"});
  EXPECT_EQ(one, Document({"dense.toml", "--jobs", "3", "--top", "20"}));
  ASSERT_EQ(one["rows"].size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) {
    const Json& row = one["rows"][i];
    // The search plays a shortened order of work: only the last digits may differ.
    const double step = row["time"]["step_seconds"];
    EXPECT_NEAR(row["objective"].get<double>(), step, 1e-12 * step);
    EXPECT_EQ(row["memory"]["fits"], true);
    if (i > 0) {
      EXPECT_GE(row["objective"], one["rows"][i - 1]["objective"]);
    }
  }
}

TEST_F(Search, OnTheParetoFrontMoreTimeBuysMemory) {
  const Json rows = Document({"dense.toml", "--pareto"})["rows"];
  ASSERT_GT(rows.size(), 1u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_GT(rows[i]["time"]["step_seconds"], rows[i - 1]["time"]["step_seconds"]);
    EXPECT_LT(rows[i]["memory"]["peak_bytes"], rows[i - 1]["memory"]["peak_bytes"]);
  }
}

TEST_F(Search, FixedKeysStayAndHeadroomIsKept) {
  WriteFile("fixed.toml",
            absl::StrCat(kDense, "[strategy.tensor]\ndegree = 4\n",
                         "[search]\nfix = [\"strategy.tensor.degree\", \"schedule.plugin\"]\n"
                         "min_headroom = 0.4\nwhen = \"training.micro_batch_size <= 2\"\n"));
  const Json document = Document({"fixed.toml"});
  EXPECT_GT(document["counts"]["pruned"], 0);
  ASSERT_FALSE(document["rows"].empty());
  for (const Json& row : document["rows"]) {
    EXPECT_EQ(row["plan"]["tensor"], 4);
    EXPECT_LE(row["plan"]["micro_batch_size"], 2);
    EXPECT_GE(row["memory"]["headroom_bytes"].get<double>(),
              0.4 * row["memory"]["capacity_bytes"].get<double>());
  }
}

TEST_F(Search, SaysWhatBindsAndHowTheStepMoves) {
  const Json document = Document({"dense.toml", "--top", "1"});
  const Json& winner = document["winner"];
  EXPECT_FALSE(winner["binds"].empty());
  ASSERT_FALSE(winner["knobs"].empty());
  const double step = document["rows"][0]["time"]["step_seconds"];
  for (const Json& knob : winner["knobs"]) {
    // No neighbour that fits beats the best of the grid.
    if (knob["legal"] == 1 && knob["fits"] == true) {
      EXPECT_GE(knob["step_share"], -1e-12);
    }
  }
  for (const Json& link : winner["links"]) EXPECT_LE(link["step_share"], 1e-12);
  // Where nothing else is asked a knob is a plan of its own: the same step by `plan`.
  std::vector<std::string> args = {"plan", "dense.toml", "--format", "json"};
  for (const auto& [key, value] : document["rows"][0]["keys"].items()) {
    args.push_back("--set");
    args.push_back(absl::StrCat(key, "=", value.dump()));
  }
  const Json plan = Json::parse(RunProgram(args).out, nullptr, false);
  EXPECT_NEAR(plan["time"]["step_seconds"].get<double>(), step, 1e-12 * step);
}

TEST_F(Search, WhyNotNamesTheFirstViolatedConstraintAndLegalPlansNearby) {
  const Json illegal = Document({"dense.toml", "--why-not", "strategy.tensor.degree=3"})["why_not"];
  EXPECT_EQ(illegal["legal"], 0);
  EXPECT_THAT(illegal["why"].get<std::string>(), ::testing::HasSubstr("do not divide by"));
  EXPECT_FALSE(illegal["nearest"].empty());
  const Json slow =
      Document({"dense.toml", "--why-not", "strategy.checkpointing.mode=full"})["why_not"];
  EXPECT_EQ(slow["legal"], 1);
  EXPECT_THAT(slow["why"].get<std::string>(), ::testing::HasSubstr("recomputation +"));
}

TEST_F(Search, RightSizingFindsTheFewestDevicesUnderAStep) {
  const Json sizes = Document({"dense.toml", "--devices", "8..32"})["sizes"];
  ASSERT_EQ(sizes.size(), 3u);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_LT(sizes[i]["step_seconds"], sizes[i - 1]["step_seconds"]);
  const std::string limit = sizes[1]["step_seconds"].dump();
  EXPECT_EQ(Document({"dense.toml", "--devices", "8..32", "--max-step", limit})["answer"], 1);
  // 16 devices at 2 an hour cost 32; of those within 40 an hour they are the fastest.
  const Json budget =
      Document({"dense.toml", "--devices", "8..32", "--hardware", "h100-dgx@2", "--budget", "40"});
  EXPECT_EQ(budget["answer"], 1);
  EXPECT_EQ(budget["sizes"][1]["price_per_hour"], 32.0);
}

}  // namespace
}  // namespace shardlab
