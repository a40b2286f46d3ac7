#pragma once
// Settings that a learner writes in a framework's own flags. What a flag stands for is the step's
// knob that names it; any other flag must be one that the exporter writes for the plan as it is.
//
//   LessonRequest request = ReadRequest(step, {"--tensor-model-parallel-size", "4"}, diagnostics);
//   request.sets                      // {"strategy.tensor.degree=4"}
//
// `without --sequence-parallel` takes a switch out. A word with blanks is read as several when it
// begins with a flag, so that a whole line may be given.

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "io/lesson_step.h"
#include "io/plugin_registry.h"

namespace shardlab {

struct LessonRequest {
  std::vector<std::string> sets;  // KEY=VALUE
  // Flags of knobs as they were written, by the knob's key.
  std::vector<std::pair<std::string, std::string>> flags;
  // Flags that no knob stands for, "--bf16" or "--seq-length 4096".
  std::vector<std::string> others;
};

LessonRequest ReadRequest(const LessonStep& step, const std::vector<std::string>& words,
                          Diagnostics& diagnostics);

// An error for each of `others` that the export of the plan with `sets` does not have.
void CheckOtherFlags(const PluginRegistry& registry, const LessonStep& step,
                     const LessonRequest& request, const std::vector<std::string>& sets,
                     Diagnostics& diagnostics);

// The planner's errors with the flag in front that a key was written as.
Diagnostics NamedByFlags(const Diagnostics& diagnostics, const LessonRequest& request);

}  // namespace shardlab
