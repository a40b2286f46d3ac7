#pragma once
// The JSON document of `shardlab plan`, schema "shardlab.plan/1": bytes are integers, seconds and
// rates doubles, each account of a rank rounded once to the nearest byte.
//
//   PlannedScenario planned = PlanScenario(registry, scenario, &diagnostics);
//   if (planned.composed.composition) std::cout << PlanDocument(planned, diagnostics).dump(2);

#include <nlohmann/json.hpp>
#include <optional>

#include "core/explain.h"
#include "io/compose_scenario.h"

namespace shardlab {

struct PlannedScenario {
  ComposedScenario composed;
  std::optional<CompiledOrder> order;  // none for one pipeline rank
  Explanation explanation;             // meaningless when there is no composition
};

// With each event of the order for who plays them (core/simulate.h); else without most of its
// repetition (core/short_order.h), which is all that a document asks.
enum class PlannedOrder { kShort, kWhole };

PlannedScenario PlanScenario(const PluginRegistry& registry, const Scenario& scenario,
                             Diagnostics* diagnostics, PlannedOrder kind = PlannedOrder::kShort);

nlohmann::ordered_json PlanDocument(const PlannedScenario& planned, const Diagnostics& diagnostics);

// "fits", "tight" (fits with less than a tenth of the capacity left) or "does_not_fit".
const char* Verdict(const Evaluation& evaluation);

}  // namespace shardlab
