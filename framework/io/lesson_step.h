#pragma once
// A step of the course as its folder says it: lessons/NN-slug with step.md (the text, figures as
// {{name}}, and between <!-- live --> and <!-- /live --> what follows the learner's plan),
// step.toml (what it asks and allows), figures.toml (plans, and figures as expressions over them),
// families.toml (whole sets of plans, where figures count them) and scenario.toml (the plan it
// starts from). Folders are found, not listed: order, parts and minutes are the folders' own data.
//
//   Diagnostics diagnostics;
//   std::vector<LessonStep> course = ReadCourse("lessons", diagnostics);

#include <string>
#include <utility>
#include <vector>

#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

// A scenario with some keys set otherwise. `scenario` is the path of a file; empty: the learner's
// plan.
struct LessonPlan {
  std::string id;
  std::string scenario;
  std::vector<std::string> sets;
};

// Plans of one scenario that a figure counts or chooses from. A member's label is a number, a text
// or an array of numbers.
struct LessonFamily {
  struct Member {
    Value label;
    std::vector<std::string> sets;
  };
  std::string id;
  std::string scenario;
  std::vector<Member> members;
};

struct LessonFigure {
  std::string name;
  std::vector<std::string> expressions;  // one, or one for each element of a list
};

// A usual wrong answer: an expression of the question's unit, or texts.
struct LessonSlip {
  std::string name;
  std::string value;
  std::vector<std::string> texts;
  std::string message;
};

enum class QuestionKind {
  kNumber,
  kFraction,
  kInteger,
  kText,
  kMatch,  // pairs in any order: "tensor=nvlink, data=network"
};

struct LessonQuestion {
  QuestionKind kind = QuestionKind::kNumber;
  std::string text, hint, worked;
  std::string unit;                  // of a number: "GB", "x", "billion"; of an integer: a word
  std::string answer;                // expression
  std::vector<std::string> accepts;  // texts, the first is shown
  std::vector<std::string> choices;  // of a choice question, in order
  std::vector<std::pair<std::string, std::string>> same;  // of a match: "tp" is "tensor"
  double tolerance = 0;
  std::string scenario;           // of the question's own plan, id "this"; may be empty
  std::vector<std::string> sets;  // with {variable}
  std::string family_label;       // instead of one plan: id "these", the label's variable
  int family_from = 1, family_to = 0;
  Value main;  // variables of the main question
  Value draw;  // and what a seed draws each from
  std::vector<LessonSlip> slips;
};

struct LessonKnob {
  std::string key, label;
  std::vector<std::string> values;  // as TOML
  // What a framework calls it: "--tensor-model-parallel-size". A switch has no value of its own:
  // the flag means `with`, and its absence `without`. Both as TOML; empty: not said.
  std::string flag, with, without;
};

// Flags that a learner may expect and the framework does not have, and what to say to them.
struct LessonNoFlag {
  std::vector<std::string> names;
  std::string message;
};

// Asked before anything is shown in `run`; no answer is wrong, and what comes is told after it.
struct LessonPrediction {
  std::string text, told;
  std::vector<std::string> choices;
};

// Questions drawn from other steps by a seed.
struct LessonMix {
  std::vector<std::string> steps;  // slugs; empty: no mix
  int questions = 0;
};

// Plans of a family as points, to choose one from: less of x and more of y are better. Both are
// paths into the plan's document.
struct LessonFront {
  std::string family;  // empty: none
  std::string x, x_label, y, y_label;
};

// `value` must lie between what the expressions `min` and `max` give; empty: no bound.
struct LessonRequirement {
  std::string value, min, max, text;
};

// Something that happens to the running job, and what is then asked of the plan.
struct LessonEvent {
  std::string name, text;
  std::vector<std::string> sets;
  std::vector<LessonRequirement> goal;
};

struct LessonStep {
  std::string slug, folder, title, part;
  int number = 0;
  int minutes = 0;
  std::string text;      // step.md
  std::string live;      // the part of it that follows the learner's plan; may be empty
  std::string scenario;  // path of scenario.toml
  std::vector<std::pair<std::string, double>> constants;
  std::vector<LessonFigure> figures;
  std::vector<LessonPlan> plans;
  std::vector<LessonFamily> families;
  std::vector<LessonKnob> knobs;
  std::string flags_of;  // the exporter whose flags the knobs stand for; empty: none
  std::vector<LessonNoFlag> no_flags;
  LessonPrediction prediction;
  LessonMix mix;
  LessonFront front;
  std::vector<LessonQuestion> questions;
  std::vector<std::string> break_sets;  // the deliberate bad change; empty: none
  std::string break_text;
  std::string goal_text;
  std::vector<LessonRequirement> goal;
  std::vector<LessonEvent> events;
  std::string
      restart_seconds;  // expression over the plans "old" and "new"; empty: no job to re-plan

  bool HasCheck() const { return !questions.empty() || !goal.empty(); }
};

// In order of their numbers. A mistake in a folder is an error that names it.
std::vector<LessonStep> ReadCourse(const std::string& folder, Diagnostics& diagnostics);

// By slug, number or folder name; null, with what was meant, when there is none.
const LessonStep* FindStep(const std::vector<LessonStep>& course, const std::string& name,
                           Diagnostics& diagnostics);

}  // namespace shardlab
