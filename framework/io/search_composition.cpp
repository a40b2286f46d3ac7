#include "io/search_composition.h"

#include <memory>
#include <utility>

#include "core/shared_number.h"

namespace shardlab {
namespace {

Refused FirstError(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError) return {d.code, d.message};
  }
  return {};
}

}  // namespace

GroupComposition::GroupComposition(const PluginRegistry& registry, const SearchGrid& grid,
                                   Prepared* prepared, int group, int only_share)
    : registry_(registry),
      grid_(grid),
      prepared_(*prepared),
      number_(group),
      group_(grid.Group(group)),
      only_share_(only_share),
      split_of_(group_.pipelines.size(), -1) {
  for (std::size_t p = 0; p < group_.pipelines.size(); ++p)
    schedules_.push_back(&prepared_.Of(grid, group, p));
}

bool GroupComposition::Compose(const Degrees& degrees) {
  if (tried_) return composed_.composition != nullptr;
  tried_ = true;
  const std::size_t made = prepared_.Makes(grid_, number_, only_share_);
  composed_ = Composed(degrees, made, &refusal_);
  if (composed_.composition == nullptr) return false;
  request_ = composed_.request;
  if (group_.pipelines[made].as_file) {
    request_.layers.clear();
    request_.balance = Balance::kEven;
  }
  stated_layers_ = request_.layers;
  stated_balance_ = request_.balance;
  apart_ = only_share_ == 0 && !OneForAllShares(degrees, made);
  if (apart_) composed_ = {};
  return !apart_;
}

ComposedScenario GroupComposition::Composed(const Degrees& degrees, std::size_t pipeline,
                                            Refused* refused) const {
  SearchPoint made;
  made.group = number_;
  made.degrees = degrees;
  for (std::size_t a = 0; a < grid_.axes.size(); ++a)
    made.degrees[a] = grid_.Has(group_, a) ? 2 : 1;
  made.pipeline = static_cast<int>(pipeline);
  Diagnostics diagnostics;
  ComposedScenario composed =
      ComposeScenario(registry_, ScenarioOf(grid_, made), &diagnostics,
                      ComposeWhat::kCompositionOnly, &prepared_.compositions);
  if (composed.composition == nullptr) *refused = FirstError(diagnostics);
  return composed;
}

// Asked of one that is composed with another share.
bool GroupComposition::OneForAllShares(const Degrees& degrees, std::size_t made) {
  const int share = group_.pipelines[made].share;
  for (std::size_t p = group_.pipelines.size(); p-- > 0;) {
    const int other = group_.pipelines[p].share;
    if (other == share || schedules_[p]->schedule == nullptr) continue;
    Refused ignored;
    const ComposedScenario beside = Composed(degrees, p, &ignored);
    if (beside.composition == nullptr) return false;
    auto follow =
        ClassesThatFollow(composed_.composition->edited, share, beside.composition->edited, other);
    if (follow) shared_ = *std::move(follow);
    return follow.has_value();
  }
  return true;
}

// Not a counted pointer: all threads would count at the same place for each plan.
void GroupComposition::Ask(std::size_t p) {
  Composition& c = *composed_.composition;
  const Schedule* const schedule = schedules_[p]->schedule.get();
  if (c.schedule.get() == schedule) return;
  c.schedule = std::shared_ptr<const Schedule>(std::shared_ptr<void>(), schedule);
  c.schedule_name = group_.pipelines[p].schedule;
}

std::optional<Plan> GroupComposition::PlanWithoutLayers(const Degrees& degrees, int pipeline_degree,
                                                        Refused* refused) {
  for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
    if (!grid_.Has(group_, a)) continue;
    const SearchAxis& axis = grid_.axes[a];
    request_.degrees[axis.offer.axis] = degrees[a];
    if (axis.with >= 0)
      request_.degrees[axis.offer.with_axis] = grid_.SecondDegree(group_, degrees, a);
  }
  request_.pipeline = pipeline_degree;
  request_.micro_batch_size = 1;
  request_.count_ends = false;
  request_.chunks = 1;
  Diagnostics diagnostics;
  const std::optional<Plan> plan = MakePlanWithoutLayers(composition(), request_, &diagnostics);
  if (!plan) *refused = FirstError(diagnostics);
  return plan;
}

std::optional<std::int32_t> GroupComposition::SplitOf(std::size_t p, const Plan& plan,
                                                      Refused* refused) {
  const Pipeline& pipeline = group_.pipelines[p];
  const FileSplit& file = grid_.file_split;
  request_.balance = pipeline.as_file ? file.balance : stated_balance_;
  // One that is balanced by time or memory depends on the plan.
  if (split_of_[p] >= 0 && request_.balance == Balance::kEven) return split_of_[p];
  Composition& c = *composed_.composition;
  for (const std::size_t row : shared_) c.edited.program.classes[row].per_rank = pipeline.share;
  request_.chunks = pipeline.chunks;
  request_.count_ends = pipeline.as_file ? file.count_ends : pipeline.count_ends;
  request_.layers = pipeline.as_file ? file.layers : stated_layers_;
  request_.micro_batch_size = plan.micro_batch_size;
  Diagnostics diagnostics;
  std::optional<std::int32_t> made;
  if (request_.layers.empty() && request_.balance != Balance::kEven) {
    if (const auto whole = MakePlan(c, request_, &c.splits, &diagnostics)) made = whole->split;
  } else {
    made = MakeSplit(c, request_, &c.splits, &diagnostics);
  }
  if (!made) {
    *refused = FirstError(diagnostics);
    return std::nullopt;
  }
  split_of_[p] = *made;
  return made;
}

}  // namespace shardlab
