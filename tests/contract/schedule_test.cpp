// `shardlab schedule`, and what `plan` makes of schedules, as an outsider sees them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/plugins.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::vector<std::string> With(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

Json Study(const std::string& name, int ranks, int micro_batches,
           const std::vector<std::string>& more = {}) {
  const ProgramRun run =
      RunProgram(With({"schedule", absl::StrCat("pipeline-", name), "--ranks", absl::StrCat(ranks),
                       "--micro-batches", absl::StrCat(micro_batches), "--format", "json"},
                      more));
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? Json::parse(run.out) : Json();
}

TEST(ScheduleCommand, KeysAndTypes) {
  const Json doc = Study("zb-h1", 4, 8, {"--events"});
  EXPECT_EQ(doc["schema"], "shardlab.simulation/1");
  EXPECT_EQ(doc["schedule"], "pipeline-zb-h1");
  EXPECT_EQ(doc["pipeline"], 4);
  EXPECT_EQ(doc["micro_batches"], 8);
  EXPECT_EQ(doc["chunks"], 1);
  EXPECT_EQ(doc["makespan_seconds"].get<double>(), 27);
  EXPECT_NEAR(doc["bubble_fraction"].get<double>(), 3. / 27, 1e-15);
  ASSERT_EQ(doc["ranks"].size(), 4u);
  for (int r = 0; r < 4; ++r) {
    const Json& rank = doc["ranks"][static_cast<std::size_t>(r)];
    EXPECT_EQ(rank["rank"], r);
    EXPECT_EQ(rank["busy_seconds"].get<double>(), 24);
    EXPECT_EQ(rank["idle_seconds"].get<double>(), 3);
    EXPECT_EQ(rank["own_bubble_seconds"].get<double>(), 3 - r);
    EXPECT_EQ(rank["peak_in_flight_chunks"], 4);
    EXPECT_EQ(rank["peak_in_flight_chunks_until_i"], 4 - r);
  }
  ASSERT_EQ(doc["events"].size(), 4u * 3 * 8);
  const Json& event = doc["events"][0];
  EXPECT_EQ(event["rank"], 0);
  EXPECT_EQ(event["stream"], "compute");
  EXPECT_EQ(event["kind"], "F");
  EXPECT_EQ(event["chunk"], 0);
  EXPECT_EQ(event["micro_batch"], 0);
  EXPECT_EQ(event["start_seconds"].get<double>(), 0);
  EXPECT_EQ(event["end_seconds"].get<double>(), 1);
  EXPECT_FALSE(Study("zb-h1", 4, 8).contains("events"));
}

TEST(ScheduleCommand, TimesAreOfAWholeRankAndMicroBatch) {
  // DualPipe at per-chunk F 1, B 2, pair 2: 52 s, idle 1 2 3 3 3 3 2 1.
  const Json dual = Study("dualpipe", 8, 20,
                          {"--forward", "2", "--input-gradient", "2", "--weight-gradient", "2",
                           "--overlapped-pair", "4"});
  EXPECT_EQ(dual["makespan_seconds"].get<double>(), 52);
  EXPECT_EQ(dual["ranks"][1]["idle_seconds"].get<double>(), 2);
  EXPECT_EQ(dual["ranks"][3]["peak_in_flight_chunks"], 9);
  EXPECT_EQ(Study("interleaved", 4, 8, {"--chunks", "2"})["makespan_seconds"].get<double>(), 28.5);
  // Recomputation comes before each backward: the formulas with T_I + T_R for T_I.
  const Json with = Study("1f1b", 4, 8, {"--recompute", "0.5", "--events"});
  EXPECT_EQ(with["makespan_seconds"].get<double>(), 11 * 3.5);
  const auto count = [&](const char* kind) {
    return std::count_if(with["events"].begin(), with["events"].end(),
                         [&](const Json& e) { return e["kind"] == kind; });
  };
  EXPECT_EQ(count("R"), 32);
  EXPECT_EQ(count("B"), 32);
  // Hops: (m + p - 1) 3 + 2 c (m + p - 2 - ceil((m - 1)/p)).
  EXPECT_EQ(Study("1f1b", 4, 8, {"--hop", "250 ms"})["makespan_seconds"].get<double>(),
            33 + 0.5 * 8);
}

// Each forward and each gradient crosses p - 1 borders; a message leaves with the end of what makes
// it, takes the hop, and what waits for it does not begin before.
TEST(ScheduleCommand, MessagesAreEventsOfTheirSenderAndReceiver) {
  for (const char* name : {"1f1b", "zb-h1", "dualpipe"}) {
    SCOPED_TRACE(name);
    const Json doc = Study(name, 4, 8, {"--hop", "0.25", "--events"});
    int sends = 0, receives = 0, activations = 0;
    std::set<double> ends;
    for (const Json& e : doc["events"]) {
      if (e["stream"] == "compute") ends.insert(e["end_seconds"].get<double>());
    }
    for (const Json& e : doc["events"]) {
      if (e["stream"] != "send/recv") continue;
      sends += e["kind"] == "SEND";
      receives += e["kind"] == "RECV";
      activations += e["name"] == "activations";
      const double start = e["start_seconds"].get<double>();
      EXPECT_DOUBLE_EQ(e["end_seconds"].get<double>() - start, 0.25);
      EXPECT_EQ(ends.count(start), 1u) << e.dump();
    }
    EXPECT_EQ(sends, 2 * 3 * 8);
    EXPECT_EQ(receives, sends);
    EXPECT_EQ(activations, sends);  // half of them, told by both ends
  }
  // Without a hop there is nothing to see.
  const Json without = Study("1f1b", 4, 8, {"--events"});
  for (const Json& e : without["events"]) EXPECT_EQ(e["stream"], "compute");
}

TEST(ScheduleCommand, EveryScheduleIsWrittenAndReadAgain) {
  const ScratchFolder scratch;
  for (const std::string& name : BuiltPlugins().Names("schedule")) {
    if (name == "pipeline-csv") continue;
    SCOPED_TRACE(name);
    const std::vector<std::string> shape = {"--ranks", "4", "--micro-batches", "8"};
    const ProgramRun csv = RunProgram(With(With({"schedule", name}, shape), {"--csv"}));
    ASSERT_EQ(csv.status, 0) << csv.err;
    const std::string file = (scratch.path() / (name + ".csv")).string();
    WriteFile(file, csv.out);
    const Json itself = Study(name.substr(std::string("pipeline-").size()), 4, 8);
    const Json read = Study("csv", 4, 8, {"--order", file});
    for (const char* key : {"chunks", "stages", "makespan_seconds", "bubble_fraction", "ranks"})
      EXPECT_EQ(read[key], itself[key]) << key;
  }
}

TEST(ScheduleCommand, TheChartKeepsToItsWidth) {
  const ProgramRun run = RunProgram({"schedule", "pipeline-dualpipe-v", "--ranks", "4",
                                     "--micro-batches", "64", "--recompute", "0.3", "--gantt"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const absl::string_view line : absl::StrSplit(run.out, '\n')) EXPECT_LE(line.size(), 100u);
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos) << "colour without a terminal";
  for (const char* text : {"rank 3 ", "in flight", "R recompute"})
    EXPECT_THAT(run.out, HasSubstr(text));
}

// --- plans

constexpr const char kHead[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = "
    "\"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 256\n[strategy.zero]\nstage = 0\n";

Json Plan(const std::string& accounting, const std::string& schedule,
          const std::string& rest = "") {
  const ScratchFolder scratch;
  const std::string file = (scratch.path() / "plan.toml").string();
  WriteFile(file, absl::StrCat("accounting = \"", accounting, "\"\n", kHead, "[schedule]\n",
                               schedule, "\n", rest));
  const ProgramRun run = RunProgram({"plan", file, "--format", "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? Json::parse(run.out) : Json();
}

double Of(const Json& plan, const char* path) {
  return plan.at(Json::json_pointer(path)).get<double>();
}

TEST(SchedulePlans, DualPipeHoldsEachStageTwiceAndSumsTheCopies) {
  const Json one = Plan("operator", "plugin = \"pipeline-1f1b\"\ndegree = 4");
  const Json dual = Plan("operator", "plugin = \"pipeline-dualpipe\"\ndegree = 4");
  for (const char* account : {"parameters_bytes", "gradients_bytes", "optimizer_bytes"}) {
    double once = 0, twice = 0;
    for (const Json& rank : one["memory"]["ranks"]) once += rank[account].get<double>();
    for (const Json& rank : dual["memory"]["ranks"]) twice += rank[account].get<double>();
    EXPECT_NEAR(twice, 2 * once, 8) << account;
  }
  EXPECT_EQ(dual["memory"]["ranks"][1]["stages"], Json({1, 2}));
  EXPECT_EQ(dual["plan"]["layers"], Json({8, 8, 8, 8}));
  int sums = 0;
  double exposed = 0;
  for (const Json& c : dual["communication"]) {
    if (c["axis"] != "pipeline") continue;
    exposed += c["exposed_seconds"].get<double>();
    if (c["collective"] != "all-reduce") continue;
    ++sums;
    const auto worst = dual["memory"]["worst_rank"].get<std::size_t>();
    // 2 (n - 1)/n of the gradients, n = 2.
    EXPECT_NEAR(c["bytes"].get<double>(), Of(dual["memory"]["ranks"][worst], "/gradients_bytes"),
                2);
    EXPECT_GT(c["exposed_seconds"].get<double>(), 0);
  }
  EXPECT_EQ(sums, 1);
  EXPECT_GT(exposed, 0);
}

// I and W are priced apart, and W keeps its inputs.
TEST(SchedulePlans, WeightGradientsKeepWhatWasRecomputed) {
  const std::string full = "[strategy.checkpointing]\nmode = \"full\"\n";
  const auto activations = [&](const char* schedule, const std::string& rest) {
    const Json plan =
        Plan("operator", absl::StrCat("plugin = \"", schedule, "\"\ndegree = 4"), rest);
    std::vector<double> bytes;
    for (const Json& rank : plan["memory"]["ranks"])
      bytes.push_back(rank["activations_bytes"].get<double>());
    return bytes;
  };
  const std::vector<double> kept = activations("pipeline-zb-h1", "");
  const std::vector<double> recomputed = activations("pipeline-zb-h1", full);
  const std::vector<double> one = activations("pipeline-1f1b", full);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_LT(one[r], recomputed[r]);
    // The last rank puts three weight gradients off: nothing is saved there.
    if (r < 3) {
      EXPECT_LT(recomputed[r], kept[r]);
    }
  }
  EXPECT_GT(recomputed[3], 0.9 * kept[3]);
}

TEST(SchedulePlans, TextbookPlaysAtEqualPasses) {
  const auto fraction = [](const std::string& schedule) {
    const Json plan = Plan("textbook", schedule);
    return Of(plan, "/time/bubble_seconds") /
           (Of(plan, "/time/step_seconds") - Of(plan, "/time/exposed/data_seconds"));
  };
  const auto text = [](const char* name, int chunks) {
    return absl::StrCat("plugin = \"pipeline-", name, "\"\ndegree = 4\nchunks = ", chunks);
  };
  // 256 sequences over 8 replicas: 32 micro-batches of 3 units each.
  EXPECT_NEAR(fraction(text("interleaved", 2)), 4.5 / 100.5, 1e-12);
  EXPECT_NEAR(fraction(text("breadth-first", 4)), 2.25 / 98.25, 1e-12);
  EXPECT_NEAR(fraction(text("zb-h1", 1)), 3. / 99, 1e-12);
  EXPECT_NEAR(fraction(text("zb-v", 2)), 1.5 / 97.5, 1e-12);
  EXPECT_NEAR(fraction(text("interleaved-zb", 2) + "\ngroup = 4"), 1.5 / 97.5, 1e-12);
}

// With one pipeline rank the schedule is not asked, whatever its chunks would be.
TEST(SchedulePlans, OneRankNeedsNoSchedule) {
  const Json plan = Plan("operator", "plugin = \"pipeline-dualpipe\"\ndegree = 1");
  EXPECT_EQ(plan["plan"]["chunks"], 1);
}

}  // namespace
}  // namespace shardlab
