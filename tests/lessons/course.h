#pragma once
// The course of this source tree and the plugins that were built, each read once.

#include <string>
#include <vector>

#include "io/lesson_step.h"
#include "io/plugin_registry.h"

namespace shardlab {

const std::vector<LessonStep>& Course();
const PluginRegistry& Plugins();
const LessonStep& StepNamed(const std::string& slug);

}  // namespace shardlab
