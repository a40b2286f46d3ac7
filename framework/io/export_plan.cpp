#include "io/export_plan.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/guarded.h"
#include "io/plan_document.h"
#include "io/render_diagnostics.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPrefix = "export-";

Value FromJson(const Json& json) {
  if (json.is_boolean()) return Value::Boolean(json.get<bool>());
  if (json.is_number_integer()) return Value::Integer(json.get<std::int64_t>());
  if (json.is_number()) return Value::Number(json.get<double>());
  if (json.is_string()) return Value::Text(json.get<std::string>());
  Value value;
  if (json.is_array()) {
    value.kind = Value::kArray;
    for (const Json& item : json) value.array.push_back(FromJson(item));
  } else if (json.is_object()) {
    value.kind = Value::kTable;
    for (const auto& [key, item] : json.items()) value.table.emplace_back(key, FromJson(item));
  }
  return value;
}

// Where the user wrote a key, or the nearest table around it, or the file.
Place PlaceOf(const Scenario& scenario, const std::string& key) {
  for (std::string at = key; !at.empty();) {
    if (const Value* value = scenario.root.FindPath(at); value != nullptr) {
      Place place =
          value->place.line > 0 || value->key_place.line == 0 ? value->place : value->key_place;
      place.key = key;
      return place;
    }
    const std::size_t dot = at.rfind('.');
    at.resize(dot == std::string::npos ? 0 : dot);
  }
  return {scenario.file, 0, 0, key};
}

std::unique_ptr<Exporter> MakeExporter(const PluginRegistry& registry, const std::string& name,
                                       Diagnostics* diagnostics) {
  const std::vector<std::string> all = registry.Names(Exporter::kKind);
  const bool whole = std::find(all.begin(), all.end(), name) != all.end();
  const std::string plugin = whole ? name : absl::StrCat(kPrefix, name);
  if (std::find(all.begin(), all.end(), plugin) == all.end()) {
    const std::vector<std::string> names = ExportNames(registry);
    const std::string near = Nearest(name, names);
    diagnostics->Error("export.unknown", {}, absl::StrCat("there is no export \"", name, "\""),
                       absl::StrCat(near.empty() ? "" : absl::StrCat("did you mean ", near, "? "),
                                    ThereAre(names)));
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Exporter>> made = registry.Make<Exporter>(plugin);
  if (!made.ok()) {
    diagnostics->Error("plugin.unknown", {}, std::string(made.status().message()));
    return nullptr;
  }
  const std::string directory =
      std::filesystem::path(registry.Find(Exporter::kKind, plugin)->file).parent_path().string();
  InitContext context;
  const AccountingRules no_rules;  // an exporter translates; nothing is counted
  const Precision no_precision;
  context.rules = &no_rules;
  context.precision = &no_precision;
  context.directory = directory;
  context.diagnostics = diagnostics;
  context.read_toml = [directory, diagnostics](const std::string& file) {
    return ReadTomlFile(absl::StrCat(directory, "/", file), *diagnostics);
  };
  const absl::Status done = Guarded(absl::StrCat("plugin \"", plugin, "\" cannot be initialised"),
                                    [&] { (*made)->Init(context); });
  if (!done.ok()) {
    diagnostics->Error("plugin.threw", {}, std::string(done.message()));
    return nullptr;
  }
  return std::move(*made);
}

}  // namespace

std::vector<std::string> ExportNames(const PluginRegistry& registry) {
  std::vector<std::string> names = registry.Names(Exporter::kKind);
  for (std::string& name : names)
    if (name.starts_with(kPrefix)) name.erase(0, std::string(kPrefix).size());
  std::sort(names.begin(), names.end());
  return names;
}

ExportedPlan ExportPlan(const PluginRegistry& registry, const std::string& name,
                        const Scenario& scenario, Diagnostics* diagnostics) {
  ExportedPlan out;
  const std::unique_ptr<Exporter> exporter = MakeExporter(registry, name, diagnostics);
  const PlannedScenario planned = PlanScenario(registry, scenario, diagnostics);
  if (exporter == nullptr || planned.composed.composition == nullptr) return out;
  const Value document = FromJson(PlanDocument(planned, *diagnostics));
  const ExportInput input(
      document, [&](const std::string& key) { return PlaceOf(scenario, key); }, diagnostics);
  const absl::Status done = Guarded(absl::StrCat("export \"", name, "\" cannot write"), [&] {
    out.framework = exporter->framework();
    out.version = exporter->version();
    out.files = exporter->Files(input);
  });
  if (!done.ok()) diagnostics->Error("plugin.threw", {}, std::string(done.message()));
  if (diagnostics->HasErrors()) out.files.clear();
  return out;
}

Json ExportDocument(const ExportedPlan& exported, const Diagnostics& diagnostics) {
  Json files = Json::array(), told = Json::array();
  for (const ExportedFile& file : exported.files)
    files.push_back({{"name", file.name}, {"text", file.text}});
  for (const Diagnostic& d : diagnostics.all()) told.push_back(DiagnosticToJson(d));
  return {{"schema", "shardlab.export/1"},
          {"framework", exported.framework},
          {"version", exported.version},
          {"files", files},
          {"diagnostics", told}};
}

std::string ExportedLines(const ExportedPlan& exported, const std::vector<std::string>& words,
                          std::vector<std::string>* missing) {
  std::vector<std::string> lines;
  std::set<std::string> met;
  for (const ExportedFile& file : exported.files) {
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(file.text, '\n'))) {
      bool shown = false;
      for (const std::string& word : words) {
        if (line.find(word) == std::string::npos) continue;
        met.insert(word);
        shown = true;
      }
      if (shown) lines.push_back(line);
    }
  }
  for (const std::string& word : words)
    if (met.count(word) == 0) missing->push_back(word);
  std::size_t indent = std::string::npos;
  for (const std::string& line : lines) indent = std::min(indent, line.find_first_not_of(' '));
  std::string out;
  for (const std::string& line : lines)
    absl::StrAppend(&out, out.empty() ? "" : "\n", line.substr(indent));
  return out;
}

}  // namespace shardlab
