#include "io/lesson_mix.h"

#include <algorithm>
#include <utility>

namespace shardlab {

std::uint64_t MixedSeed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::vector<MixedQuestion> DrawMix(const std::vector<LessonStep>& course, const LessonStep& step,
                                   std::uint64_t seed) {
  std::vector<MixedQuestion> pool;
  for (const std::string& slug : step.mix.steps)
    for (const LessonStep& one : course)
      if (one.slug == slug)
        for (std::size_t i = 0; i < one.questions.size(); ++i) pool.push_back({&one, i, 0});
  std::uint64_t state = MixedSeed(seed);
  for (std::size_t i = pool.size(); i > 1; --i) {
    state = MixedSeed(state);
    std::swap(pool[i - 1], pool[state % i]);
  }
  pool.resize(std::min(pool.size(), static_cast<std::size_t>(std::max(0, step.mix.questions))));
  for (MixedQuestion& question : pool) question.seed = state = MixedSeed(state);
  return pool;
}

}  // namespace shardlab
