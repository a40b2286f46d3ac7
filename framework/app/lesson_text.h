#pragma once
// The documents of `shardlab lesson` for a person at a terminal: no colour is needed to read them,
// and nothing is wider than the terminal.

#include <nlohmann/json.hpp>
#include <string>

#include "io/text_style.h"

namespace shardlab {

std::string LessonListText(const nlohmann::ordered_json& document, const TextStyle& style);
std::string LessonShowText(const nlohmann::ordered_json& document, const TextStyle& style);
// Every figure of the step, one a line.
std::string LessonFiguresText(const nlohmann::ordered_json& document, const TextStyle& style);
std::string LessonStateText(const nlohmann::ordered_json& document, const TextStyle& style);
std::string LessonQuestionText(const nlohmann::ordered_json& document, const TextStyle& style);
std::string LessonGradeText(const nlohmann::ordered_json& document, const TextStyle& style);
std::string LessonJobText(const nlohmann::ordered_json& document, const TextStyle& style);

}  // namespace shardlab
