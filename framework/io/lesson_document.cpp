#include "io/lesson_document.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/lesson_front.h"
#include "io/lesson_keys.h"
#include "io/schedule_study.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLastDigits = 1e-9;  // of a requirement

Json HeadOf(const LessonStep& step) {
  return {{"schema", kLessonSchema}, {"number", step.number}, {"slug", step.slug},
          {"title", step.title},     {"part", step.part},     {"minutes", step.minutes}};
}

// A knob's value as JSON; null where none is said.
Json FromToml(const std::string& toml) {
  if (toml.empty()) return nullptr;
  Json value = Json::parse(toml, nullptr, false);
  return value.is_discarded() ? Json(toml) : value;
}

// The live part of the text with the learner's plan put in; null where there is none.
Json LiveText(const PluginRegistry& registry, const LessonStep& step, const LessonState& state) {
  if (step.live.empty() || state.planned.document.is_null()) return nullptr;
  LessonPlans plans(registry, step);
  plans.SetNow(state.sets, state.planned.document);
  std::vector<std::string> ignored;  // of the course: `show` tells them
  return FillFigures(step.live, plans, &ignored);
}

// What a key is in the plan as it is: from `resolved`, which is the scenario with every default.
Json Current(const LessonState& state, const std::string& key) {
  for (const std::string& set : state.sets) {
    if (KeyOf(set) != key) continue;
    Json value = Json::parse(ValueOf(set), nullptr, false);
    return value.is_discarded() ? Json(ValueOf(set)) : value;
  }
  const Json* found = ValueAt(state.planned.planned.composed.resolved, key);
  return found == nullptr ? Json(nullptr) : *found;
}

// The pipeline of a plan as a chart, one line a rank, in units of a forward pass; none where it
// would not fit a terminal.
Json ChartOf(const PluginRegistry& registry, const Json& plan) {
  constexpr int kWidest = 16;  // micro-batches and ranks
  constexpr int kColumns = 80;
  Json lines = Json::array();
  if (plan.is_null()) return lines;
  const Json& shape = plan.at("plan");
  ScheduleRequest request;
  request.name = shape.at("schedule").get<std::string>();
  request.shape = {shape.at("pipeline").get<int>(), shape.at("chunks").get<int>(),
                   shape.at("micro_batches").get<int>()};
  request.chunks_given = request.shape.chunks > 1;
  if (request.shape.ranks < 2 || request.shape.ranks > kWidest) return lines;
  if (request.shape.micro_batches > kWidest) return lines;
  if (shape.at("recompute").at("mode") != "none") request.times.recompute = 1;
  Diagnostics ignored;  // what a schedule needs besides its shape is told where it is planned
  const std::optional<ScheduleStudy> study = StudySchedule(registry, request, &ignored);
  if (!study) return lines;
  std::istringstream chart(StudyChart(*study, {kColumns, false}));
  for (std::string line; std::getline(chart, line);)
    if (line.starts_with("rank")) lines.push_back(line);
  return lines;
}

}  // namespace

Json ListDocument(const std::vector<LessonStep>& course, const LessonProgress& progress) {
  Json steps = Json::array();
  int left = 0, total = 0, done = 0;
  Json next = nullptr;
  for (const LessonStep& step : course) {
    const bool is_done = progress.Done(step.slug);
    steps.push_back({{"number", step.number},
                     {"slug", step.slug},
                     {"title", step.title},
                     {"part", step.part},
                     {"minutes", step.minutes},
                     {"done", is_done}});
    total += step.minutes;
    done += is_done ? 1 : 0;
    if (is_done) continue;
    left += step.minutes;
    if (next.is_null()) next = step.slug;
  }
  return {{"schema", kLessonSchema}, {"steps", steps},       {"done", done},
          {"minutes", total},        {"minutes_left", left}, {"next", next}};
}

Json GaugesDocument(const LessonPlanned& planned) {
  const Json& plan = planned.document;
  if (plan.is_null()) return {{"legal", false}, {"reason", planned.Why()}};
  const Json& memory = plan.at("memory");
  const Json& time = plan.at("time");
  Json ranks = Json::array(), totals = Json::array();
  for (const Json& rank : memory.at("ranks")) {
    Json entry = Json::object();
    double named = 0;
    for (const char* account :
         {"parameters_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes"}) {
      entry[account] = rank.at(account);
      named += rank.at(account).get<double>();
    }
    entry["other_bytes"] = rank.at("total_bytes").get<double>() - named;
    entry["total_bytes"] = rank.at("total_bytes");
    ranks.push_back(std::move(entry));
    totals.push_back(rank.at("total_bytes"));
  }
  const double capacity = memory.at("capacity_bytes").get<double>();
  const auto sum = [&](const char* of) {
    double seconds = 0;
    for (const auto& [axis, part] : time.at(of).items()) seconds += part.get<double>();
    return seconds;
  };
  double compute = 0;
  for (const char* part : {"forward_seconds", "backward_seconds", "recompute_seconds"})
    compute += time.at(part).get<double>();
  return {{"legal", true},
          {"fits", memory.at("fits")},
          {"verdict", memory.at("verdict")},
          {"capacity_bytes", memory.at("capacity_bytes")},
          {"peak_bytes", memory.at("peak_bytes")},
          {"headroom_bytes", memory.at("headroom_bytes")},
          {"headroom_fraction", memory.at("headroom_bytes").get<double>() / capacity},
          {"rank_bytes", totals},
          {"ranks", ranks},
          {"data", plan.at("plan").at("data")},
          {"micro_batches", plan.at("plan").at("micro_batches")},
          {"step_seconds", time.at("step_seconds")},
          {"compute_seconds", compute},
          {"hidden_seconds", sum("hidden")},
          {"exposed_seconds", sum("exposed")},
          {"bubble_fraction", time.at("bubble_fraction")},
          {"mfu", plan.at("throughput").at("mfu")},
          {"tokens_per_second", plan.at("throughput").at("tokens_per_second")}};
}

Json ChangesDocument(const LessonStep& step, const LessonState& from, const LessonState& to) {
  Json changes = Json::array();
  for (const LessonKnob& knob : step.knobs) {
    const Json was = Current(from, knob.key), is = Current(to, knob.key);
    if (was != is)
      changes.push_back({{"key", knob.key}, {"label", knob.label}, {"from", was}, {"to", is}});
  }
  return changes;
}

LessonState StateOf(const PluginRegistry& registry, const LessonStep& step,
                    const std::vector<std::string>& sets) {
  return {sets, PlanLesson(registry, step.scenario, sets)};
}

void CheckKnobs(const LessonStep& step, const std::vector<std::string>& sets,
                Diagnostics& diagnostics) {
  std::vector<std::string> keys;
  for (const LessonKnob& knob : step.knobs) keys.push_back(knob.key);
  for (const std::string& set : sets) {
    const std::string key = KeyOf(set);
    if (set.find('=') == std::string::npos) {
      diagnostics.Error("lesson.set", {}, absl::StrCat("\"", set, "\" is no KEY=VALUE"),
                        absl::StrCat("keys of this step: ", Enumerate(keys)));
    } else if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string near = Nearest(key, keys);
      diagnostics.Error("lesson.knob", {}, absl::StrCat("this step does not change ", key),
                        near.empty() ? absl::StrCat("it changes ", Enumerate(keys))
                                     : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }
}

Json GoalDocument(const PluginRegistry& registry, const LessonStep& step,
                  const std::vector<LessonRequirement>& requirements,
                  const LessonPlanned& planned) {
  if (requirements.empty()) return nullptr;
  LessonPlans plans(registry, step);
  const bool legal = !planned.document.is_null();
  plans.Add("plan", planned.document);
  bool all = legal;
  Json told = Json::array();
  for (const LessonRequirement& require : requirements) {
    Json entry = {{"text", require.text}};
    bool holds = legal;
    if (holds) {
      const ExpressionResult value = plans.Evaluate(require.value);
      holds = value.ok();
      if (!value.ok()) entry["problem"] = value.problem;
      entry["value"] = value.number.value;
      const auto bound = [&](const char* name, const std::string& expression, int sign) {
        if (expression.empty()) return;
        const ExpressionResult limit = plans.Evaluate(expression);
        if (!limit.ok()) {
          entry["problem"] = limit.problem;
          holds = false;
          return;
        }
        entry[name] = limit.number.value;
        const double slack = kLastDigits * std::abs(limit.number.value);
        holds = holds && sign * (limit.number.value - value.number.value) <= slack;
      };
      bound("min", require.min, 1);
      bound("max", require.max, -1);
    }
    entry["holds"] = holds;
    all = all && holds;
    told.push_back(std::move(entry));
  }
  return {{"reached", all}, {"text", step.goal_text}, {"requirements", told}};
}

Json StateDocument(const PluginRegistry& registry, const LessonStep& step,
                   const LessonState& state) {
  Json out = HeadOf(step);
  out["set"] = state.sets;
  out["gauges"] = GaugesDocument(state.planned);
  out["live"] = LiveText(registry, step, state);
  Json knobs = Json::array();
  for (const LessonKnob& knob : step.knobs) {
    Json values = Json::array();
    for (const std::string& value : knob.values) {
      const LessonState other =
          StateOf(registry, step, MergedSets(state.sets, {absl::StrCat(knob.key, "=", value)}));
      Json parsed = Json::parse(value, nullptr, false);
      Json entry = {{"value", parsed.is_discarded() ? Json(value) : parsed},
                    {"legal", !other.planned.document.is_null()}};
      if (other.planned.document.is_null())
        entry["reason"] = other.planned.Why();
      else
        entry["fits"] = other.planned.document.at("memory").at("fits");
      values.push_back(std::move(entry));
    }
    knobs.push_back({{"key", knob.key},
                     {"label", knob.label},
                     {"flag", knob.flag.empty() ? Json(nullptr) : Json(knob.flag)},
                     {"value", Current(state, knob.key)},
                     {"with", FromToml(knob.with)},
                     {"without", FromToml(knob.without)},
                     {"values", values}});
  }
  out["knobs"] = knobs;
  out["goal"] = GoalDocument(registry, step, step.goal, state.planned);
  out["chart"] = ChartOf(registry, state.planned.document);
  out["plan"] = state.planned.document;
  return out;
}

Json ShowDocument(const PluginRegistry& registry, const LessonStep& step,
                  std::vector<std::string>* problems) {
  Json out = HeadOf(step);
  LessonPlans plans(registry, step);
  out["text"] = FillFigures(step.text, plans, problems);
  out["figures"] = plans.Figures(problems);
  Json shown = Json::object(), constants = Json::object();
  for (const auto& [name, value] : step.constants) {
    constants[name] = value;
    shown[name] = FormatFigure(name, "", value);
  }
  out["constants"] = constants;
  for (const auto& [name, value] : out["figures"].items())
    shown[name] = value.is_number() ? FormatFigure(name, "", value.get<double>()) : value.dump();
  out["figures_shown"] = shown;
  Json questions = Json::array();
  for (std::size_t i = 0; i < step.questions.size(); ++i) {
    const AskedQuestion asked = AskQuestion(registry, step, i, std::nullopt);
    if (!asked.problem.empty()) problems->push_back(asked.problem);
    static constexpr const char* kKinds[] = {"number", "fraction", "integer", "text", "match"};
    questions.push_back({{"question", i + 1},
                         {"kind", kKinds[static_cast<int>(asked.kind)]},
                         {"text", asked.text},
                         {"unit", asked.unit},
                         {"choices", asked.choices},
                         {"seeded", !step.questions[i].draw.table.empty()}});
  }
  out["questions"] = questions;
  if (!step.break_sets.empty()) {
    const LessonState broken = StateOf(registry, step, step.break_sets);
    out["break"] = {{"text", FillFigures(step.break_text, plans, problems)},
                    {"set", step.break_sets},
                    {"gauges", GaugesDocument(broken.planned)},
                    {"goal", GoalDocument(registry, step, step.goal, broken.planned)}};
  }
  if (!step.prediction.text.empty())
    out["predict"] = {{"text", FillFigures(step.prediction.text, plans, problems)},
                      {"choices", step.prediction.choices},
                      {"told", FillFigures(step.prediction.told, plans, problems)}};
  out["front"] = FrontDocument(step, plans, problems);
  if (!step.mix.steps.empty())
    out["mix"] = {{"steps", step.mix.steps}, {"questions", step.mix.questions}};
  Json events = Json::array();
  for (const LessonEvent& event : step.events)
    events.push_back({{"name", event.name}, {"text", event.text}, {"set", event.sets}});
  if (!events.empty()) out["events"] = events;
  const LessonState start = StateOf(registry, step, {});
  out["gauges"] = GaugesDocument(start.planned);
  out["goal"] = GoalDocument(registry, step, step.goal, start.planned);
  if (start.planned.document.is_null())
    problems->push_back(absl::StrCat("scenario.toml: ", start.planned.Why()));
  out["chart"] = ChartOf(registry, start.planned.document);
  out["plan"] = start.planned.document;
  return out;
}

}  // namespace shardlab
