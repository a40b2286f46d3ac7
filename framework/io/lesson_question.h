#pragma once
// A question of a step with its variables put in, and the grading of an answer. A seed draws the
// variables: the same seed asks the same, and what the planner refuses is drawn again.
//
//   AskedQuestion asked = AskQuestion(registry, step, 0, std::nullopt);   // the main question
//   LessonGrade grade = GradeAnswer(asked, "16.43 GiB");

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/lesson_step.h"
#include "io/plugin_registry.h"

namespace shardlab {

struct AskedSlip {
  std::string name;
  double value = 0;                // of a number
  std::vector<std::string> texts;  // of a text
  std::string message;
};

struct AskedQuestion {
  QuestionKind kind = QuestionKind::kNumber;
  std::string text, hint, worked, unit;
  double expected = 0;  // in bytes, seconds, parameters, ...
  double tolerance = 0;
  std::vector<std::string> accepts, choices;
  std::vector<std::pair<std::string, std::string>> same;
  std::vector<AskedSlip> slips;
  std::string expected_shown;
  std::string problem;  // of the course, not of the learner; empty when all is well
};

AskedQuestion AskQuestion(const PluginRegistry& registry, const LessonStep& step,
                          std::size_t question, std::optional<std::uint64_t> seed);

struct LessonGrade {
  bool correct = false;
  std::string slip;     // the name of the one that was recognised
  std::string message;  // for the learner
};

// Never fails: what cannot be read is a wrong answer with a message that says what is wanted.
LessonGrade GradeAnswer(const AskedQuestion& question, const std::string& answer);

}  // namespace shardlab
