#pragma once
// The JSON of `shardlab lesson`, schema "shardlab.lesson/1": everything that a page or a terminal
// needs of a step. All are pure: what a learner did comes in and goes out as values.
//
//   LessonState state = StateOf(registry, step, {"training.micro_batch_size=2"});
//   StateDocument(registry, step, state)   // plan, gauges, knobs with legal values and reasons,
//   goal

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/lesson_figures.h"
#include "io/lesson_progress.h"
#include "io/lesson_question.h"
#include "io/lesson_step.h"

namespace shardlab {

inline constexpr const char* kLessonSchema = "shardlab.lesson/1";

nlohmann::ordered_json ListDocument(const std::vector<LessonStep>& course,
                                    const LessonProgress& progress);

// {schema, number, slug, ..., text, figures, questions, break, goal, plan}; problems are mistakes
// of the course.
nlohmann::ordered_json ShowDocument(const PluginRegistry& registry, const LessonStep& step,
                                    std::vector<std::string>* problems);

// A plan of the step: its scenario with a learner's settings over it.
struct LessonState {
  std::vector<std::string> sets;
  LessonPlanned planned;
};
LessonState StateOf(const PluginRegistry& registry, const LessonStep& step,
                    const std::vector<std::string>& sets);

// What a set may name: the step's knobs. Anything else is an error with the knobs.
void CheckKnobs(const LessonStep& step, const std::vector<std::string>& sets,
                Diagnostics& diagnostics);

// {reached, text, requirements: [{text, value, min, max, holds}]}; null where nothing is required.
// The plan is "plan" in the requirements' expressions.
nlohmann::ordered_json GoalDocument(const PluginRegistry& registry, const LessonStep& step,
                                    const std::vector<LessonRequirement>& requirements,
                                    const LessonPlanned& planned);
nlohmann::ordered_json StateDocument(const PluginRegistry& registry, const LessonStep& step,
                                     const LessonState& state);

// What the knobs are in one state and are not in the other: [{key, label, from, to}].
nlohmann::ordered_json ChangesDocument(const LessonStep& step, const LessonState& from,
                                       const LessonState& to);

// {legal, reason, fits, verdict, peak_bytes, headroom_bytes, step_seconds, compute_seconds,
// hidden_seconds and exposed_seconds of traffic, mfu, ...}
nlohmann::ordered_json GaugesDocument(const LessonPlanned& planned);

}  // namespace shardlab
