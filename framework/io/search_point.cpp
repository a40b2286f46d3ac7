#include <algorithm>

#include "io/parameter_io.h"
#include "io/search_grid.h"
#include "io/toml_value.h"

namespace shardlab {
void SetKey(Value* root, const std::string& key, Value value) {
  value.place = {"[search]", 0, 0, key};
  value.key_place = value.place;
  Diagnostics ignored;
  if (const auto path = ParseTomlKey(key)) SetAtPath(root, *path, std::move(value), ignored);
}

void EraseKey(Value* root, const std::string& path) {
  const std::size_t dot = path.rfind('.');
  Value* table = root;
  std::size_t from = 0;
  while (table != nullptr && from < path.size() && dot != std::string::npos && from <= dot) {
    const std::size_t next = path.find('.', from);
    table = table->Find(path.substr(from, next - from));
    from = next + 1;
    if (next == dot) break;
  }
  if (table == nullptr || table->kind != Value::kTable) return;
  const std::string last = dot == std::string::npos ? path : path.substr(dot + 1);
  auto& entries = table->table;
  entries.erase(std::remove_if(entries.begin(), entries.end(),
                               [&](const auto& entry) { return entry.first == last; }),
                entries.end());
}

bool SearchGrid::Has(const SearchGroup& group, std::size_t axis) const {
  const SearchAxis& of = axes[axis];
  if (of.offer.every_plan) return true;
  if (of.HasSecond()) return group.second[axis] != Second::kNoAxis;
  return of.values.back() > 1;
}

int SearchGrid::SecondDegree(const SearchGroup& group, const Degrees& degrees,
                             std::size_t axis) const {
  const int with = axes[axis].with;
  return with >= 0 && group.second[axis] == Second::kAnother
             ? degrees[static_cast<std::size_t>(with)]
             : 1;
}

std::vector<Degrees> SearchGrid::DegreesOf(const SearchGroup& group) const {
  std::vector<Degrees> all;
  Degrees ones;
  ones.fill(1);
  all.push_back(ones);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const bool none = axes[a].HasSecond() && group.second[a] == Second::kNoAxis;
    std::vector<Degrees> more;
    for (const Degrees& so_far : all) {
      for (const int degree : axes[a].values) {
        if (axes[a].HasSecond() && (degree == 1) != none) continue;
        more.push_back(so_far);
        more.back()[a] = degree;
      }
    }
    all = std::move(more);
  }
  // Where a second degree is 1 it is a plan of the group that has it so.
  const auto elsewhere = [&](const Degrees& degrees) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      if (group.second[a] == Second::kAnother && SecondDegree(group, degrees, a) == 1) return true;
    }
    return false;
  };
  all.erase(std::remove_if(all.begin(), all.end(), elsewhere), all.end());
  return all;
}

bool SearchGrid::VariesSchedules() const {
  const std::vector<const SweptKey*> keys = other.Keys();
  return std::any_of(keys.begin(), keys.end(),
                     [](const SweptKey* key) { return key->key.rfind("schedule.", 0) == 0; });
}

std::int64_t SearchGrid::SizeOf(const SearchGroup& group) const {
  return static_cast<std::int64_t>(DegreesOf(group).size() * group.pipelines.size() *
                                   micro_batch.size());
}

std::int64_t SearchGrid::size() const {
  std::int64_t n = 0;
  for (const SearchGroup& group : groups) n += SizeOf(group);
  return n * other.size();
}

std::vector<std::pair<std::string, Value>> SettingsOf(const SearchGrid& grid,
                                                      const SearchPoint& point) {
  const SearchGroup& group = grid.Group(point.group);
  const Pipeline& pipeline = group.pipelines[static_cast<std::size_t>(point.pipeline)];
  std::vector<std::pair<std::string, Value>> settings;
  const auto set = [&](const std::string& key, Value value) {
    settings.emplace_back(key, std::move(value));
  };
  const std::vector<const SweptKey*> keys = grid.other.Keys();
  const std::vector<const Value*> values = grid.other.At(grid.OtherOf(point.group));
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i]->key, *values[i]);
  for (std::size_t a = 0; a < grid.axes.size(); ++a) {
    const SearchAxis& axis = grid.axes[a];
    const int degree = point.degrees[a];
    if (degree == 1 && !axis.offer.every_plan) continue;
    set(axis.offer.Key(), Value::Integer(degree));
    if (axis.switches) set(axis.offer.SwitchKey(), Value::Boolean(degree > 1));
    if (axis.with >= 0)
      set(axis.offer.WithKey(), Value::Integer(grid.SecondDegree(group, point.degrees, a)));
  }
  if (!group.sharding.table.empty())
    set("strategy." + group.sharding.table + "." + group.sharding.key, group.sharding.value);
  for (const Choice& choice : group.choices) {
    for (const auto& [key, value] : choice.settings) set(key, value);
    if (!choice.share_key.empty()) set(choice.share_key, Value::Integer(pipeline.share));
  }
  set("schedule.plugin", Value::Text(pipeline.schedule));
  set("schedule.degree", Value::Integer(pipeline.degree));
  set("schedule.chunks", Value::Integer(pipeline.chunks));
  if (pipeline.count_ends) set("schedule.count_ends", Value::Boolean(true));
  if (pipeline.as_file) {
    for (const auto& [key, value] : grid.file_split.settings) set(key, value);
  }
  set("training.micro_batch_size", Value::Integer(point.micro_batch));
  return settings;
}

Scenario ScenarioOf(const SearchGrid& grid, const SearchPoint& point) {
  const SearchGroup& group = grid.Group(point.group);
  Scenario with;
  with.file = grid.base.file;
  with.root = grid.base.root;
  // Tables that the point does without; the other keys of those that it has stay.
  for (const std::string& table : grid.sharding_tables) {
    if (!group.sharding.table.empty() && table != group.sharding.table)
      EraseKey(&with.root, "strategy." + table);
  }
  for (std::size_t a = 0; a < grid.axes.size(); ++a) {
    if (point.degrees[a] == 1 && !grid.axes[a].offer.every_plan)
      EraseKey(&with.root, "strategy." + grid.axes[a].offer.table);
  }
  const auto foreign =
      grid.foreign_keys.find(group.pipelines[static_cast<std::size_t>(point.pipeline)].schedule);
  if (foreign != grid.foreign_keys.end()) {
    for (const std::string& key : foreign->second) EraseKey(&with.root, key);
  }
  for (auto& [key, value] : SettingsOf(grid, point)) SetKey(&with.root, key, value);
  return with;
}

bool LetsThrough(const SearchGrid& grid, const SearchPoint& point) {
  if (!grid.when) return true;
  const auto settings = SettingsOf(grid, point);
  std::string problem;
  const auto look_up = [&](const std::string& name) -> std::optional<Condition::Scalar> {
    nlohmann::ordered_json json;
    for (const auto& [key, value] : settings) {
      if (key == name) json = ValueToJson(value);
    }
    if (json.is_null()) {
      if (const Value* value = grid.base.root.FindPath(name)) json = ValueToJson(*value);
    }
    if (json.is_null() && name.size() > 7 && name.rfind(".degree") == name.size() - 7) return 1.0;
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    return std::nullopt;
  };
  return grid.when->Holds(look_up, &problem).value_or(true);
}

}  // namespace shardlab
