// `shardlab lesson` as it is typed, with progress in a folder of its own.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "gtest/gtest.h"
#include "lessons/course.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

class LessonCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("shardlab-lessons-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    setenv("XDG_DATA_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { fs::remove_all(folder_); }

  int Run(std::vector<std::string> args, const std::string& input = "") {
    args.insert(args.begin(), "lesson");
    args.insert(args.end(), {"--plugins", SHARDLAB_BINARY_DIR "/plugins", "--lessons",
                             SHARDLAB_SOURCE_DIR "/lessons"});
    std::ostringstream out, err;
    std::istringstream in(input);
    Terminal terminal;
    terminal.width = 80;
    terminal.in = &in;
    const int status = RunShardlab(args, out, err, terminal);
    out_ = out.str();
    err_ = err.str();
    return status;
  }
  Json Ask(std::vector<std::string> args) {
    args.insert(args.end(), {"--format", "json"});
    EXPECT_EQ(Run(args), 0) << err_;
    return Json::parse(out_);
  }

  fs::path folder_;
  std::string out_, err_;
};

TEST_F(LessonCommandTest, ListsAndRemembers) {
  Json list = Ask({"list"});
  EXPECT_EQ(list.at("schema"), "shardlab.lesson/1");
  EXPECT_EQ(list.at("steps").size(), 22u);
  EXPECT_EQ(list.at("minutes_left"), list.at("minutes"));
  EXPECT_EQ(Ask({"check", "one-gpu-70b", "15"}).at("correct"), true);
  list = Ask({"list"});
  EXPECT_EQ(list.at("steps")[0].at("done"), true);
  EXPECT_EQ(list.at("next"), "floor-405b");
  EXPECT_EQ(Ask({"reset"}).at("done"), 0);
}

TEST_F(LessonCommandTest, HintAfterTwoAndWorkedAnswerAfterThree) {
  Json graded = Ask({"check", "drill-zero3-state", "999"});
  EXPECT_TRUE(graded.at("hint").is_null());
  EXPECT_TRUE(graded.at("expected_shown").is_null());
  graded = Ask({"check", "drill-zero3-state", "999"});
  EXPECT_TRUE(graded.at("hint").is_string());
  EXPECT_TRUE(graded.at("worked").is_null());
  graded = Ask({"check", "drill-zero3-state", "999"});
  EXPECT_TRUE(graded.at("worked").is_string());
  EXPECT_EQ(graded.at("expected_shown"), "17.638 GB");
  EXPECT_EQ(Ask({"check", "drill-zero3-state", "16.43"}).at("slip"), "gib");
  EXPECT_EQ(Ask({"check", "drill-zero3-state", "16.43 GiB"}).at("correct"), true);
  EXPECT_EQ(Ask({"check", "drill-zero3-state", "2.205"}).at("slip"), "only_weights");
}

TEST_F(LessonCommandTest, AnAnswerMayBeginWithADash) {
  EXPECT_EQ(Ask({"check", "drill-megatron-tp", "--tensor-model-parallel-size=8"}).at("correct"),
            true);
  EXPECT_EQ(Ask({"check", "drill-megatron-tp", "--tp"}).at("slip"), "short");
  EXPECT_EQ(Ask({"check", "drill-megatron-tp", "--tensor-parallel-size  8"}).at("slip"),
            "inference_server");
  EXPECT_EQ(Ask({"check", "one-gpu-70b", "-15"}).at("correct"), false);
  EXPECT_EQ(Ask({"check", "one-gpu-70b", ""}).at("correct"), false);
}

TEST_F(LessonCommandTest, TheSameSeedAsksTheSame) {
  const std::vector<std::string> args = {"check", "drill-bubble", "--seed", "7"};
  EXPECT_EQ(Ask(args).at("text"), Ask(args).at("text"));
  EXPECT_EQ(Run({"check", "drill-bubble", "1", "--question", "3", "--format", "json"}), 2);
}

TEST_F(LessonCommandTest, KnobsAreTurnedRefusedAndTurnedBack) {
  Json state = Ask({"set", "fsdp-32", "hardware.devices=64", "training.global_batch_size=64"});
  EXPECT_EQ(state.at("gauges").at("fits"), false);
  EXPECT_EQ(Ask({"state", "fsdp-32"}).at("set").size(), 2u);
  EXPECT_EQ(Ask({"set", "fsdp-32"}).at("set").size(), 0u);
  EXPECT_EQ(Run({"set", "fsdp-32", "model.layers=4"}), 2);
  EXPECT_NE(err_.find("does not change"), std::string::npos) << err_;
  EXPECT_EQ(Run({"set", "pp-split", "schedule.degree=32"}), 2);
  EXPECT_EQ(Run({"show", "no-such-step"}), 2);
  EXPECT_EQ(Run({"dance"}), 2);
}

TEST_F(LessonCommandTest, ABrokenStepIsRepaired) {
  EXPECT_EQ(Ask({"state", "break-recompute-off"}).at("goal").at("reached"), false);
  EXPECT_EQ(
      Ask({"check", "break-recompute-off", "--set", "training.micro_batch_size=1"}).at("correct"),
      true);
}

TEST_F(LessonCommandTest, AJobIsSubmittedAndReplanned) {
  Json answer = Ask({"submit", "plan-3d-70b"});
  EXPECT_EQ(answer.at("accepted"), false);
  EXPECT_NE(answer.at("reason").get<std::string>().find("does not fit"), std::string::npos);
  Ask({"set", "plan-3d-70b", "strategy.zero.stage=1"});
  answer = Ask({"submit", "plan-3d-70b"});
  EXPECT_EQ(answer.at("accepted"), true);
  EXPECT_EQ(answer.at("goal").at("reached"), true);
  EXPECT_EQ(answer.at("done"), true);

  answer = Ask({"replan", "playground-replan", "strategy.tensor.degree=8",
                "strategy.tensor.sequence_parallel=true", "schedule.degree=2",
                "strategy.zero.stage=1", "strategy.checkpointing.mode=none", "--steps", "100"});
  EXPECT_EQ(answer.at("job").at("steps"), 100);
  EXPECT_NEAR(answer.at("job").at("clock_seconds").get<double>(), 1870.1 + 169.4, 0.1);
  EXPECT_EQ(answer.at("job").at("tokens"), 100.0 * 128 * 4096);
  EXPECT_EQ(answer.at("accepted"), true) << answer.at("reason");
  EXPECT_NEAR(answer.at("cost_seconds").get<double>(), 169.4, 0.1);
  EXPECT_EQ(answer.at("break_even_steps"), 109.0);
  EXPECT_EQ(answer.at("done"), true);
  answer = Ask({"replan", "playground-replan", "schedule.degree=1", "--event", "lost-server"});
  EXPECT_EQ(answer.at("accepted"), false);  // three replicas do not divide 128
  const std::string reason = answer.at("reason");
  EXPECT_NE(reason.find("126"), std::string::npos) << reason;
  EXPECT_NE(reason.find("129"), std::string::npos) << reason;
}

TEST_F(LessonCommandTest, UnreadableProgressIsPutAside) {
  Ask({"check", "one-gpu-70b", "15"});
  const fs::path file = folder_ / "shardlab/lessons.json";
  ASSERT_TRUE(fs::exists(file));
  for (const char* text :
       {"", "{", "[]", "{\"schema\":\"shardlab.progress/1\",\"steps\":{\"x\":3}}"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(Run({"list"}), 0);
    EXPECT_TRUE(fs::exists(file.string() + ".unreadable")) << text;
  }
}

TEST_F(LessonCommandTest, NothingIsWiderThanTheTerminal) {
  const auto narrow = [&](const std::string& what) {
    std::istringstream lines(out_);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80u) << what << ": " << line;
  };
  Run({"list"});
  narrow("list");
  for (const LessonStep& step : Course()) {
    EXPECT_EQ(Run({"show", step.slug}), 0) << err_;
    narrow(step.slug);
    EXPECT_EQ(Run({"state", step.slug}), 0) << err_;
    narrow(step.slug);
  }
}

// Everything that a learner types through the whole course, from a pipe.
TEST_F(LessonCommandTest, AStepIsDoneFromAPipe) {
  EXPECT_EQ(Run({"run"}, "letters\n14\n15\n"), 0);
  EXPECT_NE(out_.find("rounded down"), std::string::npos) << out_;
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
  EXPECT_EQ(Run({"run"}, "82"), 0);
  EXPECT_EQ(Run({"run", "9"}, "4.43\nstate\n1-\n1-\n"), 0);
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
  EXPECT_EQ(Run({"run", "16"}, "help\nset strategy.zero.stage=1\nsubmit\n"), 0);
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
  EXPECT_EQ(Run({"run", "zero-wire"}, ""), 0);  // the input ends at once
  EXPECT_EQ(out_.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace shardlab
