// Every step of the course: its figures are filled and are the course's numbers (the unrounded
// values that tests/golden holds), its scenario keeps its [expect], its knobs and goals work.

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "gtest/gtest.h"
#include "io/lesson_document.h"
#include "lessons/course.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRelative = 1e-9;

const Json& Numbers() {
  static const Json numbers = [] {
    std::ifstream file(SHARDLAB_SOURCE_DIR "/tests/golden/lesson.json");
    return Json::parse(file);
  }();
  return numbers;
}

// Within 1e-9, or within what rounding to whole bytes can do to the documents it was made from.
bool Agrees(double expected, const ExpressionNumber& got) {
  return std::abs(got.value - expected) <= kRelative * std::abs(expected) + got.error;
}

TEST(Steps, AreTwentyTwoInSevenParts) {
  ASSERT_EQ(Course().size(), 22u);
  std::vector<std::string> parts;
  std::map<std::string, int> minutes, steps;
  int number = 0;
  for (const LessonStep& step : Course()) {
    EXPECT_EQ(step.number, ++number) << step.slug;
    if (parts.empty() || parts.back() != step.part) parts.push_back(step.part);
    minutes[step.part] += step.minutes;
    ++steps[step.part];
    EXPECT_FALSE(step.title.empty()) << step.slug;
  }
  ASSERT_EQ(parts.size(), 7u);
  const std::vector<int> wanted_minutes = {3, 8, 5, 6, 4, 5, 3};
  const std::vector<int> wanted_steps = {2, 5, 3, 4, 2, 4, 2};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(minutes[parts[i]], wanted_minutes[i]) << parts[i];
    EXPECT_EQ(steps[parts[i]], wanted_steps[i]) << parts[i];
  }
}

TEST(Steps, ShowsHaveNothingMissing) {
  for (const LessonStep& step : Course()) {
    std::vector<std::string> problems;
    const Json shown = ShowDocument(Plugins(), step, &problems);
    for (const std::string& problem : problems) ADD_FAILURE() << step.slug << ": " << problem;
    const std::string text = shown.at("text");
    EXPECT_FALSE(text.empty()) << step.slug;
    EXPECT_EQ(text.find("{{"), std::string::npos) << step.slug;
    // A page shows these; a terminal of 80 columns must too.
    for (const char* part : {"**Do.**", "**Why"})
      EXPECT_NE(text.find(part), std::string::npos) << step.slug << " has no " << part;
  }
}

TEST(Steps, FiguresAreTheNumbersOfTheCourse) {
  std::size_t compared = 0;
  for (const LessonStep& step : Course()) {
    LessonPlans plans(Plugins(), step);
    std::map<std::string, const LessonFigure*> figures;
    for (const LessonFigure& figure : step.figures) figures[figure.name] = &figure;
    for (const Json& value : Numbers().at("values")) {
      if (value.at("step") != step.slug) continue;
      const std::string name = value.at("name");
      ASSERT_TRUE(figures.contains(name)) << step.slug << " " << name;
      const Json& expected = value.at("expected");
      std::string problem;
      if (expected.is_array()) {
        const Json got = plans.FigureValue(*figures[name], &problem);
        EXPECT_EQ(problem, "");
        ASSERT_EQ(got.size(), expected.size()) << step.slug << " " << name;
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]) << name;
      } else {
        const ExpressionResult got = plans.Figure(name);
        EXPECT_TRUE(got.ok()) << step.slug << " " << got.problem;
        EXPECT_TRUE(Agrees(expected.get<double>(), got.number))
            << step.slug << " " << name << ": expected " << expected << ", got "
            << got.number.value;
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 600u);
}

TEST(Steps, ScenariosKeepWhatTheyExpect) {
  for (const LessonStep& step : Course()) {
    std::ostringstream out, err;
    EXPECT_EQ(RunShardlab({"plan", step.scenario, "--format", "json", "--plugins",
                           SHARDLAB_BINARY_DIR "/plugins"},
                          out, err),
              0)
        << step.slug << "\n"
        << err.str();
  }
}

TEST(Steps, EveryKnobIsLegalSomewhereAndSaysWhyNotElsewhere) {
  for (const LessonStep& step : Course()) {
    const Json state = StateDocument(Plugins(), step, StateOf(Plugins(), step, step.break_sets));
    for (const Json& knob : state.at("knobs")) {
      bool legal = false;
      EXPECT_FALSE(knob.at("value").is_null()) << step.slug << " " << knob.at("key");
      for (const Json& value : knob.at("values")) {
        legal = legal || value.at("legal") == true;
        if (value.at("legal") == false) {
          EXPECT_FALSE(value.at("reason").get<std::string>().empty()) << step.slug;
        }
      }
      EXPECT_TRUE(legal) << step.slug << " " << knob.at("key");
    }
  }
}

bool Reached(const LessonStep& step, const std::vector<std::string>& sets) {
  const LessonState state = StateOf(Plugins(), step, sets);
  return GoalDocument(Plugins(), step, step.goal, state.planned).at("reached") == true;
}

TEST(Steps, BreakingBreaksAndRepairsRepair) {
  const LessonStep& tensor = StepNamed("break-tp-across-servers");
  EXPECT_TRUE(Reached(tensor, {}));
  EXPECT_FALSE(Reached(tensor, tensor.break_sets));
  EXPECT_FALSE(Reached(tensor, {"strategy.tensor.degree=16"}));
  EXPECT_FALSE(Reached(tensor, {"strategy.tensor.degree=4"}));  // does not fit
  EXPECT_TRUE(Reached(tensor, {"strategy.tensor.degree=4", "strategy.zero.stage=3"}));
  EXPECT_TRUE(Reached(
      tensor, {"strategy.tensor.degree=1", "strategy.zero.stage=3",
               "strategy.tensor.sequence_parallel=false", "strategy.checkpointing.mode=full"}));
  const LessonStep& recompute = StepNamed("break-recompute-off");
  EXPECT_TRUE(Reached(recompute, {}));
  EXPECT_FALSE(Reached(recompute, recompute.break_sets));
  const std::string off = recompute.break_sets.at(0);
  EXPECT_TRUE(Reached(recompute, {off, "strategy.tensor.sequence_parallel=true"}));
  EXPECT_TRUE(Reached(recompute, {off, "training.micro_batch_size=1"}));
  EXPECT_FALSE(Reached(recompute, {off, "model.layers=40"}));
}

// The goal of the 3D plan is a rule, not a list: exactly the plans that the course counts pass.
TEST(Steps, GoalOfThe3dPlanIsReachedByTheCountedPlans) {
  const LessonStep& step = StepNamed("plan-3d-70b");
  LessonPlans plans(Plugins(), step);
  for (const LessonFamily& family : step.families) {
    if (family.id != "seventy") continue;
    int passing = 0;
    for (const LessonFamily::Member& member : family.members) {
      const LessonPlanned planned = PlanLesson(Plugins(), family.scenario, member.sets);
      if (planned.document.is_null()) continue;
      passing += GoalDocument(Plugins(), step, step.goal, planned).at("reached") == true ? 1 : 0;
    }
    EXPECT_EQ(passing, plans.Figure("passing").number.value);
  }
}

TEST(Steps, EveryEventOfTheRunningJobCanBeMet) {
  const LessonStep& step = StepNamed("playground-replan");
  const std::map<std::string, std::vector<std::string>> answers = {
      {"lost-server", {"training.global_batch_size=120"}},
      {"long-sequences",
       {"strategy.tensor.degree=8", "strategy.tensor.sequence_parallel=true",
        "strategy.checkpointing.mode=none"}},
      {"fp32-gradients",
       {"strategy.tensor.degree=4", "strategy.tensor.sequence_parallel=true",
        "strategy.checkpointing.mode=none"}}};
  ASSERT_EQ(step.events.size(), answers.size());
  for (const LessonEvent& event : step.events) {
    const LessonState state =
        StateOf(Plugins(), step, MergedSets(event.sets, answers.at(event.name)));
    const Json goal = GoalDocument(Plugins(), step, event.goal, state.planned);
    EXPECT_EQ(goal.at("reached"), true) << event.name << " " << state.planned.Why() << goal;
  }
}

}  // namespace
}  // namespace shardlab
