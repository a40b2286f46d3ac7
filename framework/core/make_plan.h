#pragma once
// From degrees to a Plan: what is left for data parallelism, atoms, micro-batches, the layers of
// each stage; and every reason why a combination is illegal, each with the legal values.
//
//   std::optional<Plan> plan = MakePlan(composition, request, &splits, &diagnostics);

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/balance.h"
#include "core/composition.h"

namespace shardlab {

struct PlanRequest {
  std::map<std::string, int>
      degrees;  // axis name -> degree; absent: the composition's declared one
  int pipeline = 1;
  int chunks = 1;
  int micro_batch_size = 1;
  int global_batch_size = 1;
  std::vector<int> layers;           // of each stage; empty: as balance says
  Balance balance = Balance::kEven;  // of stages
  bool count_ends = false;           // even: embedding and head count as a layer each
  // Where the user said these; used in messages only.
  Place pipeline_place, chunks_place, micro_batch_place, global_batch_place, layers_place,
      count_ends_place, schedule_place, hardware_place;
};

// Puts the plan's layer split into `splits` (once) and returns the plan, or nothing with
// diagnostics.
std::optional<Plan> MakePlan(const Composition& composition, const PlanRequest& request,
                             std::vector<LayerSplit>* splits, Diagnostics* diagnostics);

// For who tries many splits and schedules of one choice of degrees, in two steps. First all that a
// plan is but for its layers and what its schedule says of it: `split` is not set.
std::optional<Plan> MakePlanWithoutLayers(const Composition& composition,
                                          const PlanRequest& request, Diagnostics* diagnostics);
// Then the index of its layer split, which is put into `splits` (once). Of a request whose layers
// are stated, or are spread evenly.
std::optional<std::int32_t> MakeSplit(const Composition& composition, const PlanRequest& request,
                                      std::vector<LayerSplit>* splits, Diagnostics* diagnostics);

// What a plan's named axis comes to: its degree, 1 when there is no such axis.
int DegreeOf(const Composition& composition, const Plan& plan, AxisRole role);

}  // namespace shardlab
