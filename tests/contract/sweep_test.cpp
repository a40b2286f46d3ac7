// `shardlab sweep` and `shardlab results`: counts, rows, formats, the same bytes for any --jobs,
// and a store that survives a kill.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/sweep_store.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char kScenario[] =
    "name = \"8B\"\naccounting = \"textbook\"\n"
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 64\n";

constexpr const char kSweep[] =
    "[sweep]\n\"strategy.tensor.degree\" = { from = 1, to = 8, times = 2 }\n"
    "\"schedule.degree\" = [1, 2, 3]\n"
    "\"strategy.zero.stage\" = [0, 1]\n\"training.micro_batch_size\" = [1, 2]\n"
    "zip = [[\"strategy.zero.stage\", \"training.micro_batch_size\"]]\n"
    "when = \"strategy.tensor.degree * schedule.degree <= 8\"\n";

class Sweeps : public ::testing::Test {
 protected:
  Sweeps() : inside_(folder_.path()) {
    WriteFile("s.toml", absl::StrCat(kScenario, kSweep));
    WriteFile("plain.toml", kScenario);
  }

  static ProgramRun Run(std::vector<std::string> args) {
    ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    return run;
  }

  // A table that takes a while: 16 x 8 x 2 x 2 combinations.
  static void WriteLarge() {
    WriteFile(
        "large.toml",
        absl::StrCat(kScenario,
                     "[sweep]\n\"hardware.nodes\" = { from = 1, to = 16, plus = 1 }\n"
                     "\"training.micro_batch_size\" = { from = 1, to = 8, plus = 1 }\n"
                     "\"strategy.tensor.degree\" = [1, 2]\n\"strategy.zero.stage\" = [0, 1]\n"));
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(Sweeps, CountsAddUpAndEveryLegalRowIsThePlan) {
  const Json document = Json::parse(Run({"sweep", "s.toml", "--format", "json"}).out);
  EXPECT_EQ(document["schema"], "shardlab.sweep/1");
  const Json& counts = document["counts"];
  // 4 x 3 x 2; of tensor x pipeline 8 x 2, 8 x 3 and 4 x 3 are ruled out; 3 divides no 32 layers.
  EXPECT_EQ(counts["considered"], 24);
  EXPECT_EQ(counts["pruned"], 6);
  EXPECT_EQ(counts["illegal"], 4);
  EXPECT_EQ(counts["evaluated"], 14);
  ASSERT_EQ(document["rows"].size(), 18u);
  EXPECT_FALSE(document["provenance"].empty());
  int not_fitting = 0;
  for (const Json& row : document["rows"]) {
    std::vector<std::string> args = {"plan", "plain.toml", "--format", "json"};
    for (const auto& [key, value] : row["keys"].items()) {
      args.push_back("--set");
      args.push_back(absl::StrCat(key, "=", value.dump()));
    }
    const ProgramRun plan = RunProgram(args);
    if (row["legal"] == 0) {
      EXPECT_EQ(plan.status, 2);
      EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("layers do not divide evenly"));
      continue;
    }
    const Json alone = Json::parse(plan.out);
    for (const char* part : {"plan", "memory", "time", "throughput", "communication"})
      EXPECT_EQ(row[part], alone[part]) << row["keys"] << part;
    not_fitting += row["memory"]["fits"] == false ? 1 : 0;
  }
  EXPECT_EQ(counts["not_fitting"], not_fitting);
}

TEST_F(Sweeps, SameBytesForAnyNumberOfThreads) {
  WriteLarge();
  for (const char* format : {"text", "jsonl", "csv"}) {
    const std::string one = Run({"sweep", "large.toml", "--jobs", "1", "--format", format}).out;
    EXPECT_EQ(one, Run({"sweep", "large.toml", "--jobs", "3", "--format", format}).out) << format;
  }
  Run({"sweep", "large.toml", "--jobs", "1", "--store", "one.db"});
  Run({"sweep", "large.toml", "--jobs", "4", "--store", "four.db"});
  EXPECT_EQ(ReadFile("one.db"), ReadFile("four.db"));
}

TEST_F(Sweeps, KilledItGoesOnWithoutLossOrDoubles) {
  WriteLarge();
  const std::string whole =
      Run({"sweep", "large.toml", "--store", "whole.db", "--format", "csv"}).out;
  std::int64_t next = 0;
  int in_the_middle = 0;
  std::mt19937 random(5);
  // As long as a whole one takes here, so that kills fall on every part of it.
  const auto begun = std::chrono::steady_clock::now();
  Run({"sweep", "large.toml", "--store", "timed.db", "--jobs", "2"});
  const auto longest =
      1 + static_cast<unsigned>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - begun)
                                    .count());
  for (int kills = 0; kills < 100; ++kills) {
    const pid_t child = fork();
    if (child == 0) {
      RunProgram({"sweep", "large.toml", "--store", "killed.db", "--jobs", "2"});
      _exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % longest));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    absl::StatusOr<SweepStore> store = SweepStore::Open("killed.db", true);
    if (!store.ok()) continue;  // killed before the file was a store
    const auto sweeps = store->List();
    ASSERT_TRUE(sweeps.ok()) << sweeps.status();
    if (sweeps->empty()) continue;
    EXPECT_EQ(sweeps->size(), 1u);
    EXPECT_GE((*sweeps)[0].next, next);
    next = (*sweeps)[0].next;
    in_the_middle += next > 0 && next < 512;
    if (next < 512) continue;
    // Whole although it was killed; the next kill is of a new one.
    EXPECT_EQ(Run({"results", "show", "killed.db", "--format", "csv"}).out, whole);
    std::filesystem::remove("killed.db");
    next = 0;
  }
  // Else nothing was tested.
  EXPECT_GT(in_the_middle, 0);
  std::cout << in_the_middle << " of 100 kills left a part of the rows, of " << longest << " ms\n";
  EXPECT_EQ(Run({"sweep", "large.toml", "--store", "killed.db", "--format", "csv"}).out, whole);
  EXPECT_EQ(Run({"results", "show", "killed.db", "--format", "csv"}).out, whole);
  EXPECT_EQ(Run({"results", "show", "killed.db", "--format", "json"}).out,
            Run({"results", "show", "whole.db", "--format", "json"}).out);
}

// The limit on a file's size stands for a full disk: the write fails in the middle of a sweep.
TEST_F(Sweeps, AFullDiskIsAnErrorAndLosesNothing) {
  WriteLarge();
  const std::string whole =
      Run({"sweep", "large.toml", "--store", "whole.db", "--format", "csv"}).out;
  const auto half = static_cast<rlim_t>(std::filesystem::file_size("whole.db") / 2);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{half, half};
    setrlimit(RLIMIT_FSIZE, &limit);
    const ProgramRun run = RunProgram({"sweep", "large.toml", "--store", "full.db"});
    _exit(run.status == 1 && run.err.rfind("error: ", 0) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "no error was told";
  {
    absl::StatusOr<SweepStore> store = SweepStore::Open("full.db", true);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto sweeps = store->List();
    ASSERT_TRUE(sweeps.ok()) << sweeps.status();
    ASSERT_EQ(sweeps->size(), 1u);
    EXPECT_GT((*sweeps)[0].next, 0);
    EXPECT_LT((*sweeps)[0].next, 512);
  }
  EXPECT_EQ(Run({"sweep", "large.toml", "--store", "full.db", "--format", "csv"}).out, whole);
}

TEST_F(Sweeps, AFolderThatIsNotThereOrNoFolderIsAnError) {
  WriteFile("file", "");
  // The last two are folders that even root cannot write to.
  for (const char* store : {"none/runs.db", "file/runs.db", ".", "/proc/runs.db", "/sys/runs.db"}) {
    const ProgramRun run = RunProgram({"sweep", "s.toml", "--store", store});
    EXPECT_EQ(run.status, 2) << store;
    EXPECT_THAT(run.err, HasSubstr("cannot be used as a store")) << store;
    EXPECT_EQ(run.out, "") << store;
  }
}

// Root writes where it likes, but to a file system mounted read-only: in a mount namespace of its
// own, where that is allowed.
TEST_F(Sweeps, AStoreInAReadOnlyFolderIsReadButNotGoneOnWith) {
  WriteLarge();
  std::filesystem::create_directory("folder");
  Run({"sweep", "large.toml", "--store", "folder/runs.db"});
  const std::string before = ReadFile("folder/runs.db");
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("folder", "folder", nullptr, MS_BIND, nullptr) != 0 ||
        mount("none", "folder", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
      _exit(77);
    const ProgramRun run = RunProgram({"sweep", "s.toml", "--store", "folder/runs.db"});
    const ProgramRun fresh = RunProgram({"sweep", "s.toml", "--store", "folder/new.db"});
    const ProgramRun shown = RunProgram({"results", "show", "folder/runs.db"});
    const bool told = run.status != 0 && run.err.rfind("error: ", 0) == 0 && fresh.status == 2 &&
                      fresh.err.rfind("error: ", 0) == 0;
    _exit(told && shown.status == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace may be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(ReadFile("folder/runs.db"), before);
}

TEST_F(Sweeps, TwoAtOnceOnOneStoreDoNotHarmEachOther) {
  WriteLarge();
  const std::string large = Run({"sweep", "large.toml", "--format", "csv"}).out;
  const std::vector<std::string> set = {"--set", "training.global_batch_size=128"};
  const std::string other = Run({"sweep", "large.toml", "--format", "csv", set[0], set[1]}).out;
  std::vector<pid_t> children;
  for (const bool first : {true, false}) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    std::vector<std::string> args = {"sweep", "large.toml", "--store", "both.db"};
    if (!first) args.insert(args.end(), set.begin(), set.end());
    _exit(RunProgram(args).status);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const auto shown = [](const char* sweep) {
    return Run({"results", "show", "both.db", "--sweep", sweep, "--format", "csv"}).out;
  };
  std::vector<std::string> both = {shown("1"), shown("2")}, expected = {large, other};
  std::sort(both.begin(), both.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(both, expected);
}

// Memory is that of the pieces on their way, not of the rows: a process with thirty times as many
// needs hardly more.
TEST_F(Sweeps, MemoryDoesNotGrowWithTheRows) {
  const auto peak = [](int batches, const std::vector<std::string>& more) {
    WriteFile(
        "grid.toml",
        absl::StrCat(
            kScenario, "[sweep]\n\"training.global_batch_size\" = { from = 8, to = ", 8 * batches,
            ", plus = 8 }\n\"training.micro_batch_size\" = { from = 1, to = 16, plus = 1 }\n",
            "\"schedule.degree\" = [1, 2]\n\"strategy.tensor.degree\" = [1, 2, 4]\n"
            "\"strategy.zero.stage\" = [0, 1, 2]\n"
            "\"strategy.checkpointing.mode\" = [\"none\", \"selective\", \"full\"]\n"));
    const pid_t child = fork();
    if (child == 0) {
      std::vector<std::string> args = {
          SHARDLAB_BINARY_DIR "/shardlab", "sweep", "grid.toml", "--jobs", "2", "--format", "csv"};
      args.insert(args.end(), more.begin(), more.end());
      std::vector<char*> argv;
      for (std::string& arg : args) argv.push_back(arg.data());
      argv.push_back(nullptr);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
      execv(argv[0], argv.data());
      _exit(1);
    }
    int status = -1;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return usage.ru_maxrss;  // kilobytes
  };
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--store", "grid.db"}}) {
    const long small = peak(2, more), large = peak(60, more);  // 1,728 and 51,840 rows
    std::cout << small / 1024 << " MB for 1,728 rows, " << large / 1024 << " MB for 51,840\n";
    // Sanitizers keep what has been freed: there both only have to end well.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // 8,192 rows at most wait to be stored, some 3 kB each.
    EXPECT_LT(large, small + 64 * 1024);
    EXPECT_LT(large, 500 * 1024);
#endif
  }
}

TEST_F(Sweeps, AResumedSweepPrintsWhatAWholeOneDoes) {
  for (const char* format : {"text", "json", "jsonl", "csv"}) {
    const std::string first = Run({"sweep", "s.toml", "--format", format}).out;
    EXPECT_EQ(Run({"sweep", "s.toml", "--store", "s.db", "--format", format}).out, first) << format;
  }
  const Json list = Json::parse(Run({"results", "s.db", "--format", "json"}).out);
  EXPECT_EQ(list["sweeps"].size(), 1u);
  EXPECT_EQ(list["sweeps"][0]["counts"]["considered"], 24);
}

TEST_F(Sweeps, AnotherScenarioIsAnotherSweepOfTheStore) {
  Run({"sweep", "s.toml", "--store", "s.db", "--documents"});
  Run({"sweep", "s.toml", "--store", "s.db", "--set", "training.global_batch_size=128"});
  const Json list = Json::parse(Run({"results", "list", "s.db", "--format", "json"}).out);
  ASSERT_EQ(list["sweeps"].size(), 2u);
  EXPECT_NE(list["sweeps"][0]["scenario_hash"], list["sweeps"][1]["scenario_hash"]);
  const Json second = Json::parse(Run({"results", "show", "s.db", "--format", "json"}).out);
  EXPECT_EQ(second["sweep"]["id"], 2);
  EXPECT_EQ(second["rows"][0]["plan.global_batch_size"], 128);
}

TEST_F(Sweeps, AFilterKeepsRowsAndCountsTheOthers) {
  WriteFile("f.toml", absl::StrCat(kScenario, kSweep,
                                   "[filter]\nkeep = \"memory.fits && plan.tensor > 1\"\n"));
  const Json document = Json::parse(Run({"sweep", "f.toml", "--format", "json"}).out);
  std::int64_t kept = 0;
  for (const Json& row : document["rows"]) {
    if (row["legal"] == 0) continue;
    ++kept;
    EXPECT_TRUE(row["memory"]["fits"].get<bool>());
    EXPECT_GT(row["plan"]["tensor"], 1);
  }
  const Json& counts = document["counts"];
  EXPECT_EQ(counts["evaluated"], 14);
  EXPECT_EQ(kept + counts["filtered"].get<std::int64_t>(), 14);
}

TEST_F(Sweeps, ResultsFiltersRowsAndCsvHasOneLineForEach) {
  Run({"sweep", "s.toml", "--store", "s.db"});
  const std::string csv =
      Run({"results", "show", "s.db", "--keep", "memory.fits == true", "--format", "csv"}).out;
  EXPECT_THAT(csv, StartsWith("combination,legal,reason,strategy.tensor.degree,schedule.degree,"));
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  const Json document = Json::parse(
      Run({"results", "show", "s.db", "--keep", "memory.fits", "--format", "json"}).out);
  EXPECT_EQ(lines.size(), document["rows"].size() + 1);
  for (const Json& row : document["rows"]) EXPECT_EQ(row["memory.fits"], true);
}

TEST_F(Sweeps, TextHasTheCountsAndTheBest) {
  const std::string text = Run({"sweep", "s.toml"}).out;
  EXPECT_THAT(text, HasSubstr("24 combinations: 4 illegal, 6 ruled out, 14 evaluated"));
  EXPECT_THAT(text, HasSubstr("that fits: --set"));
}

}  // namespace
}  // namespace shardlab
