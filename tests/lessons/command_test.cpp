// `shardlab lesson` as it is typed, with progress in a folder of its own.

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "io/lesson_mix.h"
#include "io/lesson_question.h"
#include "lessons/course.h"
#include "lessons/typed.h"

namespace shardlab {
namespace {

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

TEST_F(LessonCommandTest, AnAnswerMayStandBehindTheOptions) {
  const Json asked = Ask({"check", "drill-megatron-tp", "--question", "3"});
  EXPECT_TRUE(asked.at("correct").is_null());
  EXPECT_EQ(Ask({"check", "drill-megatron-tp", "--question", "3", "none"}).at("correct"), true);
  EXPECT_EQ(Ask({"check", "one-gpu-70b", "--question", "1", "14"}).at("slip"), "rounded_down");
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
  EXPECT_EQ(answer.at("done"), false);  // something must have happened to the job as well
  answer = Ask({"replan", "playground-replan", "schedule.degree=1", "--event", "lost-server"});
  EXPECT_EQ(answer.at("accepted"), false);  // three replicas do not divide 128
  const std::string reason = answer.at("reason");
  EXPECT_NE(reason.find("126"), std::string::npos) << reason;
  EXPECT_NE(reason.find("129"), std::string::npos) << reason;
  const std::vector<std::string> fsdp = {"replan",
                                         "playground-replan",
                                         "--event",
                                         "lost-server",
                                         "schedule.degree=1",
                                         "strategy.tensor.degree=1",
                                         "strategy.tensor.sequence_parallel=false",
                                         "strategy.zero.stage=3",
                                         "strategy.checkpointing.mode=full",
                                         "training.global_batch_size=120"};
  std::vector<std::string> worse = fsdp;  // TP8 FSDP3 fits, and waits for its gathers
  worse[5] = "strategy.tensor.degree=8";
  worse[6] = "strategy.tensor.sequence_parallel=true";
  worse[8] = "strategy.checkpointing.mode=none";
  worse.back() = "training.global_batch_size=129";
  answer = Ask(worse);
  EXPECT_EQ(answer.at("accepted"), true) << answer.at("reason");
  EXPECT_EQ(answer.at("goal").at("reached"), false);
  EXPECT_EQ(answer.at("done"), false);
  answer = Ask(fsdp);
  EXPECT_EQ(answer.at("accepted"), true) << answer.at("reason");
  EXPECT_EQ(answer.at("goal").at("reached"), true) << answer.at("goal");
  EXPECT_EQ(answer.at("done"), true);
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
    EXPECT_EQ(Run({"show", step.slug, "--figures"}), 0) << err_;
    narrow(step.slug);
    EXPECT_EQ(Run({"run", step.slug}, "help\nskip\nskip\nskip\nskip\nskip\nquit\n"), 0) << err_;
    narrow(step.slug);
  }
}

// What is typed is answered from a pipe as from a keyboard.
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

// `set` makes a draft, `replan` alone applies it; a job that goes on as it was has no pause.
TEST_F(LessonCommandTest, ADraftIsAppliedAndAnUnchangedJobGoesOn) {
  Json answer = Ask({"replan", "22", "--steps", "10"});
  EXPECT_EQ(answer.at("cost_seconds"), 0.0);
  EXPECT_TRUE(answer.at("changes").empty());
  EXPECT_EQ(answer.at("job").at("steps"), 10);
  EXPECT_NEAR(answer.at("job").at("clock_seconds").get<double>(), 187.0, 0.1);
  Ask({"set", "22", "strategy.tensor.degree=8", "strategy.tensor.sequence_parallel=true",
       "schedule.degree=2", "strategy.zero.stage=1", "strategy.checkpointing.mode=none"});
  answer = Ask({"replan", "22"});
  EXPECT_NEAR(answer.at("cost_seconds").get<double>(), 169.4, 0.1);
  EXPECT_EQ(answer.at("goal").at("reached"), true);
  ASSERT_EQ(answer.at("changes").size(), 5u) << answer.at("changes");
  EXPECT_EQ(answer.at("changes")[0].at("key"), "strategy.tensor.degree");
  EXPECT_EQ(answer.at("changes")[0].at("from"), 1);
  EXPECT_EQ(answer.at("changes")[0].at("to"), 8);
  EXPECT_EQ(Run({"replan", "22", "strategy.checkpointing.mode=full"}), 0);
  EXPECT_NE(out_.find("changes: recomputation none -> full"), std::string::npos) << out_;
}

// An illegal setting is told, and does not stand in the way of those that follow.
TEST_F(LessonCommandTest, ARefusedSettingIsNoEnd) {
  EXPECT_EQ(Run({"run", "plan-3d-70b"},
                "set schedule.degree=32\nset nonsense\nset strategy.zero.stage=1\nsubmit\n"),
            0);
  EXPECT_NE(out_.find("no  "), std::string::npos) << out_;
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
}

// Knobs have numbers of any length, and where one ends is no wrong answer.
TEST_F(LessonCommandTest, KnobsAreTurnedToTheirEndsAndNoFurther) {
  EXPECT_EQ(Run({"run", "3"}, "1+\n1-\n1-\n9+\n0+\nquit\n"), 0);
  EXPECT_NE(out_.find("knob 1 has no value below this one"), std::string::npos) << out_;
  EXPECT_NE(out_.find("there is no knob 9, only 1 to 3"), std::string::npos) << out_;
  EXPECT_NE(out_.find("there is no knob 0"), std::string::npos) << out_;
  EXPECT_EQ(Ask({"state", "3"}).at("set")[0], "strategy.zero.stage=0");
  EXPECT_EQ(Ask({"check", "3", "1"}).at("tries"), 1);
  EXPECT_EQ(Run({"run", "17"}, "10+\nquit\n"), 0);
  EXPECT_EQ(Ask({"state", "17"}).at("set")[0], "strategy.checkpointing.mode=full") << out_;
}

TEST_F(LessonCommandTest, ALineMayTurnSeveralKnobs) {
  EXPECT_EQ(Run({"run", "3"}, "1+ 1+\n1+ 99999999999999999999+\nquit\n"), 0);
  EXPECT_NE(out_.find("there is no knob"), std::string::npos) << out_;
  EXPECT_EQ(Ask({"state", "3"}).at("set")[0], "strategy.zero.stage=3") << out_;
  EXPECT_EQ(Ask({"check", "3", "1"}).at("tries"), 1);
}

TEST_F(LessonCommandTest, AJobRunsAWholeNumberOfSteps) {
  EXPECT_EQ(Run({"replan", "22", "--steps", "-1"}), 2);
  EXPECT_NE(err_.find("--steps is 0 or more, not -1"), std::string::npos) << err_;
  EXPECT_EQ(Run({"replan", "22", "--steps", "1000000001"}), 2);
  EXPECT_NE(err_.find("at most 1,000,000,000 steps"), std::string::npos) << err_;
  EXPECT_EQ(Run({"run", "22"}, "replan steps abc\nreplan steps 1e5\nquit\n"), 0);
  EXPECT_NE(out_.find("\"abc\" is no KEY=VALUE"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\"1e5\" is no KEY=VALUE"), std::string::npos) << out_;
  const Json job = Ask({"replan", "22", "--steps", "1000000000"}).at("job");
  EXPECT_EQ(job.at("steps"), 1000000000);
}

// Compute and traffic of a step side by side. ZeRO-3 over 32 GPUs hides behind compute on a network
// of whole servers, and what a single port cannot hide comes behind it.
TEST_F(LessonCommandTest, LanesShowWhatTrafficHides) {
  const Json rail = Ask({"state", "zero-wire"}).at("gauges");
  EXPECT_EQ(rail.at("exposed_seconds"), 0);
  EXPECT_NEAR(rail.at("hidden_seconds").get<double>(), 1.025, 1e-3);
  const Json flat = Ask({"set", "zero-wire", "hardware.network=flat"}).at("gauges");
  EXPECT_NEAR(flat.at("compute_seconds").get<double>(), 3.506, 1e-3);
  EXPECT_NEAR(flat.at("hidden_seconds").get<double>() + flat.at("exposed_seconds").get<double>(),
              8.202, 1e-3);
  EXPECT_EQ(Run({"state", "zero-wire"}), 0);
  EXPECT_NE(out_.find("traffic ==="), std::string::npos) << out_;
  EXPECT_NE(out_.find("!!! 8.202 s"), std::string::npos) << out_;
}

// Blocks of step 19: 1.7113 GB each while they are whole, beside 41.786 GB.
TEST_F(LessonCommandTest, WrappingMoreBlocksNeedsMoreAtOnce) {
  const std::string one = Ask({"state", "fsdp-code"}).at("live");
  EXPECT_NE(one.find("1 of the 80 blocks: 1.7113 GB"), std::string::npos) << one;
  const std::string all = Ask({"set", "19", "strategy.fsdp.blocks_per_unit=80"}).at("live");
  EXPECT_NE(all.find("80 of the 80 blocks: 136.90 GB while it is whole,\n178.69 GB"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("range(0, len(layers), 80)"), std::string::npos) << all;
}

TEST_F(LessonCommandTest, AGuessComesFirstAndIsNotGraded) {
  EXPECT_EQ(Ask({"show", "9"}).at("predict").at("choices").size(), 3u);
  EXPECT_EQ(Run({"run", "9"}, "c\n4.43\nset strategy.tensor.degree=8\n"), 0);
  const std::size_t guess = out_.find("your guess: about 7 times as long");
  const std::size_t told = out_.find("2.191 times as long on this network");
  ASSERT_NE(guess, std::string::npos) << out_;
  ASSERT_NE(told, std::string::npos) << out_;
  EXPECT_LT(guess, told);
  EXPECT_LT(told, out_.find("sequences"));  // the text follows
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
}

TEST_F(LessonCommandTest, TheMixAsksFiveQuestionsOfTheDrills) {
  std::set<std::string> texts, others, drills;
  for (int question = 1; question <= 5; ++question) {
    const std::vector<std::string> args = {
        "check", "cheat-sheet", "--question", std::to_string(question), "--seed", "3"};
    const Json asked = Ask(args);
    EXPECT_EQ(asked, Ask(args));
    EXPECT_FALSE(asked.at("text").get<std::string>().empty());
    texts.insert(asked.at("text"));
    drills.insert(asked.at("from"));
    std::vector<std::string> other = args;
    other.back() = "4";
    others.insert(Ask(other).at("text"));
  }
  EXPECT_EQ(texts.size(), 5u);
  EXPECT_NE(texts, others);
  for (const std::string& slug : drills)
    EXPECT_TRUE(slug == "drill-zero3-state" || slug == "drill-bubble" ||
                slug == "drill-megatron-tp")
        << slug;
  EXPECT_EQ(Run({"check", "cheat-sheet", "1", "--question", "6"}), 2);
}

// The right answers of a mix, asked of the drills that its questions come from.
TEST_F(LessonCommandTest, TheMixIsGradedAsTheDrillsAre) {
  const LessonStep& sheet = StepNamed("cheat-sheet");
  std::string typed;
  const std::vector<MixedQuestion> mix = DrawMix(Course(), sheet, 5);
  ASSERT_EQ(mix.size(), 5u);
  for (const MixedQuestion& one : mix)
    typed += AskQuestion(Plugins(), *one.step, one.question, one.seed).expected_shown + "\n";
  EXPECT_EQ(Run({"run", "cheat-sheet", "--seed", "5"}, "wrong\n" + typed), 0);
  EXPECT_NE(out_.find("This step is done"), std::string::npos) << out_;
}

TEST_F(LessonCommandTest, APlanOfTheFrontIsLoaded) {
  const Json front = Ask({"show", "plan-3d-70b"}).at("front");
  int best = 0, legal = 0;
  std::string refused;
  for (std::size_t i = 0; i < front.at("plans").size(); ++i) {
    const Json& plan = front.at("plans")[i];
    legal += plan.at("legal") == true ? 1 : 0;
    if (plan.at("legal") == false) refused = std::to_string(i + 1);
    if (plan.at("best") == false) continue;
    ++best;
    const Json state = Ask({"set", "plan-3d-70b", "load", std::to_string(i + 1)});
    EXPECT_EQ(state.at("gauges").at("step_seconds"), plan.at("x")) << plan;
    EXPECT_EQ(state.at("gauges").at("headroom_fraction"), plan.at("y")) << plan;
    for (const Json& other : front.at("plans")) {
      if (other.at("fits") == false) continue;
      EXPECT_FALSE(other.at("x") < plan.at("x") && other.at("y") > plan.at("y")) << plan << other;
    }
  }
  EXPECT_EQ(legal, 70);  // of the course
  EXPECT_GE(best, 2);
  for (const std::string& number :
       {refused, std::string("0"), std::string("999"), std::string("x")})
    EXPECT_EQ(Run({"set", "plan-3d-70b", "load", number}), 2) << number;
  EXPECT_EQ(Run({"set", "fsdp-32", "load", "1"}), 2);
}

// The readout of a step is made again for the plan as it is set.
TEST_F(LessonCommandTest, TheLiveTextFollowsThePlan) {
  const std::string before = Ask({"state", "cheat-sheet"}).at("live");
  const std::string after = Ask({"set", "cheat-sheet", "schedule.degree=4"}).at("live");
  EXPECT_NE(before.find("| DP degree | world / (TP x PP) | 2 |"), std::string::npos) << before;
  EXPECT_NE(after.find("| DP degree | world / (TP x PP) | 1 |"), std::string::npos) << after;
  const std::string two = Ask({"set", "18", "strategy.zero.stage=2"}).at("live");
  EXPECT_NE(two.find("\"stage\": 2"), std::string::npos) << two;
  EXPECT_EQ(Run({"set", "18", "training.global_batch_size=100"}), 2);
}

}  // namespace
}  // namespace shardlab
