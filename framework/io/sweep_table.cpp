#include "io/sweep_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

constexpr std::size_t kMostSteps = 100'000;  // of one range

const std::vector<std::string> kRangeKeys = {"from", "to", "times", "plus"};

const Place& KeyPlace(const Value& value) {
  return value.key_place.line > 0 ? value.key_place : value.place;
}

bool IsRange(const Value& table) {
  return table.Find("from") != nullptr || table.Find("to") != nullptr ||
         table.Find("times") != nullptr || table.Find("plus") != nullptr;
}

std::vector<Value> Range(const std::string& key, const Value& table, Diagnostics* diagnostics) {
  bool good = true;
  const auto number = [&](const char* name) -> const Value* {
    const Value* value = table.Find(name);
    if (value == nullptr || value->kind == Value::kInteger || value->kind == Value::kNumber)
      return value;
    diagnostics->Error("sweep.range", value->place,
                       absl::StrCat(name, " must be a number, not ", Value::Name(value->kind)));
    good = false;
    return nullptr;
  };
  for (const auto& [name, value] : table.table) {
    if (std::find(kRangeKeys.begin(), kRangeKeys.end(), name) != kRangeKeys.end()) continue;
    diagnostics->Error("sweep.range", KeyPlace(value),
                       absl::StrCat("a range has no key \"", name, "\""),
                       "write { from = 1, to = 8, times = 2 } or { from = 1, to = 4, plus = 1 }");
    good = false;
  }
  const Value *from = number("from"), *to = number("to"), *times = number("times"),
              *plus = number("plus");
  if (!good) return {};
  if (from == nullptr || to == nullptr || (times == nullptr) == (plus == nullptr)) {
    diagnostics->Error("sweep.range", table.place,
                       absl::StrCat("the range of ", key, " needs from, to and one of times, plus"),
                       "write { from = 1, to = 8, times = 2 } or { from = 1, to = 4, plus = 1 }");
    return {};
  }
  const Value& step = times != nullptr ? *times : *plus;
  const bool up = times != nullptr ? step.number > 1 && from->number > 0 : step.number > 0;
  if (!up || from->number > to->number) {
    diagnostics->Error(
        "sweep.range", up ? from->place : step.place,
        up ? absl::StrCat("the range of ", key, " is empty: from ", ShortNumber(from->number),
                          " is above to ", ShortNumber(to->number))
           : absl::StrCat("the range of ", key, " never ends"),
        up ? "" : "times must be above 1, with from above 0; plus must be above 0");
    return {};
  }
  const bool whole = from->kind == Value::kInteger && step.kind == Value::kInteger;
  std::vector<Value> values;
  double at = from->number;
  // A decimal step must not lose the end to its last digits.
  const double end = to->number + 1e-9 * std::abs(step.number);
  for (std::size_t i = 0; at <= end; ++i) {
    if (i == kMostSteps) {
      diagnostics->Error(
          "sweep.range", table.place,
          absl::StrCat("the range of ", key, " has more than ", kMostSteps, " values"));
      return {};
    }
    Value value = whole ? Value::Integer(std::llround(at)) : Value::Number(at);
    value.place = table.place;
    values.push_back(std::move(value));
    at = times != nullptr ? at * step.number
                          : from->number + static_cast<double>(i + 1) * step.number;
  }
  return values;
}

class Reader {
 public:
  Reader(const Scenario& scenario, Diagnostics* diagnostics)
      : scenario_(scenario), diagnostics_(*diagnostics) {}

  std::optional<SweepTable> Run() {
    const std::size_t before = Errors();
    const Value* sweep = scenario_.root.Find("sweep");
    if (sweep == nullptr || sweep->kind != Value::kTable) {
      diagnostics_.Error("sweep.missing",
                         sweep != nullptr ? sweep->place : Place{scenario_.file, 0, 0, "sweep"},
                         sweep != nullptr ? "sweep must be a table" : "the file has no [sweep]",
                         "write [sweep] and, below it, \"strategy.tensor.degree\" = [1, 2, 4, 8]");
      return std::nullopt;
    }
    Keys(*sweep, {});
    if (const Value* zip = sweep->Find("zip")) Zip(*zip);
    table_.when = ReadCondition(*sweep, "when");
    Filter();
    if (Errors() != before) return std::nullopt;
    if (table_.groups.empty()) {
      diagnostics_.Error("sweep.empty", KeyPlace(*sweep), "[sweep] varies nothing",
                         "write a key of the scenario and its values below it: "
                         "\"strategy.tensor.degree\" = [1, 2, 4, 8]");
      return std::nullopt;
    }
    if (TooMany(*sweep)) return std::nullopt;
    return std::move(table_);
  }

 private:
  std::size_t Errors() const { return diagnostics_.all().size(); }

  void Keys(const Value& table, const std::vector<std::string>& above) {
    for (const auto& [name, value] : table.table) {
      if (above.empty() && (name == "zip" || name == "when")) continue;
      // A dotted key in quotes, or tables within tables: both are the key of --set.
      std::vector<std::string> path = above;
      const std::optional<std::vector<std::string>> parts = ParseTomlKey(name);
      if (parts) {
        path.insert(path.end(), parts->begin(), parts->end());
      } else {
        path.push_back(name);
      }
      if (value.kind == Value::kTable && !IsRange(value)) {
        Keys(value, path);
        continue;
      }
      SweptKey key{"", path, KeyPlace(value)};
      for (const std::string& part : path) key.key = JoinTomlKey(key.key, part);
      if (IsOurs(key)) continue;
      SweepGroup group;
      for (Value& one : ReadValues(key.key, value, &diagnostics_))
        group.values.push_back({std::move(one)});
      group.keys.push_back(std::move(key));
      for (const SweepGroup& other : table_.groups) {
        if (other.keys[0].path != group.keys[0].path) continue;
        diagnostics_.Add({Severity::kError,
                          "sweep.twice",
                          absl::StrCat(group.keys[0].key, " is varied twice"),
                          group.keys[0].place,
                          "",
                          {other.keys[0].place}});
      }
      table_.groups.push_back(std::move(group));
    }
  }

  // What a sweep cannot vary, because it is the sweep.
  bool IsOurs(const SweptKey& key) {
    const std::string& first = key.path[0];
    if (first != "sweep" && first != "search" && first != "filter" && first != "expect")
      return false;
    diagnostics_.Error("sweep.key", key.place, absl::StrCat("[", first, "] cannot be varied"),
                       "vary keys of the model, hardware, training, strategies or schedule");
    return true;
  }

  void Zip(const Value& zip) {
    const char* const form = "write zip = [[\"training.micro_batch_size\", \"schedule.degree\"]]";
    const auto is_list = [](const Value& value, Value::Kind of) {
      return value.kind == Value::kArray && !value.array.empty() &&
             std::all_of(value.array.begin(), value.array.end(),
                         [of](const Value& item) { return item.kind == of; });
    };
    if (!is_list(zip, Value::kArray)) {
      diagnostics_.Error("sweep.zip", zip.place, "zip must be a list of lists of keys", form);
      return;
    }
    for (const Value& list : zip.array) {
      if (!is_list(list, Value::kText) || list.array.size() < 2) {
        diagnostics_.Error("sweep.zip", list.place, "a zip is a list of at least two keys", form);
        continue;
      }
      One(list);
    }
  }

  void One(const Value& list) {
    std::vector<std::size_t> members;
    for (const Value& name : list.array) {
      const std::size_t found = Find(name.text);
      if (found == table_.groups.size()) {
        std::vector<std::string> keys;
        for (const SweepGroup& group : table_.groups)
          for (const SweptKey& key : group.keys) keys.push_back(key.key);
        const std::string near = Nearest(name.text, keys);
        diagnostics_.Error(
            "sweep.zip", name.place,
            absl::StrCat("zip names \"", name.text, "\", which [sweep] does not vary"),
            near.empty() ? absl::StrCat("it varies ", Enumerate(keys))
                         : absl::StrCat("did you mean \"", near, "\"?"));
        return;
      }
      if (std::find(members.begin(), members.end(), found) != members.end() ||
          table_.groups[found].keys.size() > 1) {
        diagnostics_.Error("sweep.zip", name.place,
                           absl::StrCat("\"", name.text, "\" is zipped twice"));
        return;
      }
      members.push_back(found);
    }
    SweepGroup& into = table_.groups[members[0]];
    for (std::size_t i = 1; i < members.size(); ++i) {
      const SweepGroup& from = table_.groups[members[i]];
      if (from.values.empty() || into.values.empty()) return;  // said already
      if (from.values.size() != into.values.size()) {
        diagnostics_.Add(
            {Severity::kError,
             "sweep.zip",
             absl::StrCat("zipped keys need equally many values: ", into.keys[0].key, " has ",
                          into.values.size(), ", ", from.keys[0].key, " has ", from.values.size()),
             list.array[i].place,
             "",
             {into.keys[0].place, from.keys[0].place}});
        return;
      }
      into.keys.push_back(from.keys[0]);
      for (std::size_t step = 0; step < into.values.size(); ++step)
        into.values[step].push_back(from.values[step][0]);
    }
    std::sort(members.begin() + 1, members.end(), std::greater<>());
    for (std::size_t i = 1; i < members.size(); ++i)
      table_.groups.erase(table_.groups.begin() + static_cast<std::ptrdiff_t>(members[i]));
  }

  std::size_t Find(const std::string& name) const {
    const std::optional<std::vector<std::string>> path = ParseTomlKey(name);
    std::size_t at = 0;
    for (; at < table_.groups.size(); ++at) {
      const auto& keys = table_.groups[at].keys;
      if (path && std::any_of(keys.begin(), keys.end(),
                              [&](const SweptKey& key) { return key.path == *path; }))
        break;
    }
    return at;
  }

  std::optional<Condition> ReadCondition(const Value& table, const char* key) {
    const Value* value = table.Find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind != Value::kText) {
      diagnostics_.Error(
          "condition.kind", value->place,
          absl::StrCat(key, " must be a condition in quotes, not ", Value::Name(value->kind)));
      return std::nullopt;
    }
    return Condition::Parse(value->text, value->place, &diagnostics_);
  }

  void Filter() {
    const Value* filter = scenario_.root.Find("filter");
    if (filter == nullptr) return;
    if (filter->kind != Value::kTable) {
      diagnostics_.Error("key.kind", filter->place, "filter must be a table",
                         "write [filter] and, below it, keep = \"memory.fits\"");
      return;
    }
    for (const auto& [name, value] : filter->table) {
      if (name == "keep") continue;
      diagnostics_.Error("key.unknown", KeyPlace(value),
                         absl::StrCat("[filter] has no key \"", name, "\""), "it has keep");
    }
    table_.keep = ReadCondition(*filter, "keep");
  }

  bool TooMany(const Value& sweep) {
    double combinations = 1;
    for (const SweepGroup& group : table_.groups)
      combinations *= static_cast<double>(group.values.size());
    if (combinations <= static_cast<double>(kMostCombinations)) return false;
    diagnostics_.Error("sweep.size", KeyPlace(sweep),
                       absl::StrCat("[sweep] has ", ShortNumber(combinations), " combinations, ",
                                    WithThousands(kMostCombinations), " at most"),
                       "give some keys fewer values");
    return true;
  }

  const Scenario& scenario_;
  Diagnostics& diagnostics_;
  SweepTable table_;
};

}  // namespace

std::int64_t SweepTable::size() const {
  std::int64_t n = 1;
  for (const SweepGroup& group : groups) n *= static_cast<std::int64_t>(group.values.size());
  return n;
}

std::vector<const SweptKey*> SweepTable::Keys() const {
  std::vector<const SweptKey*> keys;
  for (const SweepGroup& group : groups)
    for (const SweptKey& key : group.keys) keys.push_back(&key);
  return keys;
}

std::vector<const Value*> SweepTable::At(std::int64_t combination) const {
  std::vector<std::size_t> steps(groups.size());
  for (std::size_t g = groups.size(); g-- > 0;) {
    const auto n = static_cast<std::int64_t>(groups[g].values.size());
    steps[g] = static_cast<std::size_t>(combination % n);
    combination /= n;
  }
  std::vector<const Value*> values;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const Value& value : groups[g].values[steps[g]]) values.push_back(&value);
  return values;
}

std::vector<Value> ReadValues(const std::string& key, const Value& value,
                              Diagnostics* diagnostics) {
  if (value.kind == Value::kTable) return Range(key, value, diagnostics);
  if (value.kind != Value::kArray) {
    diagnostics->Error(
        "sweep.values", value.place,
        absl::StrCat(key, " must be a list of values or a range, not ", Value::Name(value.kind)),
        absl::StrCat("write [", ToToml(value),
                     ", ...] or { from = ..., to = ..., "
                     "times = 2 }"));
    return {};
  }
  if (value.array.empty()) {
    diagnostics->Error("sweep.values", value.place, absl::StrCat(key, " has no values"));
    return {};
  }
  return value.array;
}

std::optional<SweepTable> ReadSweepTable(const Scenario& scenario, Diagnostics* diagnostics) {
  return Reader(scenario, diagnostics).Run();
}

Scenario WithValues(const Scenario& scenario, const std::vector<const SweptKey*>& keys,
                    const std::vector<const Value*>& values, Diagnostics* diagnostics) {
  Scenario with;
  with.file = scenario.file;
  with.root = scenario.root;
  with.overrides = scenario.overrides;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Value value = *values[i];
    value.place.key = keys[i]->key;
    value.key_place = keys[i]->place;
    SetAtPath(&with.root, keys[i]->path, std::move(value), *diagnostics);
  }
  return with;
}

}  // namespace shardlab
