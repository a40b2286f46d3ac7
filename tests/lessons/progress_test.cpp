// Progress is never lost: not by a crash, a broken file, a home that cannot be written, or two
// learners at once.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "io/lesson_progress.h"
#include "lessons/typed.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST_F(LessonCommandTest, UnreadableProgressIsPutAside) {
  Ask({"check", "one-gpu-70b", "15"});
  ASSERT_TRUE(fs::exists(File()));
  std::set<std::string> kept;
  for (const char* text :
       {"", "{", "[]", "\xff", "{\"schema\":\"shardlab.progress/1\",\"steps\":{\"x\":3}}",
        "{\"schema\":\"shardlab.progress/2\",\"steps\":{}}",
        "{\"schema\":\"shardlab.progress/1\",\"steps\":{\"x\":{\"job\":{\"tokens\":\"many\"}}}}"}) {
    std::ofstream(File()) << text;
    EXPECT_EQ(Run({"list"}), 0) << text;
    EXPECT_NE(err_.find("cannot be read"), std::string::npos) << err_;
    EXPECT_NE(err_.find(".unreadable"), std::string::npos) << err_;
    EXPECT_FALSE(fs::exists(File())) << text;
    kept.insert(text);
  }
  // Each of them is still there.
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(File().parent_path()))
    if (entry.path().string().find(".unreadable") != std::string::npos)
      found.insert(TextOf(entry.path()));
  EXPECT_EQ(found, kept);
}

// Killed at any moment, the file is a whole one: the one before or the one after.
TEST_F(LessonCommandTest, AKilledProgramLeavesAWholeFile) {
  Diagnostics ignored;
  fs::create_directories(File().parent_path());
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      Diagnostics told;
      LessonProgress progress = ReadProgress(File().string(), told);
      for (int i = 0;; ++i) {
        progress.At("step-" + std::to_string(i % 50))["tries"] = {{"1", i}};
        WriteProgress(&progress, told);
      }
    }
    usleep(2000 + 1500 * round);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    Diagnostics told;
    const LessonProgress read = ReadProgress(File().string(), told);
    EXPECT_TRUE(told.empty());
    // The lock of the killed one is nobody's.
    LessonProgress next = read;
    next.At("after")["done"] = true;
    EXPECT_TRUE(WriteProgress(&next, told));
  }
}

TEST_F(LessonCommandTest, TwoLearnersKeepBothOfTheirSteps) {
  Diagnostics told;
  LessonProgress one = ReadProgress(File().string(), told);
  LessonProgress two = ReadProgress(File().string(), told);
  one.At("first")["done"] = true;
  one.At("shared")["passed"] = {"1"};
  EXPECT_TRUE(WriteProgress(&one, told));
  two.At("second")["done"] = true;
  two.At("shared")["passed"] = {"2"};
  EXPECT_TRUE(WriteProgress(&two, told));
  const LessonProgress both = ReadProgress(File().string(), told);
  EXPECT_TRUE(both.Done("first"));
  EXPECT_TRUE(both.Done("second"));
  EXPECT_EQ(both.steps.at("shared").at("passed"), nlohmann::ordered_json({"1", "2"}));
  // What one has read and not touched does not undo the other's.
  one.At("third")["done"] = true;
  EXPECT_TRUE(WriteProgress(&one, told));
  EXPECT_TRUE(ReadProgress(File().string(), told).Done("second"));
  EXPECT_TRUE(told.empty());
}

TEST_F(LessonCommandTest, ManyWritersAtOnceLoseNothing) {
  constexpr int kWriters = 6, kSteps = 12;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    children.push_back(fork());
    if (children.back() == 0) {
      Diagnostics told;
      for (int i = 0; i < kSteps; ++i) {
        LessonProgress progress = ReadProgress(File().string(), told);
        progress.At(std::to_string(writer) + "-" + std::to_string(i))["done"] = true;
        WriteProgress(&progress, told);
      }
      _exit(told.empty() ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Diagnostics told;
  EXPECT_EQ(ReadProgress(File().string(), told).steps.size(),
            static_cast<std::size_t>(kWriters * kSteps));
}

// "submit", "check" and all others go on where nothing can be kept, and say so.
TEST_F(LessonCommandTest, AHomeThatCannotBeWrittenIsTold) {
  std::ofstream(folder_.string()) << "no folder";  // root may write into any that is one
  EXPECT_EQ(Run({"check", "one-gpu-70b", "15"}), 0);
  EXPECT_NE(out_.find("right"), std::string::npos) << out_;
  EXPECT_NE(err_.find("progress is not kept"), std::string::npos) << err_;
  EXPECT_EQ(Run({"list"}), 0);
  EXPECT_EQ(TextOf(folder_), "no folder");
  EXPECT_EQ(Run({"run", "9"}, "4.43\nset strategy.tensor.degree=8\n"), 0);
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
}

TEST_F(LessonCommandTest, WhereProgressIsKept) {
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  unsetenv("XDG_DATA_HOME");
  setenv("HOME", folder_.c_str(), 1);
  EXPECT_EQ(ProgressPath(), folder_.string() + "/.local/share/shardlab/lessons.json");
  EXPECT_EQ(Ask({"check", "one-gpu-70b", "15"}).at("done"), true);
  EXPECT_TRUE(fs::exists(folder_ / ".local/share/shardlab/lessons.json"));
  setenv("XDG_DATA_HOME", "relative", 1);  // the standard: is ignored
  EXPECT_EQ(ProgressPath(), folder_.string() + "/.local/share/shardlab/lessons.json");
  unsetenv("XDG_DATA_HOME");
  unsetenv("HOME");
  EXPECT_EQ(ProgressPath(), "");
  EXPECT_EQ(Run({"check", "one-gpu-70b", "15"}), 0);
  EXPECT_NE(err_.find("neither XDG_DATA_HOME nor HOME is set"), std::string::npos) << err_;
  setenv("HOME", before.c_str(), 1);
}

TEST_F(LessonCommandTest, AResetForgetsAndASettingIsTakenBack) {
  Ask({"check", "one-gpu-70b", "15"});
  Ask({"set", "fsdp-32", "training.sequence_length=2048"});
  EXPECT_EQ(Ask({"state", "fsdp-32"}).at("set").size(), 1u);
  Ask({"set", "fsdp-32"});
  EXPECT_EQ(Ask({"state", "fsdp-32"}).at("set").size(), 0u);
  EXPECT_EQ(Ask({"reset"}).at("done"), 0);
  EXPECT_EQ(Ask({"list"}).at("done"), 0);
}

}  // namespace
}  // namespace shardlab
