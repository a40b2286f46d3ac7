#include "io/measurement_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

const std::vector<std::string> kRuleKeys = {"when", "columns",   "scenario",    "memory",
                                            "skip", "skip_step", "skip_memory", "from"};
const std::vector<std::string> kSourceKeys = {"name",      "title",       "from",   "when",
                                              "columns",   "scenario",    "memory", "skip",
                                              "skip_step", "skip_memory", "rule"};
const std::vector<std::string> kCheckKeys = {"name", "when",    "memory", "least",
                                             "most", "doubles", "from"};
const std::vector<std::string> kTopKeys = {"text_columns", "required", "rule", "source", "check"};
const std::vector<std::string> kOf = {"resident", "allocated", "reserved", "total"};
const std::vector<std::string> kRank = {"max", "first", "last"};
const std::vector<std::string> kUnit = {"GiB", "GB"};

class RulesReader {
 public:
  explicit RulesReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    for (const MeasurementColumn& column : MeasurementColumns()) columns_.emplace_back(column.name);
  }

  MeasurementRules Read(const Value& root) {
    MeasurementRules out;
    Keys(root, kTopKeys);
    if (const Value* more = root.Find("text_columns")) {
      for (const Value& name : List(*more)) out.text_columns.push_back(name.text);
      columns_.insert(columns_.end(), out.text_columns.begin(), out.text_columns.end());
    }
    out.required = Columns(root, "required");
    for (const Value& table : Tables(root, "rule")) {
      Keys(table, kRuleKeys);
      out.rules.push_back(Rule(table));
    }
    for (const Value& table : Tables(root, "source")) out.sources.push_back(Source(table));
    for (const Value& table : Tables(root, "check")) out.checks.push_back(Check(table));
    return out;
  }

 private:
  void Keys(const Value& table, const std::vector<std::string>& known) {
    for (const auto& [key, value] : table.table) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = Nearest(key, known);
      diagnostics_.Error("key.unknown", value.key_place,
                         absl::StrCat("there is no key \"", key, "\" here"),
                         near.empty() ? absl::StrCat("keys: ", Enumerate(known))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  std::vector<Value> List(const Value& value) {
    return value.kind == Value::kArray ? value.array : std::vector<Value>{value};
  }

  std::vector<Value> Tables(const Value& root, const char* key) {
    const Value* value = root.Find(key);
    if (value == nullptr) return {};
    std::vector<Value> tables;
    for (const Value& item : List(*value)) {
      if (item.kind == Value::kTable) {
        tables.push_back(item);
      } else {
        diagnostics_.Error(
            "value.kind", item.place,
            absl::StrCat("\"", key, "\" must be a table, not ", Value::Name(item.kind)),
            absl::StrCat("write [[", key, "]]"));
      }
    }
    return tables;
  }

  const Value* Table(const Value& table, const char* key) {
    const Value* value = table.Find(key);
    if (value == nullptr || value->kind == Value::kTable) return value;
    diagnostics_.Error(
        "value.kind", value->place,
        absl::StrCat("\"", key, "\" must be a table, not ", Value::Name(value->kind)));
    return nullptr;
  }

  std::string Text(const Value& table, const char* key) {
    const Value* value = table.Find(key);
    if (value == nullptr) return "";
    if (value->kind == Value::kText) return value->text;
    diagnostics_.Error(
        "value.kind", value->place,
        absl::StrCat("\"", key, "\" must be a string, not ", Value::Name(value->kind)));
    return "";
  }

  bool Column(const std::string& name, const Place& place) {
    if (std::find(columns_.begin(), columns_.end(), name) != columns_.end()) return true;
    const std::string near = Nearest(name, columns_);
    diagnostics_.Error("measurement.column", place,
                       absl::StrCat("measurements have no column \"", name, "\""),
                       near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"?"));
    return false;
  }

  std::vector<std::string> Columns(const Value& table, const char* key) {
    std::vector<std::string> names;
    const Value* value = table.Find(key);
    if (value == nullptr) return names;
    for (const Value& name : List(*value)) {
      if (Column(name.text, name.place)) names.push_back(name.text);
    }
    return names;
  }

  RowFilter ReadWhen(const Value& table) {
    RowFilter when;
    const Value* conditions = Table(table, "when");
    if (conditions == nullptr) return when;
    for (const auto& [column, patterns] : conditions->table) {
      if (!Column(column, patterns.key_place)) continue;
      ColumnPattern pattern{column, {}};
      for (const Value& item : List(patterns))
        pattern.any.push_back(item.kind == Value::kText ? item.text : ToToml(item));
      when.push_back(std::move(pattern));
    }
    return when;
  }

  MeasurementRule Rule(const Value& table) {
    MeasurementRule rule;
    rule.when = ReadWhen(table);
    if (const Value* columns = Table(table, "columns")) {
      for (const auto& [name, value] : columns->table) {
        if (Column(name, value.key_place)) rule.columns.emplace_back(name, value);
      }
    }
    if (const Value* scenario = Table(table, "scenario")) rule.scenario = scenario->table;
    for (const auto& [key, value] : rule.scenario) {
      if (!ParseTomlKey(key)) {
        diagnostics_.Error("key.unknown", value.key_place,
                           absl::StrCat("\"", key, "\" is no key of a scenario"),
                           "write \"strategy.tensor.degree\"");
      }
    }
    if (const Value* memory = Table(table, "memory")) {
      Keys(*memory, {"of", "rank", "unit"});
      Choice(*memory, "of", kOf, &rule);
      Choice(*memory, "rank", kRank, &rule);
      Choice(*memory, "unit", kUnit, &rule);
    }
    if (table.Find("skip") != nullptr) rule.skip = Text(table, "skip");
    if (table.Find("skip_step") != nullptr) rule.skip_step = Text(table, "skip_step");
    if (table.Find("skip_memory") != nullptr) rule.skip_memory = Text(table, "skip_memory");
    return rule;
  }

  void Choice(const Value& memory, const char* key, const std::vector<std::string>& choices,
              MeasurementRule* rule) {
    const std::string text = Text(memory, key);
    if (memory.Find(key) == nullptr) return;
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      diagnostics_.Error("value.choice", memory.Find(key)->place,
                         absl::StrCat("\"", key, "\" must be ", Enumerate(choices, "or")));
      return;
    }
    rule->memory.emplace_back(key, text);
  }

  MeasurementSource Source(const Value& table) {
    Keys(table, kSourceKeys);
    MeasurementSource source;
    source.name = Text(table, "name");
    source.title = Text(table, "title");
    source.from = Text(table, "from");
    source.rule = Rule(table);
    if (source.name.empty() || source.rule.when.empty()) {
      diagnostics_.Error("key.missing", table.place, "a source needs a name and a \"when\"",
                         "name = \"runs\", when = { id = \"runs-*\" }");
    }
    for (const Value& rule : Tables(table, "rule")) {
      Keys(rule, kRuleKeys);
      source.rules.push_back(Rule(rule));
    }
    return source;
  }

  SlopeCheck Check(const Value& table) {
    Keys(table, kCheckKeys);
    SlopeCheck check;
    check.name = Text(table, "name");
    check.memory = Text(table, "memory");
    check.from = Text(table, "from");
    check.when = ReadWhen(table);
    check.doubles = Columns(table, "doubles");
    if (std::find(kOf.begin(), kOf.end(), check.memory) == kOf.end()) {
      diagnostics_.Error("value.choice", table.place,
                         absl::StrCat("\"memory\" of a check must be ", Enumerate(kOf, "or")));
    }
    for (const auto& [key, to] :
         {std::pair("least", &check.least), std::pair("most", &check.most)}) {
      const Value* value = table.Find(key);
      if (value != nullptr && (value->kind == Value::kNumber || value->kind == Value::kInteger)) {
        *to = value->number;
      } else {
        diagnostics_.Error("key.missing", table.place,
                           absl::StrCat("a check needs \"", key, "\", in bytes a parameter"));
      }
    }
    return check;
  }

  Diagnostics& diagnostics_;
  std::vector<std::string> columns_;
};

bool Glob(const char* pattern, const char* text) {
  for (; *pattern != '\0'; ++pattern, ++text) {
    if (*pattern == '*') {
      do {
        if (Glob(pattern + 1, text)) return true;
      } while (*text++ != '\0');
      return false;
    }
    if (*text == '\0' || (*pattern != '?' && *pattern != *text)) return false;
  }
  return *text == '\0';
}

bool MatchesOne(const std::string& pattern, const std::string& cell) {
  if (!pattern.empty() && pattern[0] == '!') return !MatchesOne(pattern.substr(1), cell);
  if (!pattern.empty() && (pattern[0] == '<' || pattern[0] == '>')) {
    const bool equal = pattern.size() > 1 && pattern[1] == '=';
    const auto limit =
        ReadCell(std::string_view(pattern).substr(equal ? 2 : 1), MeasurementColumn::kPositive);
    const auto value = ReadCell(cell, MeasurementColumn::kPositive);
    if (!limit || !value) return false;
    if (equal && *value == *limit) return true;
    return pattern[0] == '<' ? *value < *limit : *value > *limit;
  }
  return Glob(pattern.c_str(), cell.c_str());
}

}  // namespace

MeasurementRules MeasurementRulesFromText(const std::string& text, const std::string& file,
                                          Diagnostics& diagnostics) {
  const Value root = ParseToml(text, file, diagnostics);
  MeasurementRules rules;
  if (root.kind == Value::kTable) rules = RulesReader(diagnostics).Read(root);
  rules.file = file;
  return rules;
}

MeasurementRules ReadMeasurementRules(const std::string& path, Diagnostics& diagnostics) {
  const std::optional<std::string> text = ReadTextFile(path, diagnostics);
  return text ? MeasurementRulesFromText(*text, path, diagnostics) : MeasurementRules{};
}

bool Matches(const RowFilter& when, const Measurement& measurement) {
  return std::all_of(when.begin(), when.end(), [&](const ColumnPattern& condition) {
    const std::string& cell = measurement.Text(condition.column);
    return std::any_of(condition.any.begin(), condition.any.end(),
                       [&](const std::string& pattern) { return MatchesOne(pattern, cell); });
  });
}

}  // namespace shardlab
