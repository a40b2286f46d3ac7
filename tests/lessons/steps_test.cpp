// Every step of the course: its figures are filled and are the course's numbers (the unrounded
// values that tests/golden holds), its scenario keeps its [expect], its knobs and goals work.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
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

// What no plan yields is an expression of the step's folder all the same. Those of the course's
// conventions stand in the step that speaks of them.
TEST(Steps, FiguresBeyondThePlannerAreTheNumbersOfTheCourse) {
  std::size_t compared = 0;
  const auto compare = [&](const LessonStep& step, const std::string& name, const Json& expected) {
    LessonPlans plans(Plugins(), step);
    for (const LessonFigure& figure : step.figures) {
      if (figure.name != name || !expected.is_array()) continue;
      std::string problem;
      EXPECT_EQ(plans.FigureValue(figure, &problem), expected) << step.slug << " " << name;
      EXPECT_EQ(problem, "");
      return true;
    }
    const ExpressionResult got = plans.Figure(name);
    if (!got.ok() || expected.is_array()) return false;
    EXPECT_TRUE(Agrees(expected.get<double>(), got.number))
        << step.slug << " " << name << ": expected " << expected << ", got " << got.number.value;
    return true;
  };
  for (const char* list : {"beyond", "left_out"}) {
    for (const Json& value : Numbers().at(list)) {
      const std::string name = value.at("name");
      bool found = false;
      for (const LessonStep& step : Course()) {
        const bool of_step = value.at("step") == step.slug || value.at("step") == "conventions";
        found = found || (of_step && compare(step, name, value.at("expected")));
      }
      // A preset's dimensions are no figure of the course.
      if (list == std::string("left_out") && value.at("step") == "conventions") continue;
      EXPECT_TRUE(found) << value.at("step") << " " << name;
      compared += found ? 1 : 0;
    }
  }
  EXPECT_GE(compared, 70u);
}

// The headline figures, as the course states them.
TEST(Steps, HeadlineFiguresAreInTheTexts) {
  const auto says = [](const char* slug, const std::vector<std::string>& figures) {
    std::vector<std::string> problems;
    const std::string text = ShowDocument(Plugins(), StepNamed(slug), &problems).at("text");
    for (const std::string& figure : figures)
      EXPECT_NE(text.find(figure), std::string::npos) << slug << " does not say " << figure;
  };
  says("one-gpu-70b", {"1.1289 TB", "91.268 GB", "1.2201 TB", "15.25", "FlashAttention"});
  says("floor-405b", {"6.4937 TB", "2.5600 TB", "202.93 GB"});
  says("zero-stages", {"308.67 GB", "171.97 GB", "35.277 GB", "282.21 GB", "141.11 GB"});
  says("zero-wire", {"273.40 GB", "410.09 GB", "14.82 s", "88.961 GB", "67.771 GB"});
  says("activation-checkpointing", {"6.5096 GB", "41.786 GB", "52.174 GB", "56.376 GB"});
  says("tp-split", {"320", "61.734 GB", "73.143 GB", "1.250 times"});
  says("break-tp-across-servers", {"4.429", "2.191", "7.219", "2.741", "157.00 GB"});
  says("tp-inside-nvlink", {"136.4", "1.5032 TB", "2.684 s"});
  says("pp-split", {"27.27 %", "(p-1)/(m+p-1)", "6.98 %", "56.645 GB"});
  says("break-recompute-off", {"106.12 GB", "78.898 GB", "holds\n4 of them"});
  says("plan-3d-70b", {"55.505 GB", "74.127 GB", "656.67 MB", "81.38 %"});
  says("megatron-flags", {"64.324 GB", "129,024", "12,582,912", "Ranks are numbered"});
  says("fsdp-code", {"141.11 GB", "4.2027 GB", "1.7113 GB"});
  says("playground-replan", {"987.75 GB", "846.64 GB", "108 steps", "126 or", "53.545 GB"});
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

// The hot expert of step 15: what experts compute, hold and send grows with the load, attention
// does not. Mixtral 8x7B, a layer and 4096 tokens: 2 experts of 3 x 4096 x 14336 parameters of the
// layer's 394,305,536 active ones, 6 FLOPs each at 494.5 TFLOP/s; 46 of 59 bytes an element; and
// four all-to-alls, of which 7/8 leave a GPU, at 450 GB/s.
TEST(Steps, AHotExpertSlowsTheLayerDown) {
  const LessonStep& step = StepNamed("expert-parallel");
  const auto figures = [&](const std::vector<std::string>& sets) {
    const LessonState state = StateOf(Plugins(), step, sets);
    EXPECT_FALSE(state.planned.document.is_null()) << state.planned.Why();
    auto plans = std::make_unique<LessonPlans>(Plugins(), step);
    plans->SetNow(sets, state.planned.document);
    return plans;
  };
  constexpr double kTokens = 4096, kExpert = 3.0 * 4096 * 14336, kLayer = 394'305'536;
  constexpr double kOthers = kLayer - 2 * kExpert;
  const auto compute = [&](double load) {
    return 6 * kTokens * (kOthers + load * 2 * kExpert) / 494.5e12;
  };
  const auto traffic = [&](double load) {
    return 4 * load * 2 * kTokens * 2 * 4096 * 7 / 8 / 450e9;
  };
  for (const double load : {1.0, 1.5, 4.0}) {
    const auto plans = figures({"strategy.expert.imbalance=" + std::to_string(load)});
    const auto value = [&](const char* name) { return plans->Figure(name).number.value; };
    EXPECT_NEAR(value("now_load"), load, 1e-12);
    EXPECT_NEAR(value("now_layer_compute_seconds"), compute(load), 1e-12);
    EXPECT_NEAR(value("now_layer_traffic_seconds"), traffic(load), 1e-12);
    EXPECT_NEAR(value("now_over_even"), (compute(load) + traffic(load)) / (compute(1) + traffic(1)),
                1e-9);
    EXPECT_NEAR(value("now_more_bytes"), 32 * 46 * kTokens * 4096 * (load - 1), 1);
  }
  // One expert rank waits for none.
  const auto alone = figures({"strategy.expert.degree=1", "strategy.expert.imbalance=2"});
  EXPECT_EQ(alone->Figure("now_load").number.value, 1);
  EXPECT_EQ(alone->Figure("now_over_even").number.value, 1);
  const Json knobs = StateDocument(Plugins(), step, StateOf(Plugins(), step, {})).at("knobs");
  EXPECT_TRUE(std::any_of(knobs.begin(), knobs.end(), [](const Json& knob) {
    return knob.at("key") == "strategy.expert.imbalance" && knob.at("values").size() >= 3;
  }));
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
