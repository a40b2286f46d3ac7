#pragma once
// What the plans of a group of a search are made with: one composition, in which each pipeline puts
// its schedule, its split of layers and its share of them.
//
//   GroupComposition of(registry, grid, &prepared, group);
//   if (!of.Compose(degrees)) say(of.refusal());
//   std::optional<Plan> plan = of.PlanWithoutLayers(degrees, pipeline_degree, &refusal);
//   of.Ask(pipeline);  plan->split = *of.SplitOf(pipeline, *plan, &refusal);

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/make_plan.h"
#include "io/compose_scenario.h"
#include "io/search_group.h"

namespace shardlab {

struct Refused {
  std::string code, message;  // of the first error
};

class GroupComposition {
 public:
  // Pipelines are numbered as in the group. `only_share`: 0 for all pipelines of the group, else
  // for those with this share of layers.
  GroupComposition(const PluginRegistry& registry, const SearchGrid& grid, Prepared* prepared,
                   int group, int only_share = 0);

  // Once, with degrees that are there; those of the plans take their place. False: see `refusal`,
  // or `apart`.
  bool Compose(const Degrees& degrees);
  const Refused& refusal() const { return refusal_; }
  // No composition serves several shares of layers; each wants its own.
  bool apart() const { return apart_; }
  // Whether it serves the pipeline's share, too. What was found with it is asked again here: two
  // shares may be alike and a third one refused.
  bool Serves(std::size_t p);
  const Composition& composition() const { return *composed_.composition; }

  const Pipeline& pipeline(std::size_t p) const { return group_.pipelines[p]; }
  const NamedSchedule& schedule(std::size_t p) const { return *schedules_[p]; }
  // From now on the composition is asked with the schedule of the pipeline.
  void Ask(std::size_t p);

  // All that a plan is but for its order and its split of layers, with micro-batches of 1.
  std::optional<Plan> PlanWithoutLayers(const Degrees& degrees, int pipeline_degree,
                                        Refused* refused);
  // Made once for a pipeline, where it does not depend on the plan.
  std::optional<std::int32_t> SplitOf(std::size_t p, const Plan& plan, Refused* refused);

 private:
  ComposedScenario Composed(std::size_t pipeline, Refused* refused) const;
  bool OneForAllShares(std::size_t made);

  const PluginRegistry& registry_;
  const SearchGrid& grid_;
  Prepared& prepared_;
  const int number_;
  const SearchGroup& group_;
  const int only_share_;
  std::vector<const NamedSchedule*> schedules_;  // [pipeline]
  bool tried_ = false, apart_ = false;
  Refused refusal_;
  ComposedScenario composed_;
  PlanRequest request_;
  Degrees degrees_{};
  int share_ = 0;                    // that the composition has at present
  std::vector<std::size_t> shared_;  // classes of which each pipeline treats its share
  std::set<int> served_;             // shares that it is known to serve
  std::vector<int> stated_layers_;   // where `vary` states them
  Balance stated_balance_ = Balance::kEven;
  std::vector<std::int32_t> split_of_;  // [pipeline]; -1: not made yet
};

}  // namespace shardlab
