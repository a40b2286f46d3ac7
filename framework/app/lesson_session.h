#pragma once
// One call of `shardlab lesson`: the course, the plugins and what the learner has done; each action
// answers with a JSON document and keeps what it changed.
//
//   LessonSession session(registry, course, progress);
//   Json graded = session.Check(step, 0, std::nullopt, "1.5");

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/lesson_document.h"
#include "io/lesson_mix.h"

namespace shardlab {

class LessonSession {
 public:
  using Json = nlohmann::ordered_json;

  LessonSession(const PluginRegistry& registry, const std::vector<LessonStep>& course,
                LessonProgress progress, bool keep);

  Json List() const { return ListDocument(course_, progress_); }
  Json Show(const LessonStep& step);
  Json State(const LessonStep& step);
  // KEY=VALUE, a framework's flags, or "load" and the number of a plan; without any, back to the
  // start. A refused plan is told, and the settings stay as they were.
  Json Set(const LessonStep& step, const std::vector<std::string>& words);
  // How many questions the step asks, its own or drawn from others.
  std::size_t Questions(const LessonStep& step) const;
  Json Ask(const LessonStep& step, std::size_t question, std::optional<std::uint64_t> seed);
  Json Check(const LessonStep& step, std::size_t question, std::optional<std::uint64_t> seed,
             const std::string& answer);
  // The step's goal, for the learner's plan with `sets`, or for a file.
  Json CheckPlan(const LessonStep& step, const std::vector<std::string>& sets,
                 const std::string& file);
  // The plan as it is, or as `words` set it first.
  Json Submit(const LessonStep& step, const std::vector<std::string>& words = {});
  // The job has run `steps` more steps. `event`: a name, or empty; `seed` chooses one.
  Json Replan(const LessonStep& step, const std::vector<std::string>& words,
              const std::string& event, std::optional<std::uint64_t> seed, std::uint64_t steps = 0);
  Json Reset();

  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  std::vector<std::string> SetsOf(const LessonStep& step);
  std::optional<LessonState> Changed(const LessonStep& step, const std::vector<std::string>& words);
  MixedQuestion Meant(const LessonStep& step, std::size_t question,
                      std::optional<std::uint64_t>* seed) const;
  void Pass(const LessonStep& step, const std::string& what);
  void Keep();

  const PluginRegistry& registry_;
  const std::vector<LessonStep>& course_;
  LessonProgress progress_;
  bool keep_;
  Diagnostics diagnostics_;
};

}  // namespace shardlab
