#include <algorithm>

#include "io/search_grid.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

void Set(Value* root, const std::string& key, Value value) {
  value.place = {"[search]", 0, 0, key};
  value.key_place = value.place;
  Diagnostics ignored;
  if (const auto path = ParseTomlKey(key)) SetAtPath(root, *path, std::move(value), ignored);
}

}  // namespace

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

std::int64_t SearchGrid::SizeOf(const SearchGroup& group) const {
  // Cut experts need a tensor degree; of one rank they are whole.
  const auto tensors = std::count_if(tensor.begin(), tensor.end(),
                                     [&](int degree) { return degree > 1 || !group.cut_experts; });
  return tensors * static_cast<std::int64_t>(group.contexts.size() * group.experts.size() *
                                             group.pipelines.size() * micro_batch.size());
}

std::int64_t SearchGrid::size() const {
  std::int64_t n = 0;
  for (const SearchGroup& group : groups) n += SizeOf(group);
  return n;
}

std::vector<std::pair<std::string, Value>> SettingsOf(const SearchGrid& grid,
                                                      const SearchPoint& point) {
  const SearchGroup& group = grid.groups[static_cast<std::size_t>(point.group)];
  const Pipeline& pipeline = group.pipelines[static_cast<std::size_t>(point.pipeline)];
  std::vector<std::pair<std::string, Value>> settings;
  const auto set = [&](const std::string& key, Value value) {
    settings.emplace_back(key, std::move(value));
  };
  const std::vector<const SweptKey*> keys = grid.other.Keys();
  const std::vector<const Value*> values = grid.other.At(group.other);
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i]->key, *values[i]);
  set("strategy.tensor.degree", Value::Integer(point.tensor));
  set("strategy.tensor.sequence_parallel",
      Value::Boolean(point.tensor > 1 && grid.sequence_parallel));
  if (group.context) set("strategy.context.degree", Value::Integer(point.context));
  if (group.expert) {
    set("strategy.expert.degree", Value::Integer(point.expert));
    set("strategy.expert.tensor_degree", Value::Integer(group.cut_experts ? point.tensor : 1));
  }
  if (!group.sharding.table.empty())
    set("strategy." + group.sharding.table + "." + group.sharding.key, group.sharding.value);
  const Recomputation& r = group.recomputation;
  if (r.kind != Recomputation::kAsFile) {
    set("strategy.checkpointing.mode",
        Value::Text(r.kind == Recomputation::kNone        ? "none"
                    : r.kind == Recomputation::kSelective ? "selective"
                                                          : "full"));
    if (group.replayed > 0) set("strategy.checkpointing.layers", Value::Integer(group.replayed));
  }
  set("schedule.plugin", Value::Text(pipeline.schedule));
  set("schedule.degree", Value::Integer(pipeline.degree));
  set("schedule.chunks", Value::Integer(pipeline.chunks));
  if (pipeline.count_ends) set("schedule.count_ends", Value::Boolean(true));
  set("training.micro_batch_size", Value::Integer(point.micro_batch));
  return settings;
}

Scenario ScenarioOf(const SearchGrid& grid, const SearchPoint& point) {
  const SearchGroup& group = grid.groups[static_cast<std::size_t>(point.group)];
  Scenario with;
  with.file = grid.base.file;
  with.root = grid.base.root;
  // Tables that the point does without; the other keys of those that it has stay.
  for (const std::string& table : grid.sharding_tables) {
    if (!group.sharding.table.empty() && table != group.sharding.table)
      EraseKey(&with.root, "strategy." + table);
  }
  if (!group.context) EraseKey(&with.root, "strategy.context");
  if (!group.expert) EraseKey(&with.root, "strategy.expert");
  for (auto& [key, value] : SettingsOf(grid, point)) Set(&with.root, key, value);
  return with;
}

}  // namespace shardlab
