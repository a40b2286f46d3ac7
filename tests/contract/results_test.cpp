// `shardlab results compare` and `plot`: what differs is told, charts are well-formed, the same
// each time, and drawn where the numbers say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/plot_axis.h"
#include "io/svg_plot.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char kSweep[] =
    "name = \"<8B & more>\"\naccounting = \"textbook\"\n"
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 64\n"
    "[sweep]\n\"strategy.tensor.degree\" = [1, 2, 4, 8]\n\"schedule.degree\" = [1, 3]\n";

class Results : public ::testing::Test {
 protected:
  Results() : inside_(folder_.path()) {
    WriteFile("s.toml", kSweep);
    EXPECT_EQ(RunProgram({"sweep", "s.toml", "--store", "s.db"}).status, 0);
  }
  static ProgramRun Plot(std::vector<std::string> more) {
    more.insert(more.begin(), {"results", "plot", "s.db"});
    return RunProgram(more);
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(Results, ARowAgainstAnotherShowsTheKeyThatDiffers) {
  const ProgramRun run =
      RunProgram({"results", "compare", "s.db", "1:0", "1:2", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json first = Json::parse(run.out)["columns"][0];
  EXPECT_EQ(first, Json({{"column", "strategy.tensor.degree"}, {"a", 1}, {"b", 2}}));
}

TEST_F(Results, ASweepIsTheSameAsItself) {
  const ProgramRun run = RunProgram({"results", "compare", "s.db", "1", "1", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["rows"],
            Json({{"only_a", 0}, {"only_b", 0}, {"same", 8}, {"different", 0}}));
}

TEST_F(Results, AChangedScenarioDiffersInEveryLegalRow) {
  ASSERT_EQ(RunProgram({"sweep", "s.toml", "--store", "t.db", "--set", "hardware.nodes=2"}).status,
            0);
  const ProgramRun run = RunProgram({"results", "compare", "s.db", "t.db", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = Json::parse(run.out);
  // Pipeline 3 divides no 32 layers, on one node or two; what else is illegal has its devices in
  // it.
  EXPECT_EQ(document["rows"]["only_a"], 0);
  EXPECT_GE(document["rows"]["different"], 4);
  for (const Json& column : document["columns"]) {
    if (column["column"] != "plan.data") continue;
    EXPECT_EQ(column["b"], 2 * column["a"].get<int>());
    EXPECT_EQ(column["rows"], 4);
  }
}

TEST_F(Results, APlotIsEscapedAndTheSameEachTime) {
  const ProgramRun run = Plot({"--y", "memory.peak_bytes"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("&lt;8B &amp; more&gt;"));
  EXPECT_THAT(run.out, Not(HasSubstr("<8B")));
  EXPECT_THAT(run.out, HasSubstr("memory.peak (GB)"));
  EXPECT_THAT(run.out, HasSubstr("4 plans; 4 illegal combinations left out"));
  ASSERT_EQ(Plot({"--y", "memory.peak_bytes", "-o", "a.svg"}).status, 0);
  EXPECT_EQ(ReadFile("a.svg"), run.out);
}

TEST_F(Results, EveryMistakeOfAPlotIsToldAtOnce) {
  const ProgramRun run = Plot({"--x", "strategy.tensr.degree", "--y", "time.step_second"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean \"strategy.tensor.degree\"?"));
  EXPECT_THAT(run.err, HasSubstr("did you mean \"time.step_seconds\"?"));
  EXPECT_THAT(Plot({"--y", "memory.fits"}).err, HasSubstr("memory.fits is no number"));
  EXPECT_THAT(Plot({"--where", "memory.peak_bytes < 0"}).err, HasSubstr("no row is left"));
  EXPECT_THAT(Plot({"--where", "schedule.degree == 3"}).err, HasSubstr("none of the 4 rows"));
  EXPECT_THAT(Plot({"--pareto", "low"}).err, HasSubstr("low,high"));
  EXPECT_EQ(Plot({"-o", "no/such/folder.svg"}).status, 1);
}

TEST(PlotAxes, TicksAreRoundAndHoldTheValues) {
  const PlotAxis seconds = MakeAxis({0.0031, 0.0172}, "time.step_seconds", false);
  EXPECT_EQ(seconds.title, "time.step (ms)");
  ASSERT_EQ(seconds.ticks.size(), 5u);
  EXPECT_EQ(seconds.ticks[1].label, "5");
  EXPECT_EQ(seconds.ticks.back().label, "20");
  EXPECT_DOUBLE_EQ(seconds.At(0.010), 0.5);
  const PlotAxis degrees = MakeAxis({1, 2, 8}, "tensor", true);
  EXPECT_DOUBLE_EQ(degrees.At(2), 1.0 / 3);
  EXPECT_EQ(degrees.ticks.size(), 3u);
  const PlotAxis one = MakeAxis({5, 5}, "n", false);
  EXPECT_LT(one.low, 5);
  EXPECT_GT(one.high, 5);
}

TEST(PlotFronts, AFrontIsWhatNoOtherBeats) {
  const std::vector<PlotPoint> points = {{1, 5}, {2, 3}, {2, 4}, {3, 3}, {4, 1}, {0.5, 9}, {4, 1}};
  for (const bool low_x : {true, false}) {
    for (const bool low_y : {true, false}) {
      const double sx = low_x ? 1 : -1, sy = low_y ? 1 : -1;
      std::vector<std::pair<double, double>> naive, front;
      for (const PlotPoint& p : points) {
        bool beaten = false;
        for (const PlotPoint& q : points) {
          beaten = beaten ||
                   (sx * q.x <= sx * p.x && sy * q.y <= sy * p.y && (q.x != p.x || q.y != p.y));
        }
        if (!beaten) naive.emplace_back(p.x, p.y);
      }
      std::sort(naive.begin(), naive.end());
      naive.erase(std::unique(naive.begin(), naive.end()), naive.end());
      for (const PlotPoint& p : ParetoFront(points, low_x, low_y)) front.emplace_back(p.x, p.y);
      EXPECT_EQ(front, naive) << low_x << low_y;
    }
  }
}

}  // namespace
}  // namespace shardlab
