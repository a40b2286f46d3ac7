#pragma once
// The readouts of a lesson's plan for a terminal: memory bars by account, goal, pipeline chart,
// traffic, the plans that no other beats. Each is made from a part of the JSON alone.
//
//   out += LessonGaugesText(document.at("gauges"), style);

#include <nlohmann/json.hpp>
#include <string>

#include "io/text_style.h"

namespace shardlab {

std::size_t LessonWidth(const TextStyle& style);
// Wrapped, without a newline at the end.
std::string Folded(const std::string& text, std::size_t indent, std::size_t width);

std::string LessonGaugesText(const nlohmann::ordered_json& gauges, const TextStyle& style);
std::string LessonGoalText(const nlohmann::ordered_json& goal, const TextStyle& style);
std::string LessonChartText(const nlohmann::ordered_json& chart);
// One line for each axis and collective.
std::string LessonTrafficText(const nlohmann::ordered_json& plan);
std::string LessonFrontText(const nlohmann::ordered_json& front);

}  // namespace shardlab
