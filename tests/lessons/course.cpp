#include "lessons/course.h"

#include <stdexcept>

#include "gtest/gtest.h"
#include "io/render_diagnostics.h"

namespace shardlab {

const std::vector<LessonStep>& Course() {
  static const std::vector<LessonStep> course = [] {
    Diagnostics diagnostics;
    std::vector<LessonStep> read = ReadCourse(SHARDLAB_SOURCE_DIR "/lessons", diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << RenderDiagnostics(diagnostics, {});
    return read;
  }();
  return course;
}

const PluginRegistry& Plugins() {
  static const PluginRegistry registry = [] {
    Diagnostics diagnostics;
    PluginRegistry loaded = PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
    EXPECT_FALSE(diagnostics.HasErrors()) << RenderDiagnostics(diagnostics, {});
    return loaded;
  }();
  return registry;
}

const LessonStep& StepNamed(const std::string& slug) {
  for (const LessonStep& step : Course())
    if (step.slug == slug) return step;
  throw std::runtime_error("no step " + slug);
}

}  // namespace shardlab
