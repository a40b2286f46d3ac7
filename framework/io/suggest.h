#pragma once
// The next thing to try: single changes to the scenario, each composed and evaluated, and the best
// of them. Nothing is canned: the candidates are the degrees, the micro-batch and the parameters
// that plugins offer.
//
//   std::optional<Suggestion> next = Suggest(registry, scenario, sets, planned);

#include <optional>
#include <string>
#include <vector>

#include "io/plan_document.h"

namespace shardlab {

struct Suggestion {
  std::string key, value;  // for --set
  double step_seconds = 0, peak_bytes = 0;
  bool fits = false;
};

// For a plan that fits: the change that makes the step shortest and still fits with a tenth of the
// memory free (or no less than now). For one that does not: the fitting change with the shortest
// step, else the one with the lowest peak. Nothing when no single change is at least 1 % better.
std::optional<Suggestion> Suggest(const PluginRegistry& registry, const Scenario& scenario,
                                  const std::vector<std::string>& sets,
                                  const PlannedScenario& planned);

}  // namespace shardlab
