#pragma once
// The plans of a step, each planned when a figure first asks for it, the figures as numbers, and a
// text with its {{figures}} filled in.
//
//   LessonPlans plans(registry, step);
//   plans.Figure("state_bytes").number.value
//   FillFigures("needs {{state_bytes}}", plans, &problem)   // "needs 1128.9 GB"
//
// {{name}} is shown by what the name ends on: _bytes, _seconds, _fraction (percent); else a number.
// {{export NAME WORD...}} is what exporter NAME writes for the plan: the lines with one of the
// words; a word that ends on ? may have no line. {{name TB}} forces a unit: B MB GB TB, ms s, %, x
// (four digits), 0 to 9 digits after the point.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/lesson_expression.h"
#include "io/lesson_step.h"
#include "io/plan_document.h"
#include "io/plugin_registry.h"

namespace shardlab {

// A plan, or why there is none.
struct LessonPlanned {
  PlannedScenario planned;
  nlohmann::ordered_json document;  // null when refused
  Diagnostics diagnostics;
  std::string Why() const;  // the first error, with its hint
};

LessonPlanned PlanLesson(const PluginRegistry& registry, const std::string& scenario,
                         const std::vector<std::string>& sets);

// The settings with further ones: the last of a key counts.
std::vector<std::string> MergedSets(const std::vector<std::string>& sets,
                                    const std::vector<std::string>& more);

class LessonPlans {
 public:
  LessonPlans(const PluginRegistry& registry, const LessonStep& step);

  // Documents that an expression may name besides the step's own.
  void Add(const std::string& id, nlohmann::ordered_json document);
  void AddNumber(const std::string& name, double value);
  // Plans SCENARIO with SETS as `id`; false, with why, when it is refused.
  bool AddPlan(const std::string& id, const std::string& scenario,
               const std::vector<std::string>& sets, std::string* problem);
  void AddFamily(LessonFamily family);
  // The learner's plan: id "now", and what {{export}} writes. Without it that is the start. What a
  // plan of theirs cannot be exported as is told in the text then, and is no problem of the course.
  void SetNow(const std::vector<std::string>& sets, nlohmann::ordered_json document);

  ExpressionResult Evaluate(const std::string& expression);
  // A figure of one expression; `start` is the step's scenario.toml.
  ExpressionResult Figure(const std::string& name);
  // {name: number or array}; problems are appended.
  nlohmann::ordered_json Figures(std::vector<std::string>* problems);
  nlohmann::ordered_json FigureValue(const LessonFigure& figure, std::string* problem);
  // An array of plans: those of a family, each with its label; null, with why, when there is none.
  const nlohmann::ordered_json* Family(const std::string& id, std::string* problem) {
    return Document(id, problem);
  }
  // "NAME WORD...": lines of an export of the plan now.
  std::string Exported(const std::string& request, std::vector<std::string>* problems);

 private:
  const nlohmann::ordered_json* Document(const std::string& id, std::string* problem);
  ExpressionScope Scope();

  const PluginRegistry& registry_;
  const LessonStep& step_;
  std::map<std::string, nlohmann::ordered_json> documents_;
  std::map<std::string, std::string> refused_;
  std::map<std::string, double> numbers_;
  std::vector<LessonFamily> families_;
  std::vector<std::string> now_sets_;
  bool now_given_ = false;
  int depth_ = 0;  // of figures that name figures
};

// "35.277 GB", "27.27 %": by unit, or by the name where `unit` is empty.
std::string FormatFigure(const std::string& name, const std::string& unit, double value);

std::string FillFigures(const std::string& text, LessonPlans& plans,
                        std::vector<std::string>* problems);

// {variable} by its value; {{figures}} stay.
std::string FillVariables(const std::string& text,
                          const std::map<std::string, std::string>& values);

}  // namespace shardlab
