#pragma once
// From a scenario to a composition: accounting, plugins with their parameters, the model's rows,
// the strategies' edits, the plan. Every mistake of meaning is collected; a composition comes out
// only when there is none.
//
//   ComposedScenario composed = ComposeScenario(registry, scenario, &diagnostics);
//   if (composed.composition) ...

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/composition.h"
#include "core/make_plan.h"
#include "io/compose_memory.h"
#include "io/plugin_registry.h"
#include "io/scenario.h"

namespace shardlab {

struct ComposedScenario {
  std::unique_ptr<Composition> composition;  // null when the scenario has errors
  PlanRequest request;
  std::string name;
  std::vector<std::string> overrides;  // "key = value" of each --set
  std::string software;
  std::string mesh_order;
  nlohmann::ordered_json resolved;  // the scenario with every default filled in
  Value expect;                     // the [expect] table, kNone without one
  // Kept alive for the composition: models and strategies answer nothing after composing, but own
  // nothing either.
  std::vector<std::shared_ptr<Plugin>> plugins;
};

// kCompositionOnly: the degrees of the scenario are not checked and the composition has no plan
// and no layer split yet; a search makes its own by MakePlan.
enum class ComposeWhat { kPlan, kCompositionOnly };

// With a memory compositions share what they have in common, and `resolved` and `plugins` lack it.
ComposedScenario ComposeScenario(const PluginRegistry& registry, const Scenario& scenario,
                                 Diagnostics* diagnostics, ComposeWhat what = ComposeWhat::kPlan,
                                 ComposeMemory* memory = nullptr);

}  // namespace shardlab
