#pragma once
// A scenario's plan as the files of a training framework, by an exporter plugin. A plugin
// "export-NAME" is asked for as NAME.
//
//   ExportedPlan exported = ExportPlan(registry, "NAME", scenario, &diagnostics);
//   if (!diagnostics.HasErrors()) write(exported.files);

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/exporter.h"
#include "io/plugin_registry.h"
#include "io/scenario.h"

namespace shardlab {

struct ExportedPlan {
  std::string framework, version;
  std::vector<ExportedFile> files;  // none where there is an error
};

// The names that ExportPlan takes, sorted.
std::vector<std::string> ExportNames(const PluginRegistry& registry);

ExportedPlan ExportPlan(const PluginRegistry& registry, const std::string& name,
                        const Scenario& scenario, Diagnostics* diagnostics);

// {schema "shardlab.export/1", framework, version, files: [{name, text}], diagnostics}.
nlohmann::ordered_json ExportDocument(const ExportedPlan& exported, const Diagnostics& diagnostics);

// The lines of the files that contain one of the words, in their order, without the indent that
// they share; for a text that shows a part. Words that no line has go to `missing`.
std::string ExportedLines(const ExportedPlan& exported, const std::vector<std::string>& words,
                          std::vector<std::string>* missing);

}  // namespace shardlab
