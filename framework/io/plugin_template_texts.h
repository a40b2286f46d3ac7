#pragma once
// The texts that `plugins new` fills in: @NAME@ the plugin, @FILE@ its source without extension,
// @CLASS@ its class, @KIND@ its kind. What differs between kinds is in io/templates, the rest in
// plugin_template.cpp.
//
//   const TemplateTexts& texts = TextsOfKind("schedule");

#include <string>

namespace shardlab {

struct TemplateTexts {
  const char* source;    // @FILE@.cpp
  const char* idea;      // of the README: what this start does, in one paragraph
  const char* formula;   // of the README
  const char* limits;    // of the README
  const char* scenario;  // example.toml, with an [expect]
  const char*
      commands;  // of the README and the test beyond check and plan; each line one command, or ""
};

// One file each, in io/templates.
extern const TemplateTexts kModelTemplate, kHardwareTemplate, kNetworkTemplate, kStrategyTemplate,
    kScheduleTemplate, kOptimizerTemplate, kExportTemplate;

// `kind` is one that FindKind knows.
const TemplateTexts& TextsOfKind(const std::string& kind);

}  // namespace shardlab
