#include "io/plugin_template_texts.h"

#include <map>

namespace shardlab {

const TemplateTexts& TextsOfKind(const std::string& kind) {
  static const std::map<std::string, const TemplateTexts*> texts = {
      {"strategy", &kStrategyTemplate}, {"schedule", &kScheduleTemplate},
      {"model", &kModelTemplate},       {"hardware", &kHardwareTemplate},
      {"network", &kNetworkTemplate},   {"optimizer", &kOptimizerTemplate},
      {"export", &kExportTemplate},
  };
  return *texts.at(kind);
}

}  // namespace shardlab
