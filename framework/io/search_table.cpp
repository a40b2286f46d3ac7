#include "io/search_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

const std::vector<std::string> kSearchKeys = {"fix", "objective", "min_headroom", "vary", "when"};

const Place& KeyPlace(const Value& value) {
  return value.key_place.line > 0 ? value.key_place : value.place;
}

class TableReader {
 public:
  TableReader(const Scenario& scenario, const std::vector<std::string>& varied_keys,
              Diagnostics* diagnostics)
      : scenario_(scenario), varied_keys_(varied_keys), diagnostics_(*diagnostics) {}

  SearchTable Run() {
    Table();
    return std::move(table_);
  }

 private:
  void Table() {
    const Value* search = scenario_.root.Find("search");
    if (search == nullptr) return;
    if (search->kind != Value::kTable) {
      diagnostics_.Error("key.kind", search->place, "search must be a table",
                         "write [search] on a line of its own, or leave it out");
      return;
    }
    for (const auto& [key, value] : search->table) {
      if (std::find(kSearchKeys.begin(), kSearchKeys.end(), key) != kSearchKeys.end()) continue;
      const std::string near = Nearest(key, kSearchKeys);
      diagnostics_.Error("key.unknown", KeyPlace(value),
                         absl::StrCat("[search] has no key \"", key, "\""),
                         near.empty() ? absl::StrCat("it has ", Enumerate(kSearchKeys))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
    Goal(*search);
    if (const Value* fix = search->Find("fix")) Fix(*fix);
    if (const Value* vary = search->Find("vary")) Vary(*vary);
  }

  void Goal(const Value& search) {
    if (const Value* value = search.Find("objective")) {
      const std::optional<Objective> objective =
          value->kind == Value::kText ? ParseObjective(value->text) : std::nullopt;
      if (objective) {
        table_.objective = *objective;
      } else {
        diagnostics_.Error("search.objective", value->place,
                           absl::StrCat("there is no objective ", ToToml(*value)),
                           absl::StrCat("objectives: ", Enumerate(ObjectiveNames())));
      }
    }
    if (const Value* value = search.Find("min_headroom")) {
      const bool number = value->kind == Value::kNumber || value->kind == Value::kInteger;
      if (number && value->number >= 0 && value->number < 1) {
        table_.min_headroom = value->number;
      } else {
        diagnostics_.Error("search.min_headroom", value->place,
                           "min_headroom is the share of memory that stays free, from 0 to 1",
                           "write min_headroom = 0.1");
      }
    }
    if (const Value* value = search.Find("when")) {
      if (value->kind == Value::kText) {
        table_.when = Condition::Parse(value->text, value->place, &diagnostics_);
      } else {
        diagnostics_.Error(
            "condition.kind", value->place,
            absl::StrCat("when must be a condition in quotes, not ", Value::Name(value->kind)));
      }
    }
  }

  void Fix(const Value& fix) {
    if (fix.kind != Value::kArray) {
      diagnostics_.Error("search.fix", fix.place, "fix must be a list of keys",
                         "write fix = [\"strategy.tensor.degree\"]");
      return;
    }
    for (const Value& key : fix.array) {
      const bool text = key.kind == Value::kText;
      const bool known =
          text &&
          std::any_of(varied_keys_.begin(), varied_keys_.end(), [&](const std::string& varied) {
            return varied == key.text || varied.rfind(key.text + ".", 0) == 0;
          });
      if (known) {
        table_.fixed.push_back(key.text);
        continue;
      }
      const std::string near = text ? Nearest(key.text, varied_keys_) : "";
      diagnostics_.Error("search.fix", key.place,
                         absl::StrCat("the search does not vary ", ToToml(key), ": nothing to fix"),
                         near.empty() ? absl::StrCat("it varies ", Enumerate(varied_keys_))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  // The same forms as in [sweep]: it is read as one.
  void Vary(const Value& vary) {
    if (vary.kind != Value::kTable) {
      diagnostics_.Error("search.vary", vary.place, "vary must be a table of keys and values",
                         "write vary = { \"training.micro_batch_size\" = [1, 2] }");
      return;
    }
    Scenario as_sweep;
    as_sweep.file = scenario_.file;
    as_sweep.root.kind = Value::kTable;
    as_sweep.root.table.emplace_back("sweep", vary);
    const std::optional<SweepTable> table = ReadSweepTable(as_sweep, &diagnostics_);
    if (!table) return;
    if (const Value* when = vary.Find("when"))
      diagnostics_.Error("search.vary", when->place, "when is a key of [search], not of vary",
                         "write it under [search]");
    table_.varied = *table;
    for (const SweptKey* key : table->Keys()) table_.keys.insert(key->key);
  }

  const Scenario& scenario_;
  const std::vector<std::string>& varied_keys_;
  Diagnostics& diagnostics_;
  SearchTable table_;
};

}  // namespace

bool SearchTable::Fixed(const std::string& key) const {
  return std::any_of(fixed.begin(), fixed.end(), [&](const std::string& of) {
    return key == of || key.rfind(of + ".", 0) == 0;
  });
}

std::optional<std::vector<Value>> SearchTable::Take(const std::string& key, Value::Kind kind) {
  for (auto group = varied.groups.begin(); group != varied.groups.end(); ++group) {
    if (group->keys.size() != 1 || group->keys[0].key != key) continue;
    std::vector<Value> values;
    std::set<std::string> seen;
    for (const auto& step : group->values) {
      if (step[0].kind != kind) return std::nullopt;
      if (seen.insert(ToToml(step[0])).second) values.push_back(step[0]);
    }
    varied.groups.erase(group);
    return values;
  }
  return std::nullopt;
}

std::optional<std::vector<int>> SearchTable::TakeIntegers(const std::string& key) {
  const std::optional<std::vector<Value>> values = Take(key, Value::kInteger);
  if (!values) return std::nullopt;
  std::vector<int> integers;
  integers.reserve(values->size());
  for (const Value& value : *values) integers.push_back(static_cast<int>(value.integer));
  std::sort(integers.begin(), integers.end());
  return integers;
}

void SearchTable::RefuseRest(const std::vector<std::string>& of_grid,
                             const std::vector<std::string>& names,
                             Diagnostics* diagnostics) const {
  for (const SweepGroup& group : varied.groups) {
    for (const SweptKey& key : group.keys) {
      if (std::find(of_grid.begin(), of_grid.end(), key.key) == of_grid.end()) continue;
      const bool named = std::find(names.begin(), names.end(), key.key) != names.end();
      if (group.keys.size() > 1) {
        diagnostics->Error(
            "search.vary", key.place,
            absl::StrCat("zip cannot tie ", key.key, ": a search tries its values with all others"),
            "vary it alone, and say which go together by when = \"...\"");
      } else {
        diagnostics->Error(
            "search.vary", key.place,
            absl::StrCat(key.key, " takes ", named ? "names" : "whole numbers"),
            absl::StrCat("write \"", key.key, "\" = ", named ? "[\"NAME\"]" : "[1, 2]"));
      }
    }
  }
}

SearchTable ReadSearchTable(const Scenario& scenario, const std::vector<std::string>& varied_keys,
                            Diagnostics* diagnostics) {
  return TableReader(scenario, varied_keys, diagnostics).Run();
}

const std::vector<std::string>& ObjectiveNames() {
  static const auto* const names =
      new std::vector<std::string>{"step_seconds", "tokens_per_second_per_device", "cost"};
  return *names;
}

const char* Name(Objective objective) {
  return ObjectiveNames()[static_cast<std::size_t>(objective)].c_str();
}

std::optional<Objective> ParseObjective(const std::string& name) {
  const auto& names = ObjectiveNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Objective>(found - names.begin());
}

}  // namespace shardlab
