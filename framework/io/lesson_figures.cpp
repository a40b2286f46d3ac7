#include "io/lesson_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/export_plan.h"
#include "io/lesson_keys.h"
#include "io/quantity.h"
#include "io/scenario.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 16;  // figures that name figures

Json LabelOf(const Value& label) {
  if (label.kind == Value::kText) return label.text;
  if (label.kind == Value::kInteger) return label.integer;
  if (label.kind == Value::kNumber) return label.number;
  Json out = Json::array();
  for (const Value& item : label.array) out.push_back(LabelOf(item));
  return out;
}

}  // namespace

std::string LessonPlanned::Why() const {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::kError) continue;
    return d.hint.empty() ? d.message : absl::StrCat(d.message, "; ", d.hint);
  }
  return "";
}

LessonPlanned PlanLesson(const PluginRegistry& registry, const std::string& scenario,
                         const std::vector<std::string>& sets) {
  LessonPlanned out;
  const Scenario read = ReadScenario(scenario, sets, out.diagnostics);
  if (out.diagnostics.HasErrors()) return out;
  out.planned = PlanScenario(registry, read, &out.diagnostics);
  if (out.planned.composed.composition == nullptr || out.diagnostics.HasErrors()) return out;
  out.document = PlanDocument(out.planned, out.diagnostics);
  return out;
}

std::vector<std::string> MergedSets(const std::vector<std::string>& sets,
                                    const std::vector<std::string>& more) {
  std::vector<std::string> out = sets;
  for (const std::string& set : more) {
    std::erase_if(out, [&](const std::string& old) { return KeyOf(old) == KeyOf(set); });
    out.push_back(set);
  }
  return out;
}

LessonPlans::LessonPlans(const PluginRegistry& registry, const LessonStep& step)
    : registry_(registry), step_(step) {
  for (const auto& [name, value] : step.constants) numbers_[name] = value;
}

void LessonPlans::Add(const std::string& id, Json document) {
  documents_[id] = std::move(document);
}

void LessonPlans::AddNumber(const std::string& name, double value) { numbers_[name] = value; }

void LessonPlans::SetNow(const std::vector<std::string>& sets, Json document) {
  now_sets_ = sets;
  now_given_ = true;
  Add("now", std::move(document));
}

void LessonPlans::AddFamily(LessonFamily family) { families_.push_back(std::move(family)); }

bool LessonPlans::AddPlan(const std::string& id, const std::string& scenario,
                          const std::vector<std::string>& sets, std::string* problem) {
  LessonPlanned planned = PlanLesson(registry_, scenario, sets);
  if (planned.document.is_null()) {
    *problem = planned.Why();
    return false;
  }
  documents_[id] = std::move(planned.document);
  return true;
}

const Json* LessonPlans::Document(const std::string& id, std::string* problem) {
  const auto known = documents_.find(id);
  if (known != documents_.end()) return &known->second;
  const auto refused = refused_.find(id);
  if (refused != refused_.end()) {
    *problem = refused->second;
    return nullptr;
  }
  const auto plan = std::find_if(step_.plans.begin(), step_.plans.end(),
                                 [&](const LessonPlan& p) { return p.id == id; });
  if (plan != step_.plans.end() || id == "start" || id == "now") {
    // The learner's plan, with keys set over it, where the step's plan names no scenario.
    const bool own = plan != step_.plans.end() && plan->scenario.empty();
    std::vector<std::string> sets;
    if (own) sets = now_sets_;
    if (plan != step_.plans.end()) sets = MergedSets(sets, plan->sets);
    std::string why;
    if (AddPlan(id, own || plan == step_.plans.end() ? step_.scenario : plan->scenario, sets, &why))
      return &documents_[id];
    *problem = refused_[id] = absl::StrCat("the plan ", id, " is refused: ", why);
    return nullptr;
  }
  const auto find = [&](const std::vector<LessonFamily>& all) -> const LessonFamily* {
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.id == id; });
    return at == all.end() ? nullptr : &*at;
  };
  const LessonFamily* family = find(step_.families);
  if (family == nullptr) family = find(families_);
  if (family == nullptr) {
    *problem = absl::StrCat("there is no plan \"", id, "\"");
    return nullptr;
  }
  Json all = Json::array();
  for (const LessonFamily::Member& member : family->members) {
    LessonPlanned planned = PlanLesson(registry_, family->scenario, member.sets);
    Json entry = planned.document.is_null() ? Json::object() : std::move(planned.document);
    entry["label"] = LabelOf(member.label);
    entry["legal"] = entry.contains("memory");
    if (entry["legal"] == true)
      entry["headroom_fraction"] = entry["memory"]["headroom_bytes"].get<double>() /
                                   entry["memory"]["capacity_bytes"].get<double>();
    else
      entry["why"] = planned.Why();
    all.push_back(std::move(entry));
  }
  return &(documents_[id] = std::move(all));
}

ExpressionScope LessonPlans::Scope() {
  return {[this](const std::string& id, std::string* problem) { return Document(id, problem); },
          [this](const std::string& name, std::string* problem) -> std::optional<ExpressionNumber> {
            const auto constant = numbers_.find(name);
            if (constant != numbers_.end()) return ExpressionNumber{constant->second, 0};
            const ExpressionResult figure = Figure(name);
            if (figure.ok()) return figure.number;
            *problem = figure.problem;
            return std::nullopt;
          }};
}

ExpressionResult LessonPlans::Evaluate(const std::string& expression) {
  return EvaluateExpression(expression, Scope());
}

ExpressionResult LessonPlans::Figure(const std::string& name) {
  const auto constant = numbers_.find(name);
  if (constant != numbers_.end()) return {{constant->second, 0}, ""};
  for (const LessonFigure& figure : step_.figures) {
    if (figure.name != name) continue;
    if (figure.expressions.size() != 1) return {{}, absl::StrCat(name, " is a list")};
    if (depth_ >= kDeepest) return {{}, absl::StrCat(name, " is made of itself")};
    ++depth_;
    ExpressionResult out = Evaluate(figure.expressions[0]);
    --depth_;
    if (!out.ok()) out.problem = absl::StrCat(name, ": ", out.problem);
    return out;
  }
  return {{}, absl::StrCat("there is no figure \"", name, "\"")};
}

std::string LessonPlans::Exported(const std::string& request, std::vector<std::string>* problems) {
  const std::vector<std::string> words = absl::StrSplit(request, ' ', absl::SkipEmpty());
  if (words.size() < 2) {
    problems->push_back("{{export}} names no framework, or no words of the lines to show");
    return "?";
  }
  Diagnostics diagnostics;
  const Scenario scenario = ReadScenario(step_.scenario, now_sets_, diagnostics);
  const ExportedPlan exported = ExportPlan(registry_, words[0], scenario, &diagnostics);
  std::string refused;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::kError) continue;
    if (!now_given_) problems->push_back(d.message);
    absl::StrAppend(&refused, refused.empty() ? "" : "\n", "(no) ", d.message,
                    d.hint.empty() ? "" : "; ", d.hint);
  }
  if (!refused.empty()) return refused;
  std::vector<std::string> asked, optional, missing;
  for (std::size_t i = 1; i < words.size(); ++i) {
    asked.push_back(words[i]);
    if (!words[i].ends_with('?')) continue;
    asked.back().pop_back();
    optional.push_back(asked.back());
  }
  std::string lines = ExportedLines(exported, asked, &missing);
  if (now_given_) return lines;  // a plan without a switch has no line of it
  for (const std::string& word : missing)
    if (std::find(optional.begin(), optional.end(), word) == optional.end())
      problems->push_back(absl::StrCat("export ", words[0], " has no line with ", word));
  return lines;
}

Json LessonPlans::FigureValue(const LessonFigure& figure, std::string* problem) {
  if (figure.expressions.size() == 1) {
    const ExpressionResult one = Evaluate(figure.expressions[0]);
    if (one.ok()) return one.number.value;
    // A reference that selects several things is a list.
    std::string no_list;
    Json list = SelectExpression(figure.expressions[0], Scope(), &no_list);
    if (no_list.empty()) return list;
    *problem = one.problem;
    return nullptr;
  }
  Json out = Json::array();
  for (const std::string& expression : figure.expressions) {
    const ExpressionResult one = Evaluate(expression);
    if (!one.ok()) *problem = one.problem;
    out.push_back(one.number.value);
  }
  return out;
}

Json LessonPlans::Figures(std::vector<std::string>* problems) {
  Json out = Json::object();
  for (const LessonFigure& figure : step_.figures) {
    std::string problem;
    out[figure.name] = FigureValue(figure, &problem);
    if (!problem.empty()) problems->push_back(absl::StrCat(figure.name, ": ", problem));
  }
  return out;
}

std::string FormatFigure(const std::string& name, const std::string& unit, double value) {
  static constexpr std::array<std::pair<const char*, double>, 9> kUnits = {{{"B", 1},
                                                                            {"MB", 1e6},
                                                                            {"GB", 1e9},
                                                                            {"TB", 1e12},
                                                                            {"GiB", 1073741824.0},
                                                                            {"MiB", 1048576.0},
                                                                            {"ms", 1e-3},
                                                                            {"s", 1},
                                                                            {"%", 1e-2}}};
  for (const auto& [symbol, scale] : kUnits) {
    if (unit != symbol) continue;
    const double scaled = value / scale;
    if (unit == "B") return absl::StrCat(WithThousands(std::llround(value)), " B");
    return absl::StrCat(unit == "%" ? absl::StrFormat("%.2f", scaled) : Significant(scaled, 5), " ",
                        unit);
  }
  if (unit == "x") return Significant(value, 4);
  if (unit.size() == 1 && unit[0] >= '0' && unit[0] <= '9')
    return absl::StrFormat("%.*f", unit[0] - '0', value);
  if (name.ends_with("_bytes")) return FormatBytes(value);
  if (name.ends_with("_seconds")) return FormatSeconds(value);
  if (name.ends_with("_fraction")) return absl::StrFormat("%.2f %%", value * 100);
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return WithThousands(static_cast<long long>(value));
  return Significant(value, 4);
}

std::string FillFigures(const std::string& text, LessonPlans& plans,
                        std::vector<std::string>* problems) {
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t open = text.find("{{", at);
    const std::size_t close = open == std::string::npos ? open : text.find("}}", open);
    if (close == std::string::npos) return out + text.substr(at);
    out += text.substr(at, open - at);
    const std::string inside = text.substr(open + 2, close - open - 2);
    const std::size_t blank = std::min(inside.find(' '), inside.size());
    const std::string name = inside.substr(0, blank);
    const std::string unit = blank < inside.size() ? inside.substr(blank + 1) : "";
    if (name == "export") {
      out += plans.Exported(unit, problems);
      at = close + 2;
      continue;
    }
    const ExpressionResult figure = plans.Figure(name);
    if (!figure.ok()) problems->push_back(figure.problem);
    out += figure.ok() ? FormatFigure(name, unit, figure.number.value) : "?";
    at = close + 2;
  }
}

std::string FillVariables(const std::string& text,
                          const std::map<std::string, std::string>& values) {
  std::string out = text;
  for (const auto& [name, value] : values) {
    const std::string mark = absl::StrCat("{", name, "}");
    for (std::size_t at = out.find(mark); at != std::string::npos; at = out.find(mark, at)) {
      if (at > 0 && out[at - 1] == '{') {  // {{figure}}
        at += mark.size();
        continue;
      }
      out.replace(at, mark.size(), value);
      at += value.size();
    }
  }
  return out;
}

}  // namespace shardlab
