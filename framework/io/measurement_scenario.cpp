#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/measurement_rules.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

// "4 * hidden / tp" or "tp - 1 / tp", strictly left to right; "128 * tp padding vocab" rounds vocab
// up to a multiple. Nothing when a column is blank or no number.
std::optional<double> Compute(const std::string& expression, const Measurement& m) {
  double result = 1;
  char operation = '*';
  for (const absl::string_view word : absl::StrSplit(expression, ' ', absl::SkipEmpty())) {
    if (word == "*" || word == "/" || word == "+" || word == "-" || word == "padding") {
      operation = word[0];
      continue;
    }
    const std::string name(word);
    std::optional<double> value = ReadCell(name, MeasurementColumn::kPositive);
    if (!value) value = m.Number(name);
    if (!value || (operation == '/' && *value == 0)) return std::nullopt;
    switch (operation) {
      case 'p':
        result *= std::ceil(*value / result);
        break;
      case '*':
        result *= *value;
        break;
      case '/':
        result /= *value;
        break;
      case '+':
        result += *value;
        break;
      default:
        result -= *value;
        break;
    }
  }
  return result;
}

// A rule's value for this row: "= ..." computed, text of a lone column copied, all else as it is.
std::optional<Value> Resolved(const Value& value, const Measurement& m) {
  if (value.kind != Value::kText || value.text.rfind("= ", 0) != 0) return value;
  const std::string expression = value.text.substr(2);
  const std::optional<double> number = Compute(expression, m);
  if (number) {
    const bool whole = *number == static_cast<double>(static_cast<std::int64_t>(*number));
    return whole ? Value::Integer(static_cast<std::int64_t>(*number)) : Value::Number(*number);
  }
  const std::string& text = m.Text(expression);
  if (text.empty()) return std::nullopt;
  return Value::Text(text);
}

std::string AsCell(const Value& value) {
  if (value.kind == Value::kText) return value.text;
  return value.kind == Value::kBoolean ? (value.boolean ? "yes" : "no") : ShortNumber(value.number);
}

// Keys of one table together, tables in the order of a scenario.
std::string ToScenarioText(const std::string& name,
                           const std::vector<std::pair<std::string, Value>>& keys) {
  std::map<std::string, std::string> tables;
  std::vector<std::string> order;
  for (const auto& [key, value] : keys) {
    std::vector<std::string> path = *ParseTomlKey(key);
    const std::string last = JoinTomlKey("", path.back());
    path.pop_back();
    std::string table;
    for (const std::string& segment : path) table = JoinTomlKey(table, segment);
    if (tables.find(table) == tables.end()) order.push_back(table);
    absl::StrAppend(&tables[table], last, " = ", ToToml(value), "\n");
  }
  const std::vector<std::string> usual = {"", "model", "hardware", "training", "precision"};
  const auto rank = [&](const std::string& table) {
    return std::find(usual.begin(), usual.end(), table) - usual.begin();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
  std::string text = absl::StrCat("name = ", ToToml(Value::Text(name)), "\n");
  for (const std::string& table : order) {
    if (!table.empty()) absl::StrAppend(&text, "\n[", table, "]\n");
    text += tables[table];
  }
  return text;
}

class Applier {
 public:
  explicit Applier(const Measurement& measurement) { out_.filled = measurement; }

  RowScenario Run(const MeasurementRules& rules) {
    const std::string& id = out_.filled.id;
    out_.source = id.substr(0, id.find('-'));
    const MeasurementSource* source = nullptr;
    for (const MeasurementSource& candidate : rules.sources) {
      if (source == nullptr && Matches(candidate.rule.when, out_.filled)) source = &candidate;
    }
    if (source != nullptr) {
      out_.source = source->name;
      Fill(source->rule);
      for (const MeasurementRule& rule : source->rules) FillIf(rule);
    }
    for (const MeasurementRule& rule : rules.rules) FillIf(rule);

    for (const MeasurementRule& rule : rules.rules) ApplyIf(rule);
    if (source != nullptr) {
      Apply(source->rule);
      for (const MeasurementRule& rule : source->rules) ApplyIf(rule);
    }
    if (out_.skip.empty()) Require(rules.required);
    if (out_.skip.empty()) out_.toml = ToScenarioText(id, keys_);
    return std::move(out_);
  }

 private:
  void FillIf(const MeasurementRule& rule) {
    if (Matches(rule.when, out_.filled)) Fill(rule);
  }
  void Fill(const MeasurementRule& rule) {
    for (const auto& [column, value] : rule.columns) {
      if (!out_.filled.Text(column).empty()) continue;
      if (const std::optional<Value> v = Resolved(value, out_.filled))
        out_.filled.cells[column] = AsCell(*v);
    }
  }

  void ApplyIf(const MeasurementRule& rule) {
    if (Matches(rule.when, out_.filled)) Apply(rule);
  }
  void Apply(const MeasurementRule& rule) {
    for (const auto& [key, value] : rule.scenario) {
      const std::optional<Value> v = Resolved(value, out_.filled);
      if (!v) continue;
      const std::string& name = key;
      const auto old = std::find_if(keys_.begin(), keys_.end(),
                                    [&](const auto& pair) { return pair.first == name; });
      if (old != keys_.end()) {
        old->second = *v;
      } else {
        keys_.emplace_back(key, *v);
      }
    }
    for (const auto& [key, value] : rule.memory)
      (key == "of" ? out_.memory.of : key == "rank" ? out_.memory.rank : out_.memory.unit) = value;
    if (rule.skip) out_.skip = *rule.skip;
    if (rule.skip_step) out_.skip_step = *rule.skip_step;
    if (rule.skip_memory) out_.skip_memory = *rule.skip_memory;
  }

  void Require(const std::vector<std::string>& columns) {
    std::vector<std::string> blank;
    for (const std::string& column : columns) {
      if (out_.filled.Text(column).empty()) blank.push_back(column);
    }
    if (!blank.empty()) out_.skip = absl::StrCat("not stated: ", Enumerate(blank));
  }

  RowScenario out_;
  std::vector<std::pair<std::string, Value>> keys_;
};

}  // namespace

RowScenario ScenarioOf(const Measurement& measurement, const MeasurementRules& rules) {
  return Applier(measurement).Run(rules);
}

}  // namespace shardlab
