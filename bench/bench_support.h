#pragma once
// What the benchmarks share: the sample scenario, read and composed once.
//
//   const Sample& sample = OperatorSample();
//   Evaluate(*sample.composed.composition, ...);

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/evaluate.h"
#include "io/compose_scenario.h"
#include "io/plan_document.h"

namespace shardlab::bench {

inline std::string SampleFile() {
  return std::string(SHARDLAB_SOURCE_DIR) + "/scenarios/llama3.1-70b-32xh100.toml";
}

inline const PluginRegistry& Registry() {
  static const PluginRegistry registry = [] {
    Diagnostics diagnostics;
    return PluginRegistry::Load({std::string(SHARDLAB_BINARY_DIR) + "/plugins"}, diagnostics);
  }();
  return registry;
}

inline Scenario SampleScenario(const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  return ReadScenario(SampleFile(), sets, diagnostics);
}

// DeepSeek-V3 with every kind of strategy on.
inline Scenario MoeScenario(const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  return ReadScenario(std::string(SHARDLAB_SOURCE_DIR) + "/bench/deepseek-v3-2048xh100.toml", sets,
                      diagnostics);
}

// The sample plan (TP8 PP2 DP2, ZeRO-1) with these keys changed; ends the program when it is
// illegal.
inline PlannedScenario PlannedOf(const Scenario& scenario) {
  Diagnostics diagnostics;
  PlannedScenario planned = PlanScenario(Registry(), scenario, &diagnostics, PlannedOrder::kWhole);
  if (planned.composed.composition == nullptr) {
    for (const Diagnostic& d : diagnostics.all()) std::cerr << d.message << "\n";
    std::exit(1);
  }
  return planned;
}
inline PlannedScenario Planned(const std::vector<std::string>& sets) {
  return PlannedOf(SampleScenario(sets));
}

}  // namespace shardlab::bench
