// Drills over seeds: right answers are right in every unit, the usual slips are recognised, other
// numbers are refused, and what is no answer gets a polite one.

#include <cmath>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "io/lesson_question.h"
#include "lessons/course.h"

namespace shardlab {
namespace {

constexpr std::uint64_t kSeeds = 12;

std::string Digits(double value) {
  std::ostringstream out;
  out.precision(12);
  out << value;
  return out.str();
}

template <typename Check>
void ForEachQuestion(Check check) {
  for (const LessonStep& step : Course()) {
    for (std::size_t i = 0; i < step.questions.size(); ++i) {
      std::set<std::string> texts;
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const bool main = seed == 0;
        const AskedQuestion asked = AskQuestion(
            Plugins(), step, i, main ? std::nullopt : std::optional<std::uint64_t>(seed));
        const std::string where = step.slug + " " + std::to_string(i + 1) + " seed " +
                                  std::to_string(seed) + ": " + asked.text;
        ASSERT_EQ(asked.problem, "") << where;
        check(asked, where);
        texts.insert(asked.text);
        if (step.questions[i].draw.table.empty()) break;
      }
      if (!step.questions[i].draw.table.empty()) {
        EXPECT_GT(texts.size(), 1u) << step.slug;
      }
    }
  }
}

TEST(Drills, RightAnswersAreRightInEveryUnit) {
  ForEachQuestion([](const AskedQuestion& asked, const std::string& where) {
    std::vector<std::string> right = {asked.expected_shown};
    const double x = asked.expected;
    if (asked.kind == QuestionKind::kText) {
      for (const std::string& text : asked.accepts) right.push_back("  " + text + " ");
    } else if (asked.kind == QuestionKind::kMatch) {
      // Nothing but its pairs.
    } else if (asked.kind == QuestionKind::kInteger) {
      right.insert(right.end(), {Digits(x), Digits(x) + ".0", " " + Digits(x) + " GPUs"});
    } else if (asked.kind == QuestionKind::kFraction) {
      right.insert(right.end(), {Digits(x), Digits(100 * x) + "%", Digits(100 * x) + " %",
                                 Digits(x * 1000) + "/1000"});
      if (100 * x > 1) right.push_back(Digits(100 * x));
    } else if (asked.unit == "GB") {
      right.insert(right.end(),
                   {Digits(x / 1e9), Digits(x / 1e9) + "GB", Digits(x / 1e9) + " gb",
                    Digits(x / 1e12) + " TB", Digits(x / 1e6) + " MB", Digits(x) + " B",
                    Digits(x / 1073741824.0) + " GiB", Digits(x / 1048576.0) + " MiB",
                    Digits(x / 1e9 * 1.019), Digits(x / 1e9 * 0.981)});
    } else if (asked.unit == "billion") {
      right.insert(right.end(), {Digits(x / 1e9), Digits(x / 1e9) + "B",
                                 Digits(x / 1e6) + " million", Digits(x)});
    } else {
      right.insert(right.end(), {Digits(x), Digits(x) + "x", Digits(x) + " times"});
    }
    for (const std::string& answer : right) {
      const LessonGrade grade = GradeAnswer(asked, answer);
      EXPECT_TRUE(grade.correct) << where << " <- " << answer << ": " << grade.message;
    }
  });
}

TEST(Drills, SlipsAreRecognised) {
  ForEachQuestion([](const AskedQuestion& asked, const std::string& where) {
    for (const AskedSlip& slip : asked.slips) {
      std::vector<std::string> answers = slip.texts;
      double value = slip.value;
      if (slip.texts.empty()) {
        if (asked.unit == "GB" || asked.unit == "billion") value /= 1e9;
        if (asked.kind == QuestionKind::kInteger && slip.value != std::floor(slip.value)) continue;
        // A share above one would be read as percent; the slip is told in percent then.
        answers = {asked.kind == QuestionKind::kFraction ? Digits(100 * value) + " %"
                                                         : Digits(value)};
      }
      for (const std::string& answer : answers) {
        const LessonGrade grade = GradeAnswer(asked, answer);
        // Where the numbers drawn make a slip right, or two slips alike, that is no mistake.
        if (grade.correct) continue;
        EXPECT_FALSE(grade.slip.empty()) << where << " <- " << answer << " for " << slip.name;
        EXPECT_FALSE(grade.message.empty()) << where;
      }
    }
    if (asked.kind != QuestionKind::kNumber || asked.unit != "GB") return;
    const LessonGrade gib = GradeAnswer(asked, Digits(asked.expected / 1073741824.0));
    EXPECT_FALSE(gib.correct) << where;
    EXPECT_FALSE(gib.slip.empty()) << where;
  });
}

TEST(Drills, SlipsOfTheMainQuestionsAreAllTold) {
  for (const LessonStep& step : Course()) {
    for (std::size_t i = 0; i < step.questions.size(); ++i) {
      const AskedQuestion asked = AskQuestion(Plugins(), step, i, std::nullopt);
      for (const AskedSlip& slip : asked.slips) {
        std::string answer = slip.texts.empty() ? Digits(slip.value) : slip.texts[0];
        if (slip.texts.empty() && (asked.unit == "GB" || asked.unit == "billion"))
          answer = Digits(slip.value / 1e9);
        const LessonGrade grade = GradeAnswer(asked, answer);
        EXPECT_FALSE(grade.correct) << step.slug << " " << slip.name;
        EXPECT_EQ(grade.slip, slip.name) << step.slug << " <- " << answer;
      }
    }
  }
}

TEST(Drills, OtherNumbersAreRefused) {
  ForEachQuestion([](const AskedQuestion& asked, const std::string& where) {
    if (asked.kind == QuestionKind::kText || asked.kind == QuestionKind::kMatch) return;
    for (const double factor : {-1.0, 0.3117, 0.9, 1.11, 3.337, 1e30}) {
      double value = asked.expected * factor;
      if (asked.kind == QuestionKind::kInteger) value = std::floor(value);
      if (std::abs(value - asked.expected) <=
          std::max(asked.tolerance * std::abs(asked.expected), asked.tolerance))
        continue;
      const bool billions = asked.unit == "GB" || asked.unit == "billion";
      const std::string answer = asked.kind == QuestionKind::kFraction
                                     ? Digits(100 * value) + " %"
                                     : Digits(billions ? value / 1e9 : value);
      EXPECT_FALSE(GradeAnswer(asked, answer).correct) << where << " <- " << answer;
    }
  });
}

// A match is what pairs say, in any order, spelling and punctuation.
TEST(Drills, MatchesAreReadAsPairs) {
  const AskedQuestion asked =
      AskQuestion(Plugins(), StepNamed("tp-inside-nvlink"), 0, std::nullopt);
  for (const char* right :
       {"tensor=nvlink, pipeline=network, data=network", "data=ib,tp=nvlink,pp=ib",
        "pp=network dp=network tp=nvlink", "tensor -> NVLink; pipeline -> network; data -> network",
        "TP: NVLink PP: InfiniBand DP: InfiniBand", "tensor nvlink pipeline network data network"})
    EXPECT_TRUE(GradeAnswer(asked, right).correct) << right;
  const auto message = [&](const char* answer) {
    const LessonGrade grade = GradeAnswer(asked, answer);
    EXPECT_FALSE(grade.correct) << answer;
    return grade.message;
  };
  EXPECT_EQ(message("tensor=nvlink, pipeline=network"), "say where the others go too: data");
  EXPECT_EQ(message("tensor=nvlink, pipeline=nvlink, data=network"), "not this: 2 of 3 are right");
  EXPECT_EQ(message("nvlink"),
            "that does not read as pairs; write it like \"data=...\", one for each of data, "
            "pipeline and tensor");
  EXPECT_EQ(GradeAnswer(asked, "dp=ib pp=ib tp=ib").slip, "");
  EXPECT_EQ(GradeAnswer(asked, "dp=nvlink pp=ib tp=ib").slip, "data_on_nvlink");
}

TEST(Drills, WhatIsNoAnswerGetsAPoliteOne) {
  const std::vector<std::string> none = {"",
                                         " ",
                                         "?",
                                         "nan",
                                         "NaN GB",
                                         "inf",
                                         "-inf",
                                         "1e400",
                                         "-1e400 GB",
                                         "1e999",
                                         "0x10",
                                         "twelve",
                                         "GB",
                                         "1/0",
                                         "1/",
                                         "--",
                                         "1 parsec",
                                         "\xff\xfe",
                                         "\n\t\n",
                                         "1e-999/0",
                                         "%",
                                         "-",
                                         "+",
                                         ".",
                                         "1..2",
                                         "\"\"",
                                         std::string(100000, '9'),
                                         std::string(5000, 'x')};
  ForEachQuestion([&](const AskedQuestion& asked, const std::string& where) {
    for (const std::string& answer : none) {
      // "there is none"; and a word after a count is what is counted
      if (asked.kind == QuestionKind::kText && answer == "-") continue;
      if (asked.kind == QuestionKind::kInteger && answer == "1 parsec") continue;
      const LessonGrade grade = GradeAnswer(asked, answer);
      EXPECT_FALSE(grade.correct) << where << " <- " << answer.substr(0, 40);
      EXPECT_FALSE(grade.message.empty()) << where << " <- " << answer.substr(0, 40);
    }
  });
}

}  // namespace
}  // namespace shardlab
