#pragma once
// `shardlab lesson run`: reads a line, answers, until the step is done or the input ends. Works
// from a pipe as from a keyboard.

#include <istream>
#include <ostream>

#include "app/lesson_session.h"
#include "io/text_style.h"

namespace shardlab {

void RunLesson(LessonSession& session, const LessonStep& step, std::istream& in, std::ostream& out,
               const TextStyle& style);

}  // namespace shardlab
