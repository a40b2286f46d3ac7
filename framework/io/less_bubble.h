#pragma once
// What would shrink a pipeline's bubble: changes of the scenario, each composed and played. Nothing
// is canned: the schedules are those that are loaded, at the chunks that they take.
//
//   for (const LessBubble& less : ShrinkBubble(registry, scenario, sets, planned, now)) ...

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/plan_document.h"
#include "io/text_style.h"

namespace shardlab {

struct LessBubble {
  const char* by = "";            // "more micro-batches", "more chunks", ...
  std::vector<std::string> sets;  // for --set
  double bubble_fraction = 0;     // idle over the step, mean of ranks
  double step_seconds = 0, peak_bytes = 0;
  bool fits = false;
};

// The best of each kind that has at least 1 % less bubble than `now`, smallest bubble first: more
// micro-batches (smaller ones, else a larger batch), more chunks of the same schedule, another
// schedule, another split of the layers. Of several the one that fits. Empty without a pipeline.
std::vector<LessBubble> ShrinkBubble(const PluginRegistry& registry, const Scenario& scenario,
                                     const std::vector<std::string>& sets,
                                     const PlannedScenario& planned, double now);

nlohmann::ordered_json LessBubbleDocument(const std::vector<LessBubble>& all);
// Nothing where there is nothing to say.
std::string LessBubbleText(const std::vector<LessBubble>& all, double now, const TextStyle& style);

}  // namespace shardlab
