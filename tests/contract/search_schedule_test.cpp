// What a user says of the schedule is what a search tries.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/plan_document.h"
#include "io/search_run.h"
#include "io/toml_value.h"
#include "support/program.h"

namespace shardlab {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char kHead[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
    "[training]\nsequence_length = 4096\nmicro_batch_size = 1\nglobal_batch_size = 64\n";
constexpr const char kOneOfTheRest[] =
    "fix = [\"strategy.tensor.degree\", \"strategy.context.degree\", \"strategy.zero.stage\", "
    "\"strategy.checkpointing.mode\", \"training.micro_batch_size\"";  // and more

struct Grid {
  std::optional<SearchGrid> grid;
  Diagnostics diagnostics;
};

const PluginRegistry& Registry() {
  static Diagnostics diagnostics;
  static const PluginRegistry registry =
      PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
  return registry;
}

Grid GridOf(const std::string& text) {
  Grid read;
  const Scenario scenario = ScenarioFromText(text, "search.toml", {}, read.diagnostics);
  read.grid = ReadSearchGrid(Registry(), scenario, &read.diagnostics);
  return read;
}

std::vector<SearchPoint> Points(const SearchGrid& grid) {
  std::vector<SearchPoint> points;
  for (int g = 0; g < grid.group_count(); ++g)
    EachPoint(grid, g, 0, [&](const SearchPoint& point) { points.push_back(point); });
  return points;
}

// "SCHEDULE DEGREExCHUNKS" of each point.
std::vector<std::string> Shapes(const SearchGrid& grid) {
  std::vector<std::string> shapes;
  for (const SearchPoint& point : Points(grid)) {
    const Pipeline& p = grid.Group(point.group).pipelines[static_cast<std::size_t>(point.pipeline)];
    shapes.push_back(absl::StrCat(p.schedule, " ", p.degree, "x", p.chunks));
  }
  return shapes;
}

std::string FirstMessage(const Diagnostics& diagnostics) {
  return diagnostics.all().empty() ? "" : diagnostics.all()[0].message;
}

// The plan of the file, alone: its step, and its pipeline degree.
std::pair<double, int> PlanOfFile(const std::string& text) {
  Diagnostics diagnostics;
  const Scenario scenario = ScenarioFromText(text, "search.toml", {}, diagnostics);
  const PlannedScenario planned = PlanScenario(Registry(), scenario, &diagnostics);
  EXPECT_NE(planned.composed.composition, nullptr) << FirstMessage(diagnostics);
  EXPECT_TRUE(planned.explanation.evaluation.fits);
  return {planned.explanation.evaluation.step, planned.composed.request.pipeline};
}

SearchResult Searched(const std::string& text) {
  const Grid read = GridOf(text);
  EXPECT_TRUE(read.grid) << FirstMessage(read.diagnostics);
  return RunSearch(Registry(), *read.grid, {.jobs = 2, .top = 1}, [](std::int64_t) {});
}

TEST(SearchSchedule, AVariedScheduleIsTriedAndNoOther) {
  const Grid read = GridOf(absl::StrCat(
      kHead, "[search]\n", kOneOfTheRest,
      "]\nvary = { \"schedule.plugin\" = [\"pipeline-dualpipe\", \"pipeline-zb-v\", "
      "\"pipeline-dualpipe\"], \"schedule.degree\" = [8, 4], \"schedule.chunks\" = [2] }\n"));
  ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
  // Each once, though one is named twice.
  EXPECT_THAT(Shapes(*read.grid),
              UnorderedElementsAre("pipeline-dualpipe 4x2", "pipeline-dualpipe 8x2",
                                   "pipeline-zb-v 4x2", "pipeline-zb-v 8x2"));
  EXPECT_EQ(read.grid->size(), 4);
}

TEST(SearchSchedule, WhatItCountsIsWhatItConsiders) {
  ScratchFolder folder;
  WorkingDirectory inside(folder.path());
  WriteFile("a.toml",
            absl::StrCat(kHead,
                         "[search]\nvary = { \"schedule.plugin\" = [\"pipeline-dualpipe\", "
                         "\"pipeline-zb-v\"], \"schedule.degree\" = [2, 4, 8] }\n"));
  const ProgramRun run = RunProgram({"search", "a.toml", "--format", "json", "--top", "1000"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto document = nlohmann::ordered_json::parse(run.out);
  const auto& counts = document["counts"];
  EXPECT_EQ(
      counts["considered"].get<int>(),
      counts["illegal"].get<int>() + counts["pruned"].get<int>() + counts["evaluated"].get<int>());
  EXPECT_EQ(RunProgram({"search", "a.toml", "--count"}).out,
            absl::StrCat(counts["considered"].get<int>(), "\n"));
  std::set<std::string> schedules, rows;
  for (const auto& row : document["rows"]) {
    schedules.insert(row["plan"]["schedule"].get<std::string>());
    EXPECT_TRUE(rows.insert(row["keys"].dump()).second) << row["keys"];
  }
  EXPECT_EQ(schedules, (std::set<std::string>{"pipeline-dualpipe", "pipeline-zb-v"}));
}

// DualPipe holds each stage on two ranks: 32 layers over 8 stages on 8 ranks, 8 layers a rank. Two
// chunks of one stage each are 16 stages of two layers, four a rank.
TEST(SearchSchedule, StagesAreThoseOfTheSchedule) {
  const auto layers = [](const std::string& schedule, int degree) {
    const Grid read = GridOf(absl::StrCat(kHead, "[schedule]\nplugin = \"", schedule,
                                          "\"\ndegree = ", degree, "\n[search]\n", kOneOfTheRest,
                                          ", \"schedule.plugin\", \"schedule.degree\"]\n"));
    EXPECT_TRUE(read.grid) << FirstMessage(read.diagnostics);
    EXPECT_EQ(read.grid->size(), 1);
    return read.grid->Group(0).pipelines[0].layers;
  };
  EXPECT_EQ(layers("pipeline-dualpipe", 8), 8);
  EXPECT_EQ(layers("pipeline-zb-v", 8), 4);
}

TEST(SearchSchedule, AFixedScheduleHasTheChunksThatItNeeds) {
  for (const char* name : {"pipeline-dualpipe", "pipeline-dualpipe-v", "pipeline-zb-v",
                           "pipeline-v-half", "pipeline-v-min"}) {
    SCOPED_TRACE(name);
    const std::string text =
        absl::StrCat(kHead, "[strategy.tensor]\ndegree = 2\nsequence_parallel = true\n",
                     "[schedule]\nplugin = \"", name, "\"\ndegree = 4\n[search]\n", kOneOfTheRest,
                     ", \"schedule.plugin\"");
    const Grid one = GridOf(absl::StrCat(text, ", \"schedule.degree\"]\n"));
    ASSERT_TRUE(one.grid) << FirstMessage(one.diagnostics);
    EXPECT_THAT(Shapes(*one.grid), ElementsAre(absl::StrCat(name, " 4x2")));
    const SearchResult found = Searched(absl::StrCat(text, ", \"schedule.degree\"]\n"));
    EXPECT_EQ(found.counts.illegal, 0);
    EXPECT_EQ(found.best.size(), 1u);
    // The chunks fixed as well, which the file does not say: they are still its own.
    const Grid chunks = GridOf(absl::StrCat(text, ", \"schedule.degree\", \"schedule.chunks\"]\n"));
    EXPECT_EQ(Shapes(*chunks.grid), Shapes(*one.grid));
    // The schedule alone: all degrees that leave equal stages of 32 layers, or of them and the
    // ends.
    const Grid all = GridOf(absl::StrCat(text, "]\n"));
    EXPECT_THAT(Shapes(*all.grid), ::testing::Contains(absl::StrCat(name, " 8x2")));
    EXPECT_THAT(Shapes(*all.grid),
                Each(::testing::AnyOf(HasSubstr("x2"), ::testing::EndsWith(" 1x1"))));
  }
}

TEST(SearchSchedule, AFixedInterleavedScheduleKeepsItsChunks) {
  const Grid read = GridOf(
      absl::StrCat(kHead, "[schedule]\nplugin = \"pipeline-breadth-first\"\ndegree = 8\n[search]\n",
                   kOneOfTheRest, ", \"schedule.plugin\", \"schedule.degree\"]\n"));
  ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
  // 32 layers over 8 ranks in 2 or 4 chunks; and the file's own, in one.
  EXPECT_THAT(Shapes(*read.grid),
              UnorderedElementsAre("pipeline-breadth-first 8x1", "pipeline-breadth-first 8x2",
                                   "pipeline-breadth-first 8x4"));
}

TEST(SearchSchedule, TheScheduleOfTheFileIsTriedBesideTheOthers) {
  const std::string rest = absl::StrCat("[search]\n", kOneOfTheRest, ", \"schedule.degree\"]\n");
  const auto names = [&](const std::string& plugin) {
    const Grid read =
        GridOf(absl::StrCat(kHead, "[schedule]\nplugin = \"", plugin, "\"\ndegree = 4\n", rest));
    EXPECT_TRUE(read.grid) << FirstMessage(read.diagnostics);
    std::set<std::string> tried;
    for (const std::string& shape : Shapes(*read.grid))
      tried.insert(shape.substr(0, shape.find(' ')));
    return tried;
  };
  const std::set<std::string> by_default = names("pipeline-1f1b");
  EXPECT_EQ(by_default,
            (std::set<std::string>{"pipeline-1f1b", "pipeline-interleaved", "pipeline-zb-h1"}));
  std::set<std::string> more = by_default;
  more.insert("pipeline-zb-v");
  EXPECT_EQ(names("pipeline-zb-v"), more);
}

// A parameter of one schedule is no mistake of the others.
TEST(SearchSchedule, ItsParametersAreItsOwn) {
  const std::string text = absl::StrCat(
      kHead, "[schedule]\nplugin = \"pipeline-interleaved\"\ndegree = 4\nchunks = 2\ngroup = 8\n",
      "[search]\n", kOneOfTheRest, ", \"schedule.degree\"]\n");
  const Grid read = GridOf(text);
  ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
  std::map<std::string, int> legal;
  for (const SearchPoint& point : Points(*read.grid)) {
    Diagnostics own;
    const Scenario scenario = ScenarioOf(*read.grid, point);
    const bool is = PlanScenario(Registry(), scenario, &own).composed.composition != nullptr;
    const std::string name = scenario.root.FindPath("schedule.plugin")->text;
    legal[name] += is ? 1 : 0;
    EXPECT_EQ(scenario.root.FindPath("schedule.group") != nullptr, name == "pipeline-interleaved");
  }
  EXPECT_EQ(legal["pipeline-1f1b"], 1);
  EXPECT_EQ(legal["pipeline-zb-h1"], 1);
  EXPECT_GE(legal["pipeline-interleaved"], 1);
  const SearchResult found = Searched(text);
  EXPECT_EQ(found.counts.considered - found.counts.illegal,
            legal["pipeline-1f1b"] + legal["pipeline-zb-h1"] + legal["pipeline-interleaved"]);
}

// And where they are varied, each value is searched with its own schedule.
TEST(SearchSchedule, AVariedParameterOfAScheduleIsThatOfTheOrder) {
  const std::string text = absl::StrCat(
      kHead, "[strategy.tensor]\ndegree = 2\nsequence_parallel = true\n",
      "[schedule]\nplugin = \"pipeline-interleaved\"\ndegree = 4\nchunks = 2\n[search]\n",
      kOneOfTheRest, ", \"schedule\"]\nvary = { \"schedule.group\" = [4, 8, 64] }\n");
  const Grid read = GridOf(text);
  ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
  ASSERT_EQ(read.grid->size(), 3);
  std::vector<double> alone;
  for (const SearchPoint& point : Points(*read.grid)) {
    Diagnostics own;
    alone.push_back(
        PlanScenario(Registry(), ScenarioOf(*read.grid, point), &own).explanation.evaluation.step);
  }
  std::sort(alone.begin(), alone.end());
  const SearchResult found =
      RunSearch(Registry(), *read.grid, {.top = 3, .bounds = false}, [](std::int64_t) {});
  ASSERT_EQ(found.counts.evaluated, 3);
  for (std::size_t i = 0; i < found.best.size(); ++i)
    EXPECT_NEAR(found.best[i].step, alone[i], 1e-12 * alone[i]);
  EXPECT_LT(alone[0], alone[2]);
}

// The best of a grid is at least as fast as the plan of its file, whatever the file says beside the
// default grid: nothing is searched but what the file has.
TEST(SearchSchedule, ThePlanOfTheFileIsAPointOfItsGrid) {
  const char* const kPlans[] = {
      "[schedule]\nplugin = \"pipeline-dualpipe\"\ndegree = 4\nlayers = [9, 8, 8, 7]\n",
      "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\nlayers = [9, 8, 8, 7]\n",
      "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 3\nlayers = [11, 11, 10]\n",
      "[schedule]\nplugin = \"pipeline-zb-h2\"\ndegree = 4\nbalance = \"time\"\n",
      "[schedule]\nplugin = \"pipeline-breadth-first\"\ndegree = 4\nchunks = 3\n"
      "layers = [3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2]\n",
      "[strategy.zero]\nstage = 2\n",
      "[strategy.zero]\nstage = 1\n[strategy.checkpointing]\nmode = \"selective\"\n"
      "modules = [\"gated-silu\"]\n",
      "[strategy.checkpointing]\nmode = \"full\"\nsegment = 2\n",
      "[strategy.checkpointing]\nmode = \"full\"\nlayers = 5\n[schedule]\ndegree = 4\n",
      "[strategy.checkpointing]\nmode = \"full\"\nstride = 3\n",
  };
  for (const char* plan : kPlans) {
    SCOPED_TRACE(plan);
    std::string text = absl::StrCat(kHead, plan);
    text.replace(text.find("nodes = 1"), 9, "nodes = 3");
    text.replace(text.find("global_batch_size = 64"), 22, "global_batch_size = 192");
    text.replace(text.find("sequence_length = 4096"), 22, "sequence_length = 1024");
    if (text.find("strategy.zero") == std::string::npos)
      absl::StrAppend(&text, "[strategy.zero]\nstage = 1\n");
    const std::pair<double, int> file = PlanOfFile(text);
    const double own = file.first;
    const Grid read = GridOf(text);
    ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
    double nearest = 0;
    for (const SearchPoint& point : Points(*read.grid)) {
      const SearchGroup& group = read.grid->Group(point.group);
      if (point.micro_batch != 1 ||
          *std::max_element(point.degrees.begin(), point.degrees.end()) > 1 ||
          group.pipelines[static_cast<std::size_t>(point.pipeline)].degree != file.second)
        continue;
      Diagnostics ignored;
      const PlannedScenario planned =
          PlanScenario(Registry(), ScenarioOf(*read.grid, point), &ignored);
      const double step = planned.explanation.evaluation.step;
      if (std::abs(step - own) < std::abs(nearest - own)) nearest = step;
    }
    EXPECT_EQ(nearest, own);
    const SearchResult found = Searched(text);
    ASSERT_FALSE(found.best.empty());
    EXPECT_LE(found.best[0].step, own * (1 + 1e-9));
  }
}

TEST(SearchSchedule, OfOneShapeTheBalancedSplitIsThereOnce) {
  const auto size = [](const std::string& split) {
    const Grid read = GridOf(absl::StrCat(
        kHead, "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\n", split, "[search]\n",
        kOneOfTheRest, ", \"schedule.plugin\", \"schedule.degree\", \"schedule.chunks\"]\n"));
    EXPECT_TRUE(read.grid) << FirstMessage(read.diagnostics);
    return read.grid->size();
  };
  EXPECT_EQ(size(""), 1);
  EXPECT_EQ(size("layers = [8, 8, 8, 8]\n"), 1);
  EXPECT_EQ(size("layers = [9, 8, 8, 7]\n"), 2);
  // All of [schedule] fixed: its split, too.
  const Grid fixed = GridOf(absl::StrCat(
      kHead, "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\nlayers = [9, 8, 8, 7]\n",
      "[search]\n", kOneOfTheRest, ", \"schedule\"]\n"));
  ASSERT_TRUE(fixed.grid) << FirstMessage(fixed.diagnostics);
  ASSERT_EQ(fixed.grid->size(), 1);
  EXPECT_TRUE(fixed.grid->Group(0).pipelines[0].as_file);
}

// DeepSeek-V3 as its report trains it: 61 layers that no balanced split divides, DualPipe, and
// operations of its own recomputed.
TEST(SearchSchedule, DeepSeekV3IsNoSlowerThanItsReport) {
  ScratchFolder folder;
  const std::string file =
      absl::StrCat(SHARDLAB_SOURCE_DIR, "/scenarios/deepseek-v3-2048-gpus-dualpipe.toml");
  const auto plan =
      nlohmann::ordered_json::parse(RunProgram({"plan", file, "--format", "json"}).out);
  const auto best = nlohmann::ordered_json::parse(
      RunProgram({"search", file, "--format", "json", "--top", "1"}).out)["rows"][0];
  EXPECT_TRUE(plan["memory"]["fits"].get<bool>());
  const double step = plan["time"]["step_seconds"];
  EXPECT_LE(best["time"]["step_seconds"].get<double>(), step * (1 + 1e-9));
}

// Of the same numbers of layers other classes, by who holds them: DualPipe puts both ends of the
// model on a rank, where they share the embedding that 1F1B has twice; and of 12 ranks and of 8 the
// first layer of each is on other stages.
TEST(SearchSchedule, OneSplitOnTwoShapesIsTwoSplits) {
  const std::string tied =
      "[model]\nplugin = \"llama\"\npreset = \"gemma-2-27b\"\nlayers = 16\n"
      "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
      "[training]\nsequence_length = 4096\nmicro_batch_size = 1\nglobal_batch_size = 64\n";
  const std::string dense =
      "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\nlayers = 24\n"
      "[hardware]\nplugin = \"h100-dgx\"\nnodes = 3\n"
      "[training]\nsequence_length = 4096\nmicro_batch_size = 1\nglobal_batch_size = 96\n";
  const std::string zero = "[strategy.zero]\nstage = 1\n";
  const std::string fix =
      "[search]\nfix = [\"strategy.zero.stage\", \"strategy.context.degree\", "
      "\"training.micro_batch_size\", \"strategy.expert.degree\", \"strategy.tensor.degree\"";
  for (const std::string& text :
       {absl::StrCat(tied, zero, fix,
                     ", \"strategy.checkpointing.mode\"]\nvary = { \"schedule.plugin\" = "
                     "[\"pipeline-1f1b\", \"pipeline-dualpipe\", \"pipeline-zb-v\", "
                     "\"pipeline-interleaved\"], \"schedule.degree\" = [4, 8] }\n"),
        absl::StrCat(dense, zero, "[schedule]\nplugin = \"pipeline-breadth-first\"\n", fix,
                     ", \"schedule.plugin\"]\n"
                     "vary = { \"schedule.degree\" = [6, 8], \"schedule.chunks\" = [3, 4] }\n")}) {
    SCOPED_TRACE(text);
    const Grid read = GridOf(text);
    ASSERT_TRUE(read.grid) << FirstMessage(read.diagnostics);
    std::vector<double> alone;
    for (const SearchPoint& point : Points(*read.grid)) {
      Diagnostics own;
      const PlannedScenario planned = PlanScenario(Registry(), ScenarioOf(*read.grid, point), &own);
      if (planned.composed.composition != nullptr && planned.explanation.evaluation.fits)
        alone.push_back(planned.explanation.evaluation.peak);
    }
    std::sort(alone.begin(), alone.end());
    const SearchResult found =
        RunSearch(Registry(), *read.grid, {.top = 100, .bounds = false}, [](std::int64_t) {});
    std::vector<double> peaks;
    for (const Found& one : found.best) peaks.push_back(one.peak);
    std::sort(peaks.begin(), peaks.end());
    ASSERT_GT(peaks.size(), 1u);
    EXPECT_EQ(peaks, alone);
  }
}

TEST(SearchSchedule, WhatCannotBeVariedIsToldWithItsPlace) {
  const auto told = [](const std::string& vary) {
    const Grid read = GridOf(absl::StrCat(kHead, "[search]\nvary = { ", vary, " }\n"));
    EXPECT_FALSE(read.grid);
    return read.diagnostics.all().empty() ? ""
                                          : absl::StrCat(read.diagnostics.all()[0].place.line, ": ",
                                                         read.diagnostics.all()[0].message, "; ",
                                                         read.diagnostics.all()[0].hint);
  };
  EXPECT_EQ(told("\"schedule.plugin\" = [\"pipeline-dualpip\"]"),
            "12: there is no schedule \"pipeline-dualpip\"; did you mean \"pipeline-dualpipe\"?");
  EXPECT_THAT(told("\"schedule.degree\" = [\"two\"]"),
              HasSubstr("schedule.degree takes whole numbers"));
  EXPECT_THAT(told("\"schedule.plugin\" = [4]"), HasSubstr("schedule.plugin takes names"));
  EXPECT_THAT(told("\"schedule.plugin\" = [\"pipeline-1f1b\", \"pipeline-zb-v\"], "
                   "\"schedule.chunks\" = [1, 2], "
                   "zip = [[\"schedule.plugin\", \"schedule.chunks\"]]"),
              HasSubstr("zip cannot tie schedule.plugin"));
}

}  // namespace
}  // namespace shardlab
