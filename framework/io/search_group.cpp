#include "io/search_group.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/bounds.h"
#include "io/search_composition.h"

namespace shardlab {
namespace {

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
    if (!of_->apart()) MostPromisingFirst(waiting_.size());
    if (of_->apart() || !IsServed()) Apart(group, first);
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
  // Whether all that was found is as if each share of layers had been composed.
  bool IsServed() {
    for (const auto* found : {&result_.best, &result_.pareto, &result_.best_unfitting}) {
      for (const Found& one : *found) {
        if (!of_->Serves(static_cast<std::size_t>(one.point.pipeline))) return false;
      }
    }
    return true;
  }

  // Again, the pipelines of each share of layers with a composition of their own.
  void Apart(int group, std::int64_t first) {
    std::set<int> shares;
    for (const Pipeline& pipeline : group_->pipelines) shares.insert(pipeline.share);
    result_ = {};
    for (const int share : shares) {
      only_share_ = share;
      workspace_.reset();
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
      if (only_share_ == 0 || group_->pipelines[p].share == only_share_)
        by_degree[group_->pipelines[p].degree].push_back(p);
    }
    of_.emplace(registry_, grid_, &prepared_, group, only_share_);
    refusals_.assign(group_->pipelines.size(), {});
    for (const Degrees& degrees : grid_.DegreesOf(*group_)) {
      point_.degrees = degrees;
      for (const auto& [degree, pipelines] : by_degree) {
        first_ = first;
        OfDegree(degree, pipelines);
      }
      first += static_cast<std::int64_t>(group_->pipelines.size() * grid_.micro_batch.size());
    }
  }

  bool Compose() {
    if (workspace_ != nullptr) return true;
    if (!of_->Compose(point_.degrees)) return false;
    const Composition& c = of_->composition();
    workspace_ = std::make_unique<Workspace>(c);
    if (options_.bounds) workspace_->most_bytes = kNear * c.hardware->machine().memory.value();
    return true;
  }

  void Illegal(const std::string& code, const std::string& message, std::int64_t points = 1) {
    if (points == 0) return;
    result_.counts.illegal += points;
    IllegalReason& reason = result_.illegal[code];
    if (reason.count == 0) reason.example = message;
    reason.count += points;
  }

  void Illegal(const Refused& refused) { Illegal(refused.code, refused.message); }

  // Calls for each point of the pipelines that `when` lets through.
  template <class Visitor>
  void Points(const std::vector<std::size_t>& pipelines, std::size_t micro_batch, Visitor visit) {
    point_.micro_batch = grid_.micro_batch[micro_batch];
    for (const std::size_t p : pipelines) {
      point_.pipeline = static_cast<int>(p);
      point_.number =
          first_ + static_cast<std::int64_t>(p * grid_.micro_batch.size() + micro_batch);
      ++result_.counts.considered;
      if (LetsThrough(grid_, point_)) {
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

  void OfDegree(int degree, const std::vector<std::size_t>& pipelines) {
    const auto illegal = [&](const std::string& code, const std::string& message) {
      AllIllegal(pipelines, code, message, 0, micro_batches_);
    };
    // Most of a grid divides no machine: said without making a plan.
    if (facts_->devices > 0 && !Divides(degree))
      return illegal("plan.world", "the degrees' product does not divide the devices");
    if (!Compose()) return illegal(of_->refusal().code, of_->refusal().message);
    Refused refused;
    const std::optional<Plan> skeleton = of_->PlanWithoutLayers(point_.degrees, degree, &refused);
    if (!skeleton) return illegal(refused.code, refused.message);
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
    const NamedSchedule& schedule = of_->schedule(p);
    if (schedule.schedule == nullptr) return Illegal("plugin.unknown", schedule.refusal);
    of_->Ask(p);
    plan.chunks = of_->pipeline(p).chunks;
    const ScheduleShape shape{plan.pipeline, plan.chunks, plan.micro_batches};
    if (plan.pipeline > 1) {
      const std::string& refusal = Refusal(p, schedule, shape);
      if (!refusal.empty()) return Illegal("schedule.refused", refusal);
    }
    Refused refused;
    const std::optional<std::int32_t> split = of_->SplitOf(p, plan, &refused);
    if (!split) return Illegal(refused);
    plan.split = *split;
    Consider(schedule, plan);
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
      bound = bounds_.Of(of_->composition(), plan, *workspace_, hop_, Seconds(to_beat()));
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
      of_->Ask(p);
      Costs(plan);
      Whole(of_->schedule(p), plan);
    }
  }

  void Announce(std::size_t most) {
    std::vector<SearchOrders::Asked> outlines;
    std::set<SearchOrders::Key> shapes;
    for (std::size_t i = 0; i < std::min(most, waiting_.size()); ++i) {
      const Waiting& next = waiting_[i];
      const NamedSchedule& schedule = of_->schedule(static_cast<std::size_t>(next.point.pipeline));
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
    const Composition& c = of_->composition();
    ComputeCosts(c, plan, 0, *workspace_);
    hop_ = plan.pipeline > 1 && c.exposed_transfers ? HopSeconds(c, *workspace_) : 0;
    costs_known_ = true;
  }

  double to_beat() const {
    if (!options_.bounds || options_.pareto) return std::numeric_limits<double>::infinity();
    return result_.best.size() < options_.top ? to_beat_
                                              : std::min(to_beat_, result_.best.back().objective);
  }

  double Objective(double step) const {
    const Composition& c = of_->composition();
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
    const Composition& c = of_->composition();
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

  const PluginRegistry& registry_;
  const SearchGrid& grid_;
  const SearchOptions& options_;
  Prepared& prepared_;
  std::unique_ptr<Refusals> known_refusals_;
  std::optional<int> announced_;
  const double to_beat_;
  std::size_t micro_batches_ = 0;  // that are looked at
  const SearchGroup* group_ = nullptr;
  int only_share_ = 0;  // 0: pipelines of all shares of layers, else of this one
  const OtherFacts* facts_ = nullptr;
  SearchPoint point_;
  std::int64_t first_ = 0;  // number of the first point with these degrees
  std::optional<GroupComposition> of_;
  std::unique_ptr<Workspace> workspace_;
  // [pipeline] by micro-batches
  std::vector<std::vector<std::pair<int, const std::string*>>> refusals_;
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
