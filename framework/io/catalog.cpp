#include "io/catalog.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/scenario.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

std::string FileOf(const DataFolder& folder, const std::string& kind) {
  return absl::StrCat(folder.directory, "/", kind, ".toml");
}

std::optional<Value> ReadCatalog(const PluginRegistry& registry, const std::string& kind,
                                 const std::string& name, const Place& place,
                                 Diagnostics& diagnostics) {
  for (const DataFolder& folder : registry.DataFolders()) {
    if (folder.name != name || !std::filesystem::exists(FileOf(folder, kind))) continue;
    Diagnostics own;
    Value value = ReadTomlFile(FileOf(folder, kind), own);
    diagnostics.Append(own);
    if (own.HasErrors()) return std::nullopt;
    return value;
  }
  const std::vector<std::string> names = CatalogNames(registry, kind);
  const std::string near = Nearest(name, names);
  std::string hint = names.empty() ? "no plugin directory has any; see --plugins" : ThereAre(names);
  if (!near.empty()) hint = absl::StrCat("did you mean \"", near, "\"? ", hint);
  diagnostics.Error(absl::StrCat(kind, ".unknown"), place,
                    absl::StrCat("there is no ", kind, " \"", name, "\""), hint);
  return std::nullopt;
}

void ReadFlag(const Value& table, const char* key, bool* into) {
  if (const Value* value = table.Find(key)) *into = value->boolean;
}

std::map<std::string, bool> ReadFacts(const Value& table) {
  std::map<std::string, bool> facts;
  if (const Value* list = table.Find("facts")) {
    for (const auto& [name, value] : list->table) facts[name] = value.boolean;
  }
  return facts;
}

}  // namespace

std::vector<std::string> CatalogNames(const PluginRegistry& registry, const std::string& kind) {
  std::vector<std::string> names;
  for (const DataFolder& folder : registry.DataFolders()) {
    if (std::filesystem::exists(FileOf(folder, kind))) names.push_back(folder.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string DefaultAccounting(const PluginRegistry& registry) {
  for (const DataFolder& folder : registry.DataFolders()) {
    if (!std::filesystem::exists(FileOf(folder, "accounting"))) continue;
    Diagnostics ignored;  // told when the accounting is asked for
    const Value table = ReadTomlFile(FileOf(folder, "accounting"), ignored);
    const Value* is_default = table.Find("default");
    if (is_default != nullptr && is_default->boolean) return folder.name;
  }
  return "";
}

std::optional<Accounting> ReadAccounting(const PluginRegistry& registry, const std::string& name,
                                         const Place& place, Diagnostics& diagnostics) {
  const std::optional<Value> table = ReadCatalog(registry, "accounting", name, place, diagnostics);
  if (!table) return std::nullopt;
  Accounting accounting;
  AccountingRules& rules = accounting.rules;
  rules.name = name;
  ReadFlag(*table, "coarse_program", &rules.coarse_program);
  ReadFlag(*table, "ceiling_division", &rules.ceiling_division);
  ReadFlag(*table, "prefetch_hides_in_slot", &rules.prefetch_hides_in_slot);
  ReadFlag(*table, "reductions_after_pipeline", &rules.reductions_after_pipeline);
  ReadFlag(*table, "equal_passes", &rules.equal_passes);
  ReadFlag(*table, "pairs_overlap", &rules.pairs_overlap);
  ReadFlag(*table, "count_gathered", &rules.count_gathered);
  ReadFlag(*table, "count_optimizer_time", &rules.count_optimizer_time);
  if (const Value* mfu = table->Find("mfu_convention")) rules.mfu_convention = mfu->text;
  rules.facts = ReadFacts(*table);
  if (const Value* implied = table->Find("implied_strategies")) {
    for (const Value& item : implied->array) accounting.implied_strategies.push_back(item.text);
  }
  accounting.defaults.kind = Value::kTable;
  if (const Value* defaults = table->Find("defaults")) {
    for (const auto& [key, value] : defaults->table) {
      const std::optional<std::vector<std::string>> path = ParseTomlKey(key);
      if (path) SetAtPath(&accounting.defaults, *path, value, diagnostics);
    }
  }
  return accounting;
}

namespace {

// numbers = { NAME = { value = 0.9, source = "..." } }
void ReadNumbers(const Value& table, const char* what, std::map<std::string, SoftwareNumber>* out,
                 Diagnostics& diagnostics) {
  const Value* const list = table.Find("numbers");
  if (list == nullptr) return;
  for (const auto& [number, entry] : list->table) {
    const Value* value = entry.Find("value");
    const Value* source = entry.Find("source");
    if (value == nullptr || source == nullptr || source->text.empty()) {
      diagnostics.Error(absl::StrCat(what, ".number"), entry.place,
                        absl::StrCat(what, " number \"", number, "\" needs value and source"),
                        "write { value = 0.9, source = \"measured on ...\" }");
      continue;
    }
    (*out)[number] = {
        value->kind == Value::kInteger ? static_cast<double>(value->integer) : value->number,
        source->text};
  }
}

}  // namespace

std::optional<Precision> ReadRecipe(const PluginRegistry& registry, const std::string& name,
                                    const Place& place, Diagnostics& diagnostics,
                                    std::map<std::string, SoftwareNumber>* numbers) {
  const std::optional<Value> table = ReadCatalog(registry, "precision", name, place, diagnostics);
  if (!table) return std::nullopt;
  Precision precision;
  precision.recipe = name;
  const auto read = [&](const char* key, Dtype* into) {
    const Value* value = table->Find(key);
    if (value != nullptr && !ParseDtype(value->text, into)) {
      diagnostics.Error("precision.dtype", value->place,
                        absl::StrCat("there is no dtype \"", value->text, "\""));
    }
  };
  read("parameters", &precision.parameters);
  read("compute", &precision.compute);
  read("gradients", &precision.gradients);
  read("gradient_reduce", &precision.gradient_reduce);
  read("master", &precision.master);
  read("moments", &precision.moments);
  if (const Value* copies = table->Find("weight_copies")) {
    precision.weight_copies =
        copies->kind == Value::kInteger ? static_cast<double>(copies->integer) : copies->number;
  }
  if (numbers != nullptr) ReadNumbers(*table, "precision", numbers, diagnostics);
  return precision;
}

std::optional<Software> ReadSoftware(const PluginRegistry& registry, const std::string& name,
                                     const Place& place, Diagnostics& diagnostics) {
  const std::optional<Value> table = ReadCatalog(registry, "software", name, place, diagnostics);
  if (!table) return std::nullopt;
  Software software;
  software.name = name;
  if (const Value* version = table->Find("version")) software.version = version->text;
  software.facts = ReadFacts(*table);
  ReadNumbers(*table, "software", &software.numbers, diagnostics);
  return software;
}

}  // namespace shardlab
