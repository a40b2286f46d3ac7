// `shardlab simulate`, as an outsider sees it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace shardlab
