#include "io/compose_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {

const Value* ComposeTables::Table(const std::string& path) {
  const Value* value = scenario_.root.FindPath(path);
  if (value == nullptr) return nullptr;
  if (value->kind == Value::kTable) return value;
  if (!Complained(path)) {
    complained_.push_back(path);
    diagnostics_.Error("key.kind", value->place,
                       absl::StrCat(path, " must be a table, not ", Value::Name(value->kind)),
                       absl::StrCat("write [", path, "] on a line of its own"));
  }
  return nullptr;
}

bool ComposeTables::Complained(const std::string& path) const {
  return std::find(complained_.begin(), complained_.end(), path) != complained_.end();
}

const Value* ComposeTables::Defaults(const std::string& path) const {
  const Value* value = accounting_->defaults.FindPath(path);
  return value != nullptr && value->kind == Value::kTable ? value : nullptr;
}

Place ComposeTables::PlaceOfTable(const Value* table, const std::string& path) const {
  return table != nullptr ? table->key_place.line > 0 ? table->key_place : table->place
                          : FilePlace(path);
}

std::string ComposeTables::Word(const Value* table, const std::string& path, const std::string& key,
                                Place* place, const std::vector<std::string>& names) {
  *place = PlaceOfTable(table, path);
  const Value* value = table != nullptr ? table->Find(key) : nullptr;
  if (value == nullptr) {
    if (const Value* defaults = Defaults(path)) value = defaults->Find(key);
    return value != nullptr && value->kind == Value::kText ? value->text : "";
  }
  *place = value->place;
  if (value->kind == Value::kText && value->text.empty()) {
    diagnostics_.Error("key.empty", value->place, absl::StrCat(path, ".", key, " is empty"),
                       names.empty()
                           ? absl::StrCat("write ", key, " = \"...\", or leave it out")
                           : absl::StrCat("write ", key, " = \"...\"; ", ThereAre(names)));
  }
  if (value->kind == Value::kText) return value->text;
  diagnostics_.Error(
      "key.kind", value->place,
      absl::StrCat(path, ".", key, " must be a string, not ", Value::Name(value->kind)),
      absl::StrCat("write ", key, " = \"...\""));
  return "";
}

void ComposeTables::UnknownKeys(const Value* table, const std::string& path,
                                const std::vector<std::string>& known) {
  if (table == nullptr) return;
  for (const auto& [key, value] : table->table) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = Nearest(key, known);
    diagnostics_.Error("key.unknown", value.key_place.line > 0 ? value.key_place : value.place,
                       absl::StrCat("[", path, "] has no key \"", key, "\""),
                       near.empty() ? absl::StrCat("it has ", Enumerate(known))
                                    : absl::StrCat("did you mean \"", near, "\"?"));
  }
}

}  // namespace shardlab
