#include "io/search_run.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/make_plan.h"
#include "core/ordered_work.h"
#include "io/compose_scenario.h"
#include "io/parameter_io.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNear = 1.1;  // of a device's memory: a plan that takes more did not nearly fit

bool Better(const Found& a, const Found& b) {
  return std::tie(a.objective, a.point.number) < std::tie(b.objective, b.point.number);
}

// Keeps the `most` best, sorted.
void Offer(const Found& found, std::size_t most, std::vector<Found>* best) {
  if (most == 0 || (best->size() == most && !Better(found, best->back()))) return;
  best->insert(std::upper_bound(best->begin(), best->end(), found, Better), found);
  if (best->size() > most) best->pop_back();
}

// Keeps those that no other beats in both; by objective, so that peaks fall. Of two alike the
// earlier.
void OfferPareto(const Found& found, std::vector<Found>* front) {
  const auto at = std::upper_bound(front->begin(), front->end(), found, Better);
  if (at != front->begin() && std::prev(at)->peak <= found.peak) return;
  auto end = at;
  while (end != front->end() && end->peak >= found.peak) ++end;
  front->insert(front->erase(at, end), found);
}

// Orders are compiled once for all groups.
class Orders {
 public:
  using Pointer = std::shared_ptr<const absl::StatusOr<CompiledOrder>>;
  Pointer Of(const Schedule& schedule, const std::string& name, const ScheduleShape& shape) {
    const auto key = std::tuple(name, shape.ranks, shape.chunks, shape.micro_batches);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = orders_.find(key);
      if (found != orders_.end()) return found->second;
    }
    auto made =
        std::make_shared<const absl::StatusOr<CompiledOrder>>(CompileOrder(schedule, shape));
    const std::lock_guard<std::mutex> lock(mutex_);
    return orders_.emplace(key, std::move(made)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<std::string, int, int, int>, Pointer> orders_;
};

struct NamedSchedule {
  std::shared_ptr<const Schedule> schedule;  // null: it cannot be made
  std::string refusal;
};

class GroupSearch {
 public:
  GroupSearch(const PluginRegistry& registry, const SearchGrid& grid, const SearchOptions& options,
              const std::map<std::string, NamedSchedule>& schedules, Orders* orders)
      : registry_(registry),
        grid_(grid),
        options_(options),
        schedules_(schedules),
        orders_(*orders) {}

  SearchResult Run(int group, std::int64_t number) {
    group_ = &grid_.groups[static_cast<std::size_t>(group)];
    point_.group = group;
    point_.number = number;
    Compose();
    for (const int tensor : grid_.tensor) {
      if (group_->cut_experts && tensor == 1) continue;
      point_.tensor = tensor;
      for (const int context : group_->contexts) {
        point_.context = context;
        for (const int expert : group_->experts) {
          point_.expert = expert;
          Pipelines();
        }
      }
    }
    return std::move(result_);
  }

 private:
  // With degrees that are there; those of the points take their place.
  void Compose() {
    SearchPoint made = point_;
    made.tensor = 2;
    made.context = group_->contexts.back();
    made.expert = group_->experts.back();
    made.micro_batch = 1;
    Diagnostics diagnostics;
    composed_ = ComposeScenario(registry_, ScenarioOf(grid_, made), &diagnostics,
                                ComposeWhat::kCompositionOnly);
    if (composed_.composition != nullptr) {
      workspace_ = std::make_unique<Workspace>(*composed_.composition);
      devices_ = composed_.composition->hardware->machine().devices;
      price_ = composed_.composition->hardware->machine().price_per_device_hour;
    } else {
      Note(diagnostics, &composing_code_, &composing_message_);
    }
  }

  static void Note(const Diagnostics& diagnostics, std::string* code, std::string* message) {
    for (const Diagnostic& d : diagnostics.all()) {
      if (d.severity != Severity::kError) continue;
      *code = d.code;
      *message = d.message;
      return;
    }
  }

  void Pipelines() {
    for (std::size_t i = 0; i < group_->pipelines.size(); ++i) {
      point_.pipeline = static_cast<int>(i);
      for (const int micro_batch : grid_.micro_batch) {
        point_.micro_batch = micro_batch;
        One();
        ++point_.number;
      }
    }
  }

  void Illegal(const std::string& code, const std::string& message) {
    ++result_.counts.illegal;
    IllegalReason& reason = result_.illegal[code];
    if (reason.count++ == 0) reason.example = message;
  }

  void One() {
    ++result_.counts.considered;
    if (!When()) {
      ++result_.counts.pruned;
      return;
    }
    if (composed_.composition == nullptr) return Illegal(composing_code_, composing_message_);
    const Pipeline& pipeline = group_->pipelines[static_cast<std::size_t>(point_.pipeline)];
    Composition& c = *composed_.composition;
    // Most of a grid divides no machine: said without making a plan.
    const long long used = static_cast<long long>(point_.tensor) * point_.context * pipeline.degree;
    if (devices_ % used != 0)
      return Illegal("plan.world", "the degrees' product does not divide the devices");
    const NamedSchedule& schedule = schedules_.at(pipeline.schedule);
    if (schedule.schedule == nullptr) return Illegal("plugin.unknown", schedule.refusal);
    c.schedule = schedule.schedule;
    c.schedule_name = pipeline.schedule;
    PlanRequest request = composed_.request;
    request.degrees = {{"tensor", point_.tensor}};
    if (group_->context) request.degrees["context"] = point_.context;
    if (group_->expert) request.degrees["expert"] = point_.expert;
    if (group_->cut_experts) request.degrees["expert_tensor"] = point_.tensor;
    request.pipeline = pipeline.degree;
    request.chunks = pipeline.chunks;
    request.count_ends = pipeline.count_ends;
    request.micro_batch_size = point_.micro_batch;
    Diagnostics diagnostics;
    const std::optional<Plan> plan = MakePlan(c, request, &c.splits, &diagnostics);
    if (!plan) {
      std::string code, message;
      Note(diagnostics, &code, &message);
      return Illegal(code, message);
    }
    Orders::Pointer order;
    if (plan->pipeline > 1) {
      order = orders_.Of(*c.schedule, pipeline.schedule,
                         {plan->pipeline, plan->chunks, plan->micro_batches});
      if (!order->ok()) return Illegal("schedule.order", std::string(order->status().message()));
    }
    Evaluated(*plan, order != nullptr ? &**order : nullptr);
  }

  void Evaluated(const Plan& plan, const CompiledOrder* order) {
    const Composition& c = *composed_.composition;
    workspace_->Reserve(plan, order);
    const Evaluation e = Evaluate(c, plan, order, *workspace_);
    ++result_.counts.evaluated;
    if (!e.fits) ++result_.counts.not_fitting;
    Found found;
    found.point = point_;
    found.step = e.step;
    found.peak = e.peak;
    found.capacity = e.capacity;
    found.fits = e.fits;
    found.time = e.time;
    const double tokens = c.training.sequence_length * c.training.global_batch_size;
    switch (grid_.objective) {
      case Objective::kStepSeconds:
        found.objective = e.step;
        break;
      case Objective::kTokensPerSecondPerDevice:
        found.objective = -tokens / e.step / devices_;
        break;
      case Objective::kCost:
        found.objective = e.step * devices_ * price_ / 3600;
        break;
    }
    if (e.fits && e.peak <= (1 - grid_.min_headroom) * e.capacity) {
      Offer(found, options_.top, &result_.best);
      OfferPareto(found, &result_.pareto);
    } else if (e.peak <= kNear * e.capacity) {
      Offer(found, 1, &result_.best_unfitting);
    }
  }

  bool When() const {
    if (!grid_.when) return true;
    const auto settings = SettingsOf(grid_, point_);
    std::string problem;
    const auto look_up = [&](const std::string& name) -> std::optional<Condition::Scalar> {
      Json json;
      for (const auto& [key, value] : settings) {
        if (key == name) json = ValueToJson(value);
      }
      if (json.is_null()) {
        if (const Value* value = grid_.base.root.FindPath(name)) json = ValueToJson(*value);
      }
      if (json.is_null() && name.size() > 7 && name.rfind(".degree") == name.size() - 7) return 1.0;
      if (json.is_boolean()) return json.get<bool>();
      if (json.is_number()) return json.get<double>();
      if (json.is_string()) return json.get<std::string>();
      return std::nullopt;
    };
    return grid_.when->Holds(look_up, &problem).value_or(true);
  }

  const PluginRegistry& registry_;
  const SearchGrid& grid_;
  const SearchOptions& options_;
  const std::map<std::string, NamedSchedule>& schedules_;
  Orders& orders_;
  const SearchGroup* group_ = nullptr;
  SearchPoint point_;
  ComposedScenario composed_;
  std::unique_ptr<Workspace> workspace_;
  std::string composing_code_, composing_message_;
  int devices_ = 1;
  double price_ = 0;
  SearchResult result_;
};

void Merge(SearchResult&& from, std::size_t top, SearchResult* into) {
  Add(from.counts, &into->counts);
  for (const Found& found : from.best) Offer(found, top, &into->best);
  for (const Found& found : from.pareto) OfferPareto(found, &into->pareto);
  for (const Found& found : from.best_unfitting) Offer(found, 1, &into->best_unfitting);
  for (auto& [code, reason] : from.illegal) {
    IllegalReason& sum = into->illegal[code];
    if (sum.count == 0) sum.example = reason.example;
    sum.count += reason.count;
  }
}

}  // namespace

SearchResult RunSearch(const PluginRegistry& registry, const SearchGrid& grid,
                       const SearchOptions& options,
                       const std::function<void(std::int64_t done)>& progress) {
  // A schedule is made as for its own scenario; no row of a composition depends on it.
  std::map<std::string, NamedSchedule> schedules;
  std::vector<std::int64_t> begins;
  std::int64_t number = 0;
  for (std::size_t g = 0; g < grid.groups.size(); ++g) {
    begins.push_back(number);
    number += grid.SizeOf(grid.groups[g]);
    for (std::size_t p = 0; p < grid.groups[g].pipelines.size(); ++p) {
      const std::string& name = grid.groups[g].pipelines[p].schedule;
      if (schedules[name].schedule != nullptr) continue;
      SearchPoint point;
      point.group = static_cast<int>(g);
      point.pipeline = static_cast<int>(p);
      Scenario scenario = ScenarioOf(grid, point);
      Diagnostics diagnostics;
      const ComposedScenario composed =
          ComposeScenario(registry, scenario, &diagnostics, ComposeWhat::kCompositionOnly);
      NamedSchedule& made = schedules[name];
      if (composed.composition != nullptr) {
        made.schedule = composed.composition->schedule;
      } else {
        for (const Diagnostic& d : diagnostics.all()) {
          if (made.refusal.empty()) made.refusal = d.message;
        }
      }
    }
  }
  SearchResult result;
  Orders orders;
  InOrder(
      static_cast<std::int64_t>(grid.groups.size()), options.jobs,
      [&](std::int64_t group, int) {
        return GroupSearch(registry, grid, options, schedules, &orders)
            .Run(static_cast<int>(group), begins[static_cast<std::size_t>(group)]);
      },
      [&](std::int64_t, SearchResult part) {
        Merge(std::move(part), options.top, &result);
        progress(result.counts.considered);
      });
  return result;
}

}  // namespace shardlab
