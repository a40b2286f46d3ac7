#pragma once
// An exporter's own example, exported with settings.
//
//   const ExampleExport example = ExportExample("deepspeed", {"strategy.zero.stage=2"});
//   EXPECT_TRUE(example.diagnostics.empty());

#include <string>
#include <vector>

#include "io/export_plan.h"
#include "support/plugins.h"

namespace shardlab {

struct ExampleExport {
  Diagnostics diagnostics;
  ExportedPlan exported;
};

inline ExampleExport ExportExample(const std::string& exporter,
                                   const std::vector<std::string>& sets) {
  ExampleExport example;
  const Scenario scenario =
      ReadScenario(SHARDLAB_SOURCE_DIR "/plugins/exports/export-" + exporter + "/example.toml",
                   sets, example.diagnostics);
  example.exported = ExportPlan(BuiltPlugins(), exporter, scenario, &example.diagnostics);
  return example;
}

}  // namespace shardlab
