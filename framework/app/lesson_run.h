#pragma once
// `shardlab lesson run`: reads a line, answers, until the step is done or the input ends. Works
// from a pipe as from a keyboard. With a seed, questions that are drawn are drawn from it.

#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>

#include "app/lesson_session.h"
#include "io/text_style.h"

namespace shardlab {

void RunLesson(LessonSession& session, const LessonStep& step, std::optional<std::uint64_t> seed,
               std::istream& in, std::ostream& out, const TextStyle& style);

}  // namespace shardlab
