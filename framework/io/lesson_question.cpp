#include "io/lesson_question.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/lesson_figures.h"
#include "io/lesson_mix.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

constexpr int kDraws = 64;  // until one is legal

using Variables = std::map<std::string, Value>;

Variables MainVariables(const LessonQuestion& question) {
  Variables out;
  for (const auto& [name, value] : question.main.table) out[name] = value;
  return out;
}

Variables DrawnVariables(const LessonQuestion& question, std::uint64_t seed, int draw) {
  Variables out = MainVariables(question);
  std::uint64_t state = MixedSeed(MixedSeed(seed) + static_cast<std::uint64_t>(draw));
  for (const auto& [name, values] : question.draw.table) {
    state = MixedSeed(state);
    if (!values.array.empty()) out[name] = values.array[state % values.array.size()];
  }
  return out;
}

AskedQuestion With(const PluginRegistry& registry, const LessonStep& step,
                   const LessonQuestion& question, const Variables& variables) {
  AskedQuestion out;
  std::map<std::string, std::string> words;
  LessonPlans plans(registry, step);
  for (const auto& [name, value] : variables) {
    words[name] = value.kind == Value::kText ? value.text : ToToml(value);
    if (value.kind == Value::kInteger || value.kind == Value::kNumber)
      plans.AddNumber(name, value.number);
  }
  std::vector<std::string> problems;
  if (!question.scenario.empty()) {
    LessonFamily family{"these", question.scenario, {}};
    std::vector<std::string> sets;
    for (const std::string& set : question.sets) sets.push_back(FillVariables(set, words));
    if (question.family_label.empty()) {
      if (!plans.AddPlan("this", question.scenario, sets, &out.problem)) return out;
    } else {
      for (int i = question.family_from; i <= question.family_to; ++i) {
        std::vector<std::string> each;
        each.reserve(sets.size());
        for (const std::string& set : sets)
          each.push_back(FillVariables(set, {{question.family_label, std::to_string(i)}}));
        family.members.push_back({Value::Integer(i), each});
      }
      plans.AddFamily(std::move(family));
    }
  }
  out.kind = question.kind;
  out.unit = question.unit;
  out.tolerance = question.tolerance;
  for (const std::string& text : question.accepts)
    out.accepts.push_back(FillVariables(text, words));
  out.choices = question.choices;
  out.same = question.same;
  if (question.kind == QuestionKind::kText || question.kind == QuestionKind::kMatch) {
    out.expected_shown = out.accepts.empty() ? "" : out.accepts[0];
  } else {
    const ExpressionResult answer = plans.Evaluate(FillVariables(question.answer, words));
    if (!answer.ok()) {
      out.problem = answer.problem;
      return out;
    }
    out.expected = answer.number.value;
    plans.AddNumber("answer", out.expected);
    if (question.kind == QuestionKind::kFraction) {
      out.expected_shown = FormatFigure("", "%", out.expected);
    } else if (question.kind == QuestionKind::kInteger) {
      out.expected_shown = FormatFigure("", "", out.expected);
      if (!question.unit.empty()) absl::StrAppend(&out.expected_shown, " ", question.unit);
    } else if (question.unit == "billion") {
      out.expected_shown = absl::StrCat(Significant(out.expected / 1e9, 4), " billion");
    } else {
      out.expected_shown = FormatFigure("", question.unit, out.expected);
    }
  }
  const auto fill = [&](const std::string& text) {
    return FillFigures(FillVariables(text, words), plans, &problems);
  };
  out.text = fill(question.text);
  out.hint = fill(question.hint);
  out.worked = fill(question.worked);
  for (const LessonSlip& slip : question.slips) {
    AskedSlip asked{slip.name, 0, {}, ""};
    for (const std::string& text : slip.texts) asked.texts.push_back(FillVariables(text, words));
    if (!slip.value.empty()) {
      const ExpressionResult value = plans.Evaluate(FillVariables(slip.value, words));
      if (!value.ok()) {
        problems.push_back(value.problem);
        continue;
      }
      asked.value = value.number.value;
    }
    asked.message = fill(slip.message);
    out.slips.push_back(std::move(asked));
  }
  if (!problems.empty()) out.problem = problems[0];
  return out;
}

}  // namespace

AskedQuestion AskQuestion(const PluginRegistry& registry, const LessonStep& step,
                          std::size_t question, std::optional<std::uint64_t> seed) {
  const LessonQuestion& q = step.questions[question];
  if (!seed || q.draw.table.empty()) return With(registry, step, q, MainVariables(q));
  AskedQuestion asked;
  for (int draw = 0; draw < kDraws; ++draw) {
    asked = With(registry, step, q, DrawnVariables(q, *seed, draw));
    if (asked.problem.empty()) return asked;
  }
  return asked;
}

}  // namespace shardlab
