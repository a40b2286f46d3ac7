#include "io/search_schedules.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/composition.h"
#include "io/compose_scenario.h"
#include "io/guarded.h"
#include "io/parameter_io.h"
#include "io/search_grid.h"

namespace shardlab {
namespace {

template <class T>
bool Among(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

int IntegerOf(const Scenario& scenario, const char* key, int otherwise) {
  const Value* value = scenario.root.FindPath(key);
  return value != nullptr && value->kind == Value::kInteger ? static_cast<int>(value->integer)
                                                            : otherwise;
}

}  // namespace

SearchSchedules::SearchSchedules(const PluginRegistry& registry, const Scenario& scenario,
                                 const Scenario& bare, const std::vector<ScheduleOffer>& offers,
                                 const TriedSchedule& file, SearchTable* table,
                                 Diagnostics* diagnostics, ComposeMemory* memory)
    : registry_(registry),
      scenario_(scenario),
      bare_(bare),
      offers_(offers),
      file_(file),
      table_(*table),
      diagnostics_(*diagnostics),
      memory_(*memory) {
  const Value* said = bare_.root.Find("schedule");
  if (said == nullptr || said->kind != Value::kTable) return;
  for (const std::string& parameter : ParametersOf(file_.name)) {
    if (said->Find(parameter) != nullptr) own_parameters_.push_back(parameter);
  }
}

PipelineRule SearchSchedules::Rule(const std::vector<int>& degrees) {
  PipelineRule rule;
  rule.degrees = degrees;
  if (table_.Varied("schedule.degree")) {
    if (const auto varied = table_.TakeIntegers("schedule.degree")) rule.degrees = *varied;
  } else if (table_.Fixed("schedule.degree")) {
    rule.degrees = {IntegerOf(scenario_, "schedule.degree", 1)};
  }
  if (table_.Varied("schedule.chunks")) {
    rule.chunks = table_.TakeIntegers("schedule.chunks");
  } else if (table_.Fixed("schedule.chunks")) {
    rule.by_themselves = scenario_.root.FindPath("schedule.chunks") == nullptr;
    if (!rule.by_themselves) rule.chunks = {IntegerOf(scenario_, "schedule.chunks", 1)};
  }
  for (const std::string& name : Names()) rule.schedules.push_back(Tried(name));
  ShapeOfFile(&rule);
  return rule;
}

// As varied, as fixed, or those that are tried by default and the file's.
std::vector<std::string> SearchSchedules::Names() {
  std::vector<std::string> names;
  if (table_.Varied("schedule.plugin")) {
    const auto varied = table_.Take("schedule.plugin", Value::kText);
    if (!varied) return names;
    const std::vector<std::string> known = registry_.Names("schedule");
    for (const Value& value : *varied) {
      if (Among(known, value.text)) {
        names.push_back(value.text);
        continue;
      }
      const std::string near = Nearest(value.text, known);
      diagnostics_.Error("plugin.unknown", value.place,
                         absl::StrCat("there is no schedule \"", value.text, "\""),
                         near.empty() ? absl::StrCat("there are ", Enumerate(known))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
    return names;
  }
  if (table_.Fixed("schedule.plugin")) return {file_.name};
  for (const ScheduleOffer& offer : offers_) {
    if (offer.by_default) names.push_back(offer.name);
  }
  if (scenario_.root.FindPath("schedule.plugin") != nullptr && !Among(names, file_.name))
    names.push_back(file_.name);
  return names;
}

TriedSchedule SearchSchedules::Tried(const std::string& name) {
  TriedSchedule tried;
  tried.name = name;
  for (const ScheduleOffer& offer : offers_) {
    if (offer.name == name) tried.many_chunks = offer.chunks;
  }
  if (name == file_.name) {
    tried.schedule = file_.schedule;
    if (!tried.many_chunks.value_or(false))
      tried.also_chunks = IntegerOf(scenario_, "schedule.chunks", 0);
    return tried;
  }
  Scenario with = bare_;
  if (!own_parameters_.empty()) {
    const std::vector<std::string> parameters = ParametersOf(name);
    for (const std::string& own : own_parameters_) {
      if (Among(parameters, own)) continue;
      foreign_[name].push_back("schedule." + own);
      EraseKey(&with.root, "schedule." + own);
    }
  }
  SetKey(&with.root, "schedule.plugin", Value::Text(name));
  Diagnostics own;
  const ComposedScenario composed =
      ComposeScenario(registry_, with, &own, ComposeWhat::kCompositionOnly, &memory_);
  if (composed.composition != nullptr) tried.schedule = composed.composition->schedule;
  return tried;
}

// As far as its keys are not varied otherwise.
void SearchSchedules::ShapeOfFile(PipelineRule* rule) const {
  if (table_.Varied("schedule.layers") || table_.Varied("schedule.balance")) return;
  Diagnostics own;
  const ComposedScenario composed =
      ComposeScenario(registry_, scenario_, &own, ComposeWhat::kCompositionOnly, &memory_);
  if (composed.composition == nullptr) return;
  const PlanRequest& request = composed.request;
  if (table_.Decided("schedule.degree") && !Among(rule->degrees, request.pipeline)) return;
  if (rule->chunks && !Among(*rule->chunks, request.chunks)) return;
  rule->file = Pipeline{file_.name, request.pipeline, request.chunks, false, false, 0};
  rule->only_file_split = table_.Fixed("schedule.layers");
  FileSplit& split = rule->file_split;
  split.layers = request.layers;
  split.balance = request.balance;
  split.count_ends = request.count_ends;
  if (split.layers.empty() && split.balance == Balance::kEven && !split.count_ends) return;
  for (const char* key : {"schedule.layers", "schedule.balance", "schedule.count_ends"}) {
    if (const Value* value = scenario_.root.FindPath(key)) split.settings.emplace_back(key, *value);
  }
}

std::vector<std::string> SearchSchedules::ParametersOf(const std::string& name) const {
  std::vector<std::string> parameters;
  const absl::StatusOr<std::unique_ptr<Plugin>> made = registry_.Make("schedule", name);
  if (!made.ok()) return parameters;
  ParameterDocumenter documenter;
  const absl::Status visited = Guarded("parameters", [&] { (*made)->Visit(documenter); });
  if (!visited.ok()) return parameters;
  for (const ParameterDoc& doc : documenter.docs()) parameters.push_back(doc.name);
  return parameters;
}

}  // namespace shardlab
