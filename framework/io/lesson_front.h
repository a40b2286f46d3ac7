#pragma once
// The plans of a step's [front] as points, and which of them no other beats in both of its axes.
//
//   Json front = FrontDocument(step, plans, &problems);
//   SetsOfFront(step, front, 3, diagnostics)   // what turns the knobs to the third plan

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "io/lesson_figures.h"
#include "io/lesson_step.h"

namespace shardlab {

// {x: {label}, y: {label}, plans: [{label, legal, fits, x, y, x_shown, y_shown, best, set}]}; null
// where the step has none. Only plans that fit are best, and only they have points.
nlohmann::ordered_json FrontDocument(const LessonStep& step, LessonPlans& plans,
                                     std::vector<std::string>* problems);

// The settings of plan `number`, counted from 1; empty, with an error, when there is none.
std::vector<std::string> SetsOfFront(const nlohmann::ordered_json& front, const std::string& number,
                                     Diagnostics& diagnostics);

}  // namespace shardlab
