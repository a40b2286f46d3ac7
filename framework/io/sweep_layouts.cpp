#include "io/sweep_layouts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/make_plan.h"
#include "core/short_order.h"
#include "io/plan_scalars.h"
#include "io/search_offers.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLayouts = 128;  // of a thread; some hundred kilobytes each
constexpr std::size_t kMostSplits = 64;

// What tells schedules apart: the plugin and its own parameters.
std::string ScheduleText(const ComposedScenario& composed) {
  const auto found = composed.resolved.find("schedule");
  if (found == composed.resolved.end()) return "";
  Json schedule = *found;
  for (const char* key : {"degree", "chunks", "layers", "balance", "count_ends", "transfers"})
    schedule.erase(key);
  return schedule.dump();
}

}  // namespace

int SweepOrders::IndexOf(const std::string& schedule) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return index_.emplace(schedule, static_cast<int>(index_.size())).first->second;
}

SweepOrders::Pointer SweepOrders::Of(const Schedule& schedule, int index,
                                     const ScheduleShape& shape) {
  const std::tuple key(index, shape.ranks, shape.chunks, shape.micro_batches);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = orders_.find(key);
    if (found != orders_.end()) return found->second;
  }
  Pointer made;
  std::size_t bytes = 0;
  if (absl::StatusOr<CompiledOrder> order = CompileShortOrder(schedule, shape); order.ok()) {
    order->works = {};  // only playing is wanted
    order->events.shrink_to_fit();
    bytes = order->events.size() * sizeof(CompiledOrder::Event);
    made = std::make_shared<const CompiledOrder>(*std::move(order));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes_ + bytes > kMostBytes) {
    orders_.clear();
    bytes_ = 0;
  }
  bytes_ += bytes;
  return orders_.emplace(key, std::move(made)).first->second;
}

std::vector<int> SweepConstants::Add(const Json& provenance) {
  std::vector<int> ids;
  for (const Json& constant : provenance) {
    std::vector<int>& alike = ids_[constant["name"].get_ref<const std::string&>()];
    auto id =
        std::find_if(alike.begin(), alike.end(), [&](int known) { return at(known) == constant; });
    if (id == alike.end()) {
      id = alike.insert(id, static_cast<int>(all_.size()));
      all_.push_back(constant);
    }
    ids.push_back(*id);
  }
  return ids;
}

SweepLayout::SweepLayout(ComposedScenario composed, bool stated_chunks, SweepOrders* orders,
                         SweepConstants* constants)
    : composed_(std::move(composed)),
      orders_(orders),
      schedule_(orders->IndexOf(ScheduleText(composed_))),
      workspace_(*composed_.composition),
      all_constants_(constants) {
  default_chunks_ = !stated_chunks && composed_.request.chunks == DefaultChunks();
}

const std::vector<int>& SweepLayout::constants(bool pipelined) {
  std::optional<std::vector<int>>& constants = constants_[pipelined ? 1 : 0];
  if (!constants) constants = all_constants_->Add(ProvenanceOf(composition(), pipelined));
  return *constants;
}

int SweepLayout::DefaultChunks() const {
  return composed_.request.pipeline > 1 ? composition().schedule->DefaultChunks() : 1;
}

std::optional<Plan> SweepLayout::MakePlan(Diagnostics* diagnostics) {
  if (default_chunks_) composed_.request.chunks = DefaultChunks();
  std::vector<LayerSplit>& splits = composed_.composition->splits;
  if (splits.size() > kMostSplits) splits.clear();
  return shardlab::MakePlan(composition(), composed_.request, &splits, diagnostics);
}

bool SweepLayout::Evaluate(const Plan& plan) {
  SweepOrders::Pointer order;
  if (plan.pipeline > 1) {
    order = orders_->Of(*composition().schedule, schedule_,
                        {plan.pipeline, plan.chunks, plan.micro_batches});
    if (order == nullptr) return false;
  }
  workspace_.Reserve(plan, order.get());
  summary_ = Summarize(composition(), plan, order.get(), workspace_);
  return true;
}

void SweepLayout::Shape(const Plan& plan, SharedNames* names) {
  const Json document = {{"plan", PlanSection(composed_, plan)}};
  Cells::NameList list;
  for (Cell& cell : ScalarPaths(document, {"plan"})) {
    if (cell.second.is_null()) continue;
    list.push_back(std::move(cell.first));
    row_.push_back(std::move(cell.second));
  }
  behind_plan_ = row_.size();
  const std::map<std::string, Value>& facts = composition().edited.plan_facts;
  EachPlanNumber(composition(), plan, [&](const std::string& key, int) {
    const auto at = std::find(list.begin(), list.end(), "plan." + key);
    const bool fixed = facts.count(key) > 0 || at == list.end();
    slots_.push_back(fixed ? -1 : static_cast<int>(at - list.begin()));
  });
  const auto add = [&](const char* section) {
    return [&list, section](const char* key, const auto&) {
      list.push_back(std::string(section) + "." + key);
    };
  };
  EachMemoryScalar(composition(), summary_, add("memory"));
  EachTimeScalar(summary_, add("time"));
  EachThroughputScalar(composition(), summary_, add("throughput"));
  names_ = names->Of(std::move(list));
}

Cells SweepLayout::Row(const Plan& plan, SharedNames* names) {
  if (names_ == nullptr) Shape(plan, names);
  std::vector<Json> row;
  row.reserve(names_->size());
  row = row_;
  std::size_t at = 0;
  EachPlanNumber(composition(), plan, [&](const char*, int value) {
    const int slot = slots_[at++];
    if (slot >= 0) row[static_cast<std::size_t>(slot)] = value;
  });
  const auto add = [&row](const char*, const auto& value) { row.emplace_back(value); };
  EachMemoryScalar(composition(), summary_, add);
  EachTimeScalar(summary_, add);
  EachThroughputScalar(composition(), summary_, add);
  return {names_, std::move(row)};
}

const Json* SweepLayout::Find(const Cells& row, const std::string& name) {
  const Cells::NameList& names = row.names();
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? nullptr : &row.values()[static_cast<std::size_t>(at - names.begin())];
}

SweepLayouts::SweepLayouts(const Sweep& sweep, SweepOrders* orders)
    : sweep_(sweep), orders_(orders), swept_(sweep.table.Keys()) {
  Diagnostics ignored;
  const SearchOffers offers = ReadSearchOffers(*sweep.registry, &ignored);
  const auto number_of = [&](const std::string& key, std::string* axis) {
    if (key == "training.micro_batch_size") return Number::kMicroBatch;
    if (key == "training.global_batch_size") return Number::kGlobalBatch;
    if (key == "schedule.degree") return Number::kPipeline;
    if (key == "schedule.chunks") return Number::kChunks;
    for (const DegreeOffer& offer : offers.degrees) {
      // One with a second degree has rows of its own; a table may name another plugin.
      const std::string plugin = "strategy." + offer.table + ".plugin";
      const bool renamed = sweep_.scenario.root.FindPath(plugin) != nullptr ||
                           std::any_of(swept_.begin(), swept_.end(),
                                       [&](const SweptKey* other) { return other->key == plugin; });
      if (offer.Key() != key || !offer.with_key.empty() || renamed) continue;
      *axis = offer.axis;
      return Number::kDegree;
    }
    return Number::kNone;
  };
  for (std::size_t g = 0; g < sweep.table.groups.size(); ++g) {
    const SweepGroup& group = sweep.table.groups[g];
    for (std::size_t m = 0; m < group.keys.size(); ++m) {
      Key key{g, m, Number::kNone, "", std::vector<bool>(group.values.size(), false)};
      key.number = number_of(group.keys[m].key, &key.axis);
      keys_.push_back(std::move(key));
    }
  }
}

bool SweepLayouts::IsPlanNumber(const std::string& name) const {
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    if (swept_[k]->key == name) return keys_[k].number != Number::kNone;
  }
  return false;
}

SweepLayout* SweepLayouts::Of(const std::vector<int>& steps,
                              const std::vector<const Value*>& values) {
  // A degree above 1 is like any other above 1.
  std::vector<int> signature;
  signature.reserve(keys_.size());
  bool proven = true;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const Key& key = keys_[k];
    const int step = steps[key.group];
    if (key.number == Number::kNone) {
      signature.push_back(step);
      continue;
    }
    const Value& value = *values[k];
    if (value.kind != Value::kInteger || value.integer < 1 ||
        value.integer > std::numeric_limits<int>::max())
      return nullptr;
    if (key.number == Number::kDegree) signature.push_back(value.integer > 1 ? 2 : 1);
    proven = proven && key.proven[static_cast<std::size_t>(step)];
  }
  const auto found = known_.find(signature);
  if (found != known_.end() && (proven || found->second->layout == nullptr)) {
    recent_.splice(recent_.begin(), recent_, found->second);
  } else {
    std::unique_ptr<SweepLayout> made = Compose(steps, values);
    if (found != known_.end()) {
      // Composed only to see that its numbers can be read.
      if (made == nullptr) return nullptr;
    } else {
      // What has mistakes in a number is not the layout's fault.
      if (made == nullptr && !proven) return nullptr;
      recent_.push_front({signature, std::move(made)});
      known_[signature] = recent_.begin();
      if (recent_.size() > kMostLayouts) {
        known_.erase(recent_.back().signature);
        recent_.pop_back();
      }
    }
  }
  SweepLayout* layout = known_.at(signature)->layout.get();
  if (layout != nullptr) Set(values, &layout->composed());
  return layout;
}

std::unique_ptr<SweepLayout> SweepLayouts::Compose(const std::vector<int>& steps,
                                                   const std::vector<const Value*>& values) {
  Diagnostics diagnostics;
  const Scenario with = WithValues(sweep_.scenario, swept_, values, &diagnostics);
  if (diagnostics.HasErrors()) return nullptr;
  ComposedScenario composed =
      ComposeScenario(*sweep_.registry, with, &diagnostics, ComposeWhat::kCompositionOnly,
                      &orders_->compositions());
  if (composed.composition == nullptr || diagnostics.HasErrors()) return nullptr;
  for (Key& key : keys_) key.proven[static_cast<std::size_t>(steps[key.group])] = true;
  const bool stated_chunks = with.root.FindPath("schedule.chunks") != nullptr;
  return std::make_unique<SweepLayout>(std::move(composed), stated_chunks, orders_, &constants_);
}

void SweepLayouts::Set(const std::vector<const Value*>& values, ComposedScenario* composed) const {
  PlanRequest& request = composed->request;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const auto value = static_cast<int>(values[k]->integer);
    switch (keys_[k].number) {
      case Number::kNone:
        break;
      case Number::kMicroBatch:
        request.micro_batch_size = value;
        break;
      case Number::kGlobalBatch:
        request.global_batch_size = value;
        composed->composition->training.global_batch_size = value;
        break;
      case Number::kPipeline:
        request.pipeline = value;
        break;
      case Number::kChunks:
        request.chunks = value;
        break;
      case Number::kDegree:
        request.degrees[keys_[k].axis] = value;
        break;
    }
  }
}

}  // namespace shardlab
