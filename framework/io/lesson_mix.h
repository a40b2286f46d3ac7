#pragma once
// Which questions of other steps a [mix] asks. A seed draws them without repetition, and their
// numbers too: the same seed asks the same.
//
//   std::vector<MixedQuestion> asked = DrawMix(course, step, 7);

#include <cstdint>
#include <vector>

#include "io/lesson_step.h"

namespace shardlab {

struct MixedQuestion {
  const LessonStep* step = nullptr;
  std::size_t question = 0;
  std::uint64_t seed = 0;
};

// In the order in which they are asked; fewer than asked for only where the steps have fewer.
std::vector<MixedQuestion> DrawMix(const std::vector<LessonStep>& course, const LessonStep& step,
                                   std::uint64_t seed);

// SplitMix64: neighbouring seeds have nothing in common.
std::uint64_t MixedSeed(std::uint64_t seed);

}  // namespace shardlab
