// `shardlab simulate`, as an outsider sees it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "support/plugins.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Scenario(const std::string& name) {
  return absl::StrCat(SHARDLAB_SOURCE_DIR, "/scenarios/", name, ".toml");
}

ProgramRun RunOn(const std::string& command, const std::string& scenario,
                 std::vector<std::string> more = {}) {
  more.insert(more.begin(), {command, Scenario(scenario)});
  return RunProgram(more);
}

Json Document(const std::string& command, const std::string& scenario,
              std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--format", "json"});
  const ProgramRun run = RunOn(command, scenario, more);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? Json::parse(run.out) : Json();
}

TEST(SimulateCommand, KeysAndTypes) {
  const Json doc = Document("simulate", "llama3.1-70b-32xh100", {"--events"});
  EXPECT_EQ(doc["schema"], "shardlab.simulation/1");
  EXPECT_EQ(doc["scenario"], "Llama 3.1 70B on 32 H100: TP8 PP2 DP2, ZeRO-1");
  EXPECT_EQ(doc["pipeline"], 2);
  EXPECT_EQ(doc["micro_batches"], 64);
  EXPECT_EQ(doc["chunks"], 1);
  const double step = Document("plan", "llama3.1-70b-32xh100")["time"]["step_seconds"];
  EXPECT_NEAR(doc["makespan_seconds"].get<double>(), step, 1e-9 * step);
  EXPECT_NEAR(doc["evaluation"]["difference"].get<double>(), 0, 1e-9);
  EXPECT_EQ(doc["evaluation"]["approximate"], false);
  ASSERT_EQ(doc["ranks"].size(), 2u);
  const Json& rank = doc["ranks"][0];
  EXPECT_EQ(rank["rank"], 0);
  EXPECT_NEAR(rank["busy_seconds"].get<double>() + rank["idle_seconds"].get<double>(), step,
              1e-9 * step);
  EXPECT_EQ(rank["peak_in_flight_chunks"], 2);
  EXPECT_EQ(rank["peak_in_flight_chunks_until_i"], 2);
  EXPECT_NEAR(rank["peak_bytes"].get<double>(), 55.505e9, 1e6);
  EXPECT_GT(rank["peak_at_seconds"].get<double>(), 0);
  std::set<std::string> kinds;
  double last = 0;
  for (const Json& event : doc["events"]) {
    kinds.insert(event["kind"]);
    EXPECT_LE(event["start_seconds"].get<double>(), event["end_seconds"].get<double>());
    if (event["stream"] == "compute") last = std::max(last, event["end_seconds"].get<double>());
  }
  EXPECT_LE(last, step * (1 + 1e-9));
  EXPECT_EQ(kinds, (std::set<std::string>{"F", "B", "reduce-scatter"}));
  EXPECT_FALSE(Document("simulate", "llama3.1-70b-32xh100").contains("events"));
}

TEST(SimulateCommand, MessagesAreSentAndReceived) {
  const Json doc =
      Document("simulate", "llama3.1-70b-32xh100", {"--events", "--set", "accounting=operator"});
  int sends = 0, receives = 0;
  for (const Json& event : doc["events"]) {
    sends += event["kind"] == "SEND";
    receives += event["kind"] == "RECV";
    if (event["kind"] == "SEND") {
      EXPECT_EQ(event["stream"], "send/recv");
    }
  }
  EXPECT_EQ(sends, 128);
  EXPECT_EQ(receives, 128);
}

TEST(SimulateCommand, TheChartFillsTheTerminalAndHasColourOnOneOnly) {
  const ProgramRun run = RunOn("simulate", "llama3.1-70b-32xh100", {"--gantt"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("plan says the same"));
  EXPECT_THAT(run.out, HasSubstr("most memory 55.505 GB on pipeline rank 0"));
  EXPECT_THAT(run.out, HasSubstr("rank 0   F"));
  EXPECT_THAT(run.out, HasSubstr("2 in flight"));
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
}

TEST(SimulateCommand, WhatOnlyOneOfThemCanKnowIsSaid) {
  const ProgramRun run = RunOn("simulate", "llama3.1-70b-32xh100",
                               {"--straggler", "1=1.5", "--jitter", "0.02", "--seed", "7"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("without stragglers and jitter"));
  const Json doc = Document("simulate", "llama3.1-70b-32xh100", {"--straggler", "1=1.5"});
  EXPECT_EQ(doc["evaluation"]["simulated_alone"], Json({"stragglers"}));
  EXPECT_GT(doc["evaluation"]["difference"].get<double>(), 0.4);
}

TEST(SimulateCommand, ATraceHasTracksArrowsAndCounters) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "shardlab_simulate_trace.json").string();
  const auto trace = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--trace", file, "--set", "accounting=operator"});
    const ProgramRun run = RunOn("simulate", "llama3.1-70b-32xh100", more);
    EXPECT_EQ(run.status, 0) << run.err;
    std::ifstream in(file);
    return Json::parse(in);
  };
  const auto devices = [](const Json& doc) {
    std::set<int> pids;
    for (const Json& event : doc["traceEvents"]) pids.insert(event["pid"].get<int>());
    return pids;
  };
  const Json one = trace({});
  EXPECT_EQ(devices(one), (std::set<int>{0, 16}));
  std::map<std::string, int> phases;
  std::set<std::string> tracks, accounts;
  for (const Json& event : one["traceEvents"]) {
    ++phases[event["ph"]];
    if (event["name"] == "thread_name") tracks.insert(event["args"]["name"]);
    if (event["ph"] == "C") {
      for (const auto& [account, bytes] : event["args"].items()) accounts.insert(account);
    }
  }
  EXPECT_EQ(phases["s"], 128);
  EXPECT_EQ(phases["f"], 128);
  EXPECT_EQ(accounts.size(), 8u);
  EXPECT_EQ(tracks.count("compute") + tracks.count("send") + tracks.count("recv"), 3u);
  EXPECT_EQ(one["otherData"]["scenario"], "Llama 3.1 70B on 32 H100: TP8 PP2 DP2, ZeRO-1");
  EXPECT_EQ(devices(trace({"--devices", "3"})), (std::set<int>{0, 1, 2}));
  const Json all = trace({"--devices", "all"});
  EXPECT_EQ(devices(all).size(), 32u);
  EXPECT_EQ(trace({"--detail"})["traceEvents"].size() > 20 * one["traceEvents"].size(), true);
  std::filesystem::remove(file);
}

// The classroom plays with F : I : W = 1 : 1 : 1 and equal stages, so each answer is a formula.
TEST(SimulateCommand, WhatShrinksTheBubbleIsComputed) {
  const std::vector<std::string> batch = {"--set", "training.global_batch_size=8"};
  const Json doc = Document("simulate", "70b-tp8-pp4", batch);
  const double p = 4, m = 8;
  EXPECT_NEAR(doc["bubble_fraction"], (p - 1) / (m + p - 1), 1e-9);
  std::map<std::string, Json> by;
  double last = 0;
  for (const Json& less : doc["less_bubble"]) {
    by[less["by"]] = less;
    EXPECT_GE(less["bubble_fraction"], last) << "the smallest first";
    last = less["bubble_fraction"];
    EXPECT_LT(last, 0.99 * doc["bubble_fraction"].get<double>());
    // What is said of it is what comes out.
    std::vector<std::string> with = batch;
    for (const Json& set : less["set"]) with.insert(with.end(), {"--set", set});
    const Json played = Document("simulate", "70b-tp8-pp4", with);
    EXPECT_DOUBLE_EQ(played["bubble_fraction"], less["bubble_fraction"]);
    EXPECT_DOUBLE_EQ(played["makespan_seconds"], less["step_seconds"]);
  }
  ASSERT_EQ(by.count("more micro-batches"), 1u);
  EXPECT_EQ(by["more micro-batches"]["set"], Json({"training.global_batch_size=16"}));
  EXPECT_NEAR(by["more micro-batches"]["bubble_fraction"], (p - 1) / (2 * m + p - 1), 1e-9);
  ASSERT_EQ(by.count("another schedule"), 1u);
  // Interleaved in 4 chunks and with weight gradients put off: idle (p - 1)(F + I - W)/v.
  const double idle = (p - 1) / 3 / 4;
  EXPECT_LE(by["another schedule"]["bubble_fraction"].get<double>(), idle / (m + idle) + 1e-9);
  EXPECT_EQ(by.count("more chunks"), 0u) << "1F1B has one";

  const ProgramRun text = RunOn("simulate", "70b-tp8-pp4", batch);
  EXPECT_THAT(text.out, HasSubstr("less bubble than 27.3 % by"));
  EXPECT_THAT(text.out, HasSubstr("--set training.global_batch_size=16"));
  // Nothing to shrink without a pipeline.
  EXPECT_EQ(Document("simulate", "8b-zero1-fits")["less_bubble"], Json::array());
}

TEST(SimulateCommand, ContentionSaysWhatItLeavesOut) {
  const Json with = Document("simulate", "405b-32-gpus-operator", {"--contention"});
  EXPECT_THAT(with["options"]["contention_model"].get<std::string>(), HasSubstr("first order"));
  EXPECT_THAT(with["options"]["contention_model"].get<std::string>(), HasSubstr("left out"));
  EXPECT_EQ(Document("simulate", "405b-32-gpus-operator")["options"]["contention_model"], "none");
  EXPECT_THAT(RunOn("simulate", "405b-32-gpus-operator", {"--contention"}).out,
              HasSubstr("contention, first order"));
}

TEST(SimulateCommand, BothBubblesAreNamed) {
  const Json doc = Document("simulate", "70b-tp8-pp4");
  double idle = 0, own = 0;
  for (const Json& rank : doc["ranks"]) {
    idle = std::max(idle, rank["idle_seconds"].get<double>());
    own = std::max(own, rank["own_bubble_seconds"].get<double>());
  }
  EXPECT_GT(own, 0);
  EXPECT_EQ(doc["max_idle_seconds"], idle);
  EXPECT_EQ(doc["max_own_bubble_seconds"], own);
}

}  // namespace
}  // namespace shardlab
