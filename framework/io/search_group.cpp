#include "io/search_group.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/bounds.h"
#include "core/make_plan.h"
#include "core/shared_number.h"
#include "io/compose_scenario.h"
#include "io/parameter_io.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kSampled = 8;  // plans of a group
constexpr double kNear = 1.1;  // of a device's memory: a plan that takes more did not nearly fit

bool Dominates(const Found& a, const Found& b) {
  return a.objective <= b.objective && a.peak <= b.peak && a.devices <= b.devices;
}

class GroupSearch {
 public:
  // `to_beat`: an objective that so many plans as are asked for have reached.
  GroupSearch(const PluginRegistry& registry, const SearchGrid& grid, const SearchOptions& options,
              Prepared* prepared, double to_beat)
      : registry_(registry),
        grid_(grid),
        options_(options),
        prepared_(*prepared),
        known_refusals_(prepared->orders.TakeRefusals()),
        to_beat_(to_beat) {}
  ~GroupSearch() {
    prepared_.orders.GiveBack(std::move(known_refusals_));
    Withdraw();
  }
  GroupSearch(const GroupSearch&) = delete;
  GroupSearch& operator=(const GroupSearch&) = delete;

  SearchResult Run(int group, std::int64_t first) {
    LookAt(group, first, grid_.micro_batch.size());
    if (apart_) {
      Apart(group, first);
    } else {
      MostPromisingFirst(waiting_.size());
    }
    return std::move(result_);
  }

  std::vector<double> Sample(int group) {
    LookAt(group, 0, 1);
    MostPromisingFirst(kSampled);
    std::vector<double> objectives;
    for (const Found& found : result_.best) objectives.push_back(found.objective);
    return objectives;
  }

 private:
  // Again, the pipelines of each share of layers with a composition of their own.
  void Apart(int group, std::int64_t first) {
    std::set<int> shares;
    for (const Pipeline& pipeline : group_->pipelines) shares.insert(pipeline.share);
    result_ = {};
    for (const int share : shares) {
      only_ = share;
      composed_ = {};
      tried_ = false;
      bounds_ = Bounds();
      waiting_.clear();
      LookAt(group, first, grid_.micro_batch.size());
      MostPromisingFirst(waiting_.size());
    }
  }

  // Points with the first of the micro-batches.
  void LookAt(int group, std::int64_t first, std::size_t micro_batches) {
    micro_batches_ = micro_batches;
    group_ = &grid_.Group(group);
    facts_ = &prepared_.others[static_cast<std::size_t>(grid_.OtherOf(group))];
    point_.group = group;
    // Pipelines of one degree share all block costs.
    std::map<int, std::vector<std::size_t>> by_degree;
    for (std::size_t p = 0; p < group_->pipelines.size(); ++p) {
      if (only_ == 0 || group_->pipelines[p].share == only_)
        by_degree[group_->pipelines[p].degree].push_back(p);
    }
    split_of_.assign(group_->pipelines.size(), -1);
    refusals_.assign(group_->pipelines.size(), {});
    schedules_.clear();
    for (std::size_t p = 0; p < group_->pipelines.size(); ++p)
      schedules_.push_back(&prepared_.Of(grid_, group, p));
    for (const Degrees& degrees : grid_.DegreesOf(*group_)) {
      point_.degrees = degrees;
      for (const auto& [degree, pipelines] : by_degree) {
        first_ = first;
        OfDegree(degree, pipelines);
      }
      first += static_cast<std::int64_t>(group_->pipelines.size() * grid_.micro_batch.size());
    }
  }

  // With degrees that are there; those of the points take their place.
  bool Compose() {
    if (tried_) return composed_.composition != nullptr;
    tried_ = true;
    const std::size_t made = prepared_.Makes(grid_, point_.group, only_);
    Diagnostics diagnostics;
    composed_ = Composed(made, &diagnostics);
    if (composed_.composition == nullptr) {
      Note(diagnostics, &composing_code_, &composing_message_);
      return false;
    }
    request_ = composed_.request;
    if (group_->pipelines[made].as_file) {
      request_.layers.clear();
      request_.balance = Balance::kEven;
    }
    if (only_ == 0 && !OneForAllShares(made)) {
      apart_ = true;
      composed_ = {};
      return false;
    }
    stated_layers_ = request_.layers;
    stated_balance_ = request_.balance;
    workspace_ = std::make_unique<Workspace>(*composed_.composition);
    capacity_ = composed_.composition->hardware->machine().memory.value();
    if (options_.bounds) workspace_->most_bytes = kNear * capacity_;
    return true;
  }

  ComposedScenario Composed(std::size_t pipeline, Diagnostics* diagnostics) {
    SearchPoint made = point_;
    for (std::size_t a = 0; a < grid_.axes.size(); ++a)
      made.degrees[a] = grid_.Has(*group_, a) ? 2 : 1;
    made.micro_batch = 1;
    made.pipeline = static_cast<int>(pipeline);
    return ComposeScenario(registry_, ScenarioOf(grid_, made), diagnostics,
                           ComposeWhat::kCompositionOnly, &prepared_.compositions);
  }

  // Whether the composition serves pipelines with another share of layers; asked of one that is
  // composed with another.
  bool OneForAllShares(std::size_t made) {
    shared_.clear();
    const int share = group_->pipelines[made].share;
    for (std::size_t p = group_->pipelines.size(); p-- > 0;) {
      const int other = group_->pipelines[p].share;
      if (other == share || schedules_[p]->schedule == nullptr) continue;
      Diagnostics ignored;
      const ComposedScenario beside = Composed(p, &ignored);
      if (beside.composition == nullptr) return false;
      auto follow = ClassesThatFollow(composed_.composition->edited, share,
                                      beside.composition->edited, other);
      if (follow) shared_ = *std::move(follow);
      return follow.has_value();
    }
    return true;
  }

  static void Note(const Diagnostics& diagnostics, std::string* code, std::string* message) {
    for (const Diagnostic& d : diagnostics.all()) {
      if (d.severity != Severity::kError) continue;
      *code = d.code;
      *message = d.message;
      return;
    }
  }

  void Illegal(const std::string& code, const std::string& message, std::int64_t points = 1) {
    if (points == 0) return;
    result_.counts.illegal += points;
    IllegalReason& reason = result_.illegal[code];
    if (reason.count == 0) reason.example = message;
    reason.count += points;
  }

  // Calls for each point of the pipelines that `when` lets through.
  template <class Visitor>
  void Points(const std::vector<std::size_t>& pipelines, std::size_t micro_batch, Visitor visit) {
    point_.micro_batch = grid_.micro_batch[micro_batch];
    for (const std::size_t p : pipelines) {
      point_.pipeline = static_cast<int>(p);
      point_.number =
          first_ + static_cast<std::int64_t>(p * grid_.micro_batch.size() + micro_batch);
      ++result_.counts.considered;
      if (When()) {
        visit(p);
      } else {
        ++result_.counts.pruned;
      }
    }
  }
  // With the micro-batches [begin, end).
  void AllIllegal(const std::vector<std::size_t>& pipelines, const std::string& code,
                  const std::string& message, std::size_t begin, std::size_t end) {
    if (grid_.when) {
      for (std::size_t b = begin; b < end; ++b)
        Points(pipelines, b, [&](std::size_t) { Illegal(code, message); });
      return;
    }
    const auto points = static_cast<std::int64_t>(pipelines.size() * (end - begin));
    result_.counts.considered += points;
    Illegal(code, message, points);
  }

  bool Divides(int degree) const {
    long long used = degree;
    for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
      if (!facts_->borrows[a]) used *= point_.degrees[a];
    }
    return facts_->devices % used == 0;
  }

  // All that a plan is but for its order and its split of layers, with micro-batches of 1.
  std::optional<Plan> Skeleton(int degree, std::string* code, std::string* message) {
    Composition& c = *composed_.composition;
    for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
      if (!grid_.Has(*group_, a)) continue;
      request_.degrees[grid_.axes[a].offer.axis] = point_.degrees[a];
      if (grid_.axes[a].with >= 0)
        request_.degrees[grid_.axes[a].offer.with_axis] =
            grid_.SecondDegree(*group_, point_.degrees, a);
    }
    request_.pipeline = degree;
    request_.micro_batch_size = 1;
    request_.count_ends = false;
    request_.chunks = 1;
    Diagnostics diagnostics;
    const std::optional<Plan> plan = MakePlanWithoutLayers(c, request_, &diagnostics);
    if (!plan) Note(diagnostics, code, message);
    return plan;
  }

  void OfDegree(int degree, const std::vector<std::size_t>& pipelines) {
    const auto illegal = [&](const std::string& code, const std::string& message) {
      AllIllegal(pipelines, code, message, 0, micro_batches_);
    };
    // Most of a grid divides no machine: said without making a plan.
    if (facts_->devices > 0 && !Divides(degree))
      return illegal("plan.world", "the degrees' product does not divide the devices");
    if (!Compose()) return illegal(composing_code_, composing_message_);
    std::string code, message;
    const std::optional<Plan> skeleton = Skeleton(degree, &code, &message);
    if (!skeleton) return illegal(code, message);
    for (std::size_t b = 0; b < micro_batches_; ++b) {
      Plan plan = *skeleton;
      plan.micro_batch_size = grid_.micro_batch[b];
      const bool whole = skeleton->micro_batches % plan.micro_batch_size == 0;
      plan.micro_batches = skeleton->micro_batches / plan.micro_batch_size;
      if (!whole) {
        AllIllegal(pipelines, "plan.batch",
                   absl::StrCat("the global batch does not divide by the data-parallel ranks x "
                                "micro-batch ",
                                plan.micro_batch_size),
                   b, b + 1);
        continue;
      }
      costs_known_ = false;
      Points(pipelines, b, [&](std::size_t p) { One(p, plan); });
    }
  }

  void One(std::size_t p, Plan plan) {
    const Pipeline& pipeline = group_->pipelines[p];
    const NamedSchedule& schedule = *schedules_[p];
    if (schedule.schedule == nullptr) return Illegal("plugin.unknown", schedule.refusal);
    Ask(pipeline, schedule);
    plan.chunks = pipeline.chunks;
    const ScheduleShape shape{plan.pipeline, plan.chunks, plan.micro_batches};
    if (plan.pipeline > 1) {
      const std::string& refusal = Refusal(p, schedule, shape);
      if (!refusal.empty()) return Illegal("schedule.refused", refusal);
    }
    // One that is balanced by time or memory depends on the plan.
    const Balance balance = pipeline.as_file ? grid_.file_split.balance : stated_balance_;
    if ((split_of_[p] < 0 || balance != Balance::kEven) && !Split(p, plan)) return;
    plan.split = split_of_[p];
    Consider(schedule, plan);
  }

  // Not a counted pointer: all threads would count at the same place for each plan.
  void Ask(const Pipeline& pipeline, const NamedSchedule& schedule) {
    Composition& c = *composed_.composition;
    if (c.schedule.get() == schedule.schedule.get()) return;
    c.schedule = std::shared_ptr<const Schedule>(std::shared_ptr<void>(), schedule.schedule.get());
    c.schedule_name = pipeline.schedule;
  }

  // Of a pipeline there are few numbers of micro-batches, and they come again and again.
  const std::string& Refusal(std::size_t p, const NamedSchedule& schedule,
                             const ScheduleShape& shape) {
    for (const auto& [micro_batches, refusal] : refusals_[p]) {
      if (micro_batches == shape.micro_batches) return *refusal;
    }
    const std::string& refusal = known_refusals_->Of(*schedule.schedule, schedule.index, shape);
    refusals_[p].emplace_back(shape.micro_batches, &refusal);
    return refusal;
  }

  // What its costs do not rule out waits for the others of the group, where there is anything to
  // beat: the sooner the best are found, the fewer others are played, or their orders made.
  void Consider(const NamedSchedule& schedule, const Plan& plan) {
    Costs(plan);
    if (!options_.bounds) return Whole(schedule, plan);
    PlanBound bound;
    if (costs_known_) {
      bound = bounds_.Of(*composed_.composition, plan, *workspace_, hop_, Seconds(to_beat()));
      if (bound.seconds > Seconds(to_beat()) || bound.bytes > workspace_->most_bytes) {
        ++result_.counts.pruned;
        return;
      }
    }
    if (options_.pareto) return Whole(schedule, plan);
    // What is not known is not the least.
    waiting_.push_back({costs_known_ ? bound.seconds : std::numeric_limits<double>::infinity(),
                        costs_known_, point_, plan});
  }

  void MostPromisingFirst(std::size_t most) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Waiting& a, const Waiting& b) { return a.seconds < b.seconds; });
    if (options_.jobs > 1) Announce(most);
    for (std::size_t i = 0; i < std::min(most, waiting_.size()); ++i) {
      const Waiting& next = waiting_[i];
      if (next.costs_known && next.seconds > Seconds(to_beat())) {
        ++result_.counts.pruned;
        continue;
      }
      const Plan& plan = next.plan;
      if (i == 0 || plan.atom != costs_of_.atom || plan.pipeline != costs_of_.pipeline ||
          plan.micro_batch_size != costs_of_.micro_batch_size)
        costs_known_ = false;
      point_ = next.point;
      const auto p = static_cast<std::size_t>(point_.pipeline);
      const Pipeline& pipeline = group_->pipelines[p];
      const NamedSchedule& schedule = *schedules_[p];
      Ask(pipeline, schedule);
      Costs(plan);
      Whole(schedule, plan);
    }
  }

  void Announce(std::size_t most) {
    std::vector<SearchOrders::Asked> outlines;
    std::set<SearchOrders::Key> shapes;
    for (std::size_t i = 0; i < std::min(most, waiting_.size()); ++i) {
      const Waiting& next = waiting_[i];
      const NamedSchedule& schedule = *schedules_[static_cast<std::size_t>(next.point.pipeline)];
      const SearchOrders::Asked asked = AskedOf(schedule, next.plan);
      if (next.plan.pipeline > 1 && shapes.insert(SearchOrders::KeyOf(asked)).second)
        outlines.push_back(asked);
    }
    Withdraw();
    announced_ = prepared_.orders.Announce(std::move(outlines));
  }
  void Withdraw() {
    if (announced_) prepared_.orders.Withdraw(*announced_);
    announced_.reset();
  }
  static SearchOrders::Asked AskedOf(const NamedSchedule& schedule, const Plan& plan) {
    return {
        schedule.schedule.get(), schedule.index, {plan.pipeline, plan.chunks, plan.micro_batches}};
  }

  // With its order, of which an outline often says enough.
  void Whole(const NamedSchedule& schedule, const Plan& plan) {
    workspace_->most_seconds = Seconds(to_beat());
    workspace_->plays = true;
    if (plan.pipeline == 1) {
      Evaluated(plan, nullptr);
      return;
    }
    const SearchOrders::Asked asked = AskedOf(schedule, plan);
    SearchOrders::Pointer outline;
    if (options_.bounds) {
      outline = prepared_.orders.Outline(asked);
      if (!outline->refusal.empty()) return Illegal(outline->code, outline->refusal);
      workspace_->plays = false;
      if (!Evaluated(plan, &outline->order)) return;
      workspace_->plays = true;
    }
    const SearchOrders::Pointer order =
        prepared_.orders.Of(asked, outline != nullptr ? &outline->order : nullptr);
    if (!order->refusal.empty()) return Illegal(order->code, order->refusal);
    Evaluated(plan, &order->order);
  }

  // The block costs, once for all orders and splits; not where ranks lie differently.
  void Costs(const Plan& plan) {
    if (costs_known_) return;
    costs_of_ = plan;
    workspace_->spans.Set(plan);
    workspace_->copies = 1;
    if (!workspace_->spans.Uniform()) return;
    const Composition& c = *composed_.composition;
    ComputeCosts(c, plan, 0, *workspace_);
    hop_ = plan.pipeline > 1 && c.exposed_transfers ? HopSeconds(c, *workspace_) : 0;
    costs_known_ = true;
  }

  bool Split(std::size_t p, const Plan& plan) {
    const Pipeline& pipeline = group_->pipelines[p];
    Composition& c = *composed_.composition;
    for (const std::size_t row : shared_) c.edited.program.classes[row].per_rank = pipeline.share;
    PlanRequest& request = request_;
    request.chunks = pipeline.chunks;
    const FileSplit& file = grid_.file_split;
    request.count_ends = pipeline.as_file ? file.count_ends : pipeline.count_ends;
    request.layers = pipeline.as_file ? file.layers : stated_layers_;
    request.balance = pipeline.as_file ? file.balance : stated_balance_;
    request.micro_batch_size = plan.micro_batch_size;
    Diagnostics diagnostics;
    std::optional<std::int32_t> made;
    if (request.layers.empty() && request.balance != Balance::kEven) {
      if (const auto whole = MakePlan(c, request, &c.splits, &diagnostics)) made = whole->split;
    } else {
      made = MakeSplit(c, request, &c.splits, &diagnostics);
    }
    if (!made) {
      std::string code, message;
      Note(diagnostics, &code, &message);
      Illegal(code, message);
      return false;
    }
    split_of_[p] = *made;
    return true;
  }

  double to_beat() const {
    if (!options_.bounds || options_.pareto) return std::numeric_limits<double>::infinity();
    return result_.best.size() < options_.top ? to_beat_
                                              : std::min(to_beat_, result_.best.back().objective);
  }

  double Objective(double step) const {
    const Composition& c = *composed_.composition;
    const double tokens = c.training.sequence_length * c.training.global_batch_size;
    switch (grid_.objective) {
      case Objective::kStepSeconds:
        return step;
      case Objective::kTokensPerSecondPerDevice:
        return -tokens / step / facts_->devices;
      case Objective::kCost:
        break;
    }
    return step * facts_->devices * facts_->price / 3600;
  }
  // The step that has this objective; a little more than it, so that equals are played.
  double Seconds(double objective) const {
    constexpr double kMore = 1 + 1e-9;
    if (objective == std::numeric_limits<double>::infinity()) return objective;
    return kMore * (grid_.objective == Objective::kTokensPerSecondPerDevice
                        ? Objective(1) / objective
                        : objective / Objective(1));
  }

  // True where it has still to be played.
  bool Evaluated(const Plan& plan, const CompiledOrder* order) {
    const Composition& c = *composed_.composition;
    workspace_->Reserve(plan, order);
    const bool same_costs = order == nullptr || order->copies == 1;
    workspace_->keeps_costs = costs_known_ && same_costs;
    const Evaluation e = Evaluate(c, plan, order, *workspace_);
    costs_known_ &= same_costs;
    if (e.stopped == Stopped::kUnplayed) return true;
    if (e.stopped == Stopped::kTime) {
      ++result_.counts.pruned;
      return false;
    }
    ++result_.counts.evaluated;
    if (!e.fits) ++result_.counts.not_fitting;
    if (e.stopped == Stopped::kMemory) return false;
    Found found;
    found.point = point_;
    found.step = e.step;
    found.peak = e.peak;
    found.capacity = e.capacity;
    found.devices = facts_->devices;
    found.fits = e.fits;
    found.time = e.time;
    found.objective = Objective(e.step);
    if (e.fits && e.peak <= (1 - grid_.min_headroom) * e.capacity) {
      Offer(found, options_.top, &result_.best);
      if (options_.pareto) OfferPareto(found, &result_.pareto);
    } else if (e.peak <= kNear * e.capacity) {
      Offer(found, 1, &result_.best_unfitting);
    }
    return false;
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
  Prepared& prepared_;
  std::unique_ptr<Refusals> known_refusals_;
  std::optional<int> announced_;
  const double to_beat_;
  std::size_t micro_batches_ = 0;  // that are looked at
  const SearchGroup* group_ = nullptr;
  int only_ = 0;        // 0: pipelines of all shares of layers, else of this one
  bool apart_ = false;  // no composition serves several shares
  const OtherFacts* facts_ = nullptr;
  SearchPoint point_;
  std::int64_t first_ = 0;  // number of the first point with these degrees
  ComposedScenario composed_;
  bool tried_ = false;
  PlanRequest request_;
  std::vector<std::size_t> shared_;  // classes of which each pipeline treats its share
  std::vector<int> stated_layers_;   // where `vary` states them
  Balance stated_balance_ = Balance::kEven;
  std::unique_ptr<Workspace> workspace_;
  std::string composing_code_, composing_message_;
  std::vector<const NamedSchedule*> schedules_;  // [pipeline]
  // [pipeline] by micro-batches
  std::vector<std::vector<std::pair<int, const std::string*>>> refusals_;
  std::vector<std::int32_t> split_of_;  // [pipeline]; -1: not made yet
  Bounds bounds_;
  double hop_ = 0;  // seconds of a message, where costs are known
  struct Waiting {
    double seconds = 0;  // at the least
    bool costs_known = false;
    SearchPoint point;
    Plan plan;
  };
  std::vector<Waiting> waiting_;
  bool costs_known_ = false;
  Plan costs_of_;  // of which they were asked last
  double capacity_ = 0;
  SearchResult result_;
};

}  // namespace

bool Better(const Found& a, const Found& b) {
  return std::tie(a.objective, a.point.number) < std::tie(b.objective, b.point.number);
}

void Offer(const Found& found, std::size_t most, std::vector<Found>* best) {
  if (most == 0 || (best->size() == most && !Better(found, best->back()))) return;
  best->insert(std::upper_bound(best->begin(), best->end(), found, Better), found);
  if (best->size() > most) best->pop_back();
}

void OfferPareto(const Found& found, std::vector<Found>* front) {
  for (const Found& other : *front) {
    if (Dominates(other, found) && (!Dominates(found, other) || Better(other, found))) return;
  }
  front->erase(std::remove_if(front->begin(), front->end(),
                              [&](const Found& other) { return Dominates(found, other); }),
               front->end());
  front->insert(std::upper_bound(front->begin(), front->end(), found, Better), found);
}

SearchResult SearchOfGroup(const PluginRegistry& registry, const SearchGrid& grid,
                           const SearchOptions& options, Prepared* prepared, int group,
                           std::int64_t first, double to_beat) {
  return GroupSearch(registry, grid, options, prepared, to_beat).Run(group, first);
}

std::vector<double> SampleOfGroup(const PluginRegistry& registry, const SearchGrid& grid,
                                  const SearchOptions& options, Prepared* prepared, int group) {
  return GroupSearch(registry, grid, options, prepared, std::numeric_limits<double>::infinity())
      .Sample(group);
}

}  // namespace shardlab
