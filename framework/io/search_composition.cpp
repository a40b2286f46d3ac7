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
  degrees_ = degrees;
  for (std::size_t a = 0; a < grid_.axes.size(); ++a) degrees_[a] = grid_.Has(group_, a) ? 2 : 1;
  const std::size_t made = prepared_.Makes(grid_, number_, only_share_);
  composed_ = Composed(made, &refusal_);
  share_ = group_.pipelines[made].share;
  apart_ = only_share_ == 0 && !OneForAllShares(made);
  if (apart_) composed_ = {};
  if (composed_.composition == nullptr) return false;
  request_ = composed_.request;
  if (group_.pipelines[made].as_file) {
    request_.layers.clear();
    request_.balance = Balance::kEven;
  }
  stated_layers_ = request_.layers;
  stated_balance_ = request_.balance;
  return true;
}

ComposedScenario GroupComposition::Composed(std::size_t pipeline, Refused* refused) const {
  SearchPoint made;
  made.group = number_;
  made.degrees = degrees_;
  made.pipeline = static_cast<int>(pipeline);
  Diagnostics diagnostics;
  ComposedScenario composed =
      ComposeScenario(registry_, ScenarioOf(grid_, made), &diagnostics,
                      ComposeWhat::kCompositionOnly, &prepared_.compositions);
  if (composed.composition == nullptr) *refused = FirstError(diagnostics);
  return composed;
}

// Asked of one that is composed with another share.
bool GroupComposition::OneForAllShares(std::size_t made) {
  served_ = {share_};
  for (std::size_t p = group_.pipelines.size(); p-- > 0;) {
    if (group_.pipelines[p].share == group_.pipelines[made].share ||
        schedules_[p]->schedule == nullptr)
      continue;
    return composed_.composition != nullptr && Serves(p);
  }
  return true;
}

bool GroupComposition::Serves(std::size_t p) {
  const int other = group_.pipelines[p].share;
  if (served_.count(other) > 0) return true;
  Refused ignored;
  const ComposedScenario beside = Composed(p, &ignored);
  if (beside.composition == nullptr) return false;
  auto follow =
      ClassesThatFollow(composed_.composition->edited, share_, beside.composition->edited, other);
  if (!follow || (served_.size() > 1 && *follow != shared_)) return false;
  shared_ = *std::move(follow);
  served_.insert(other);
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
  share_ = pipeline.share;
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
