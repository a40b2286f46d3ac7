#include "app/lesson_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/lesson_flags.h"
#include "io/lesson_front.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTriesBeforeHint = 2;
constexpr int kTriesBeforeWorked = 3;
constexpr const char* kGoal = "goal";
constexpr const char* kEvent = "event";
constexpr const char* kLoad = "load";

// A job that has just been started with these settings.
Json NewJob(const std::vector<std::string>& sets) {
  return {{"set", sets}, {"event", nullptr}, {"steps", 0}, {"clock_seconds", 0.0}, {"tokens", 0.0}};
}

constexpr std::uint64_t kMostSteps = 1'000'000'000;  // of a job between two changes

// The job after `steps` more steps of its plan.
Json Advanced(Json job, const LessonPlanned& plan, std::uint64_t steps) {
  if (plan.document.is_null() || steps == 0) return job;
  const double n = static_cast<double>(steps);
  const Json& shape = plan.document.at("plan");
  const double tokens =
      shape.at("global_batch_size").get<double>() * shape.at("sequence_length").get<double>();
  job["steps"] = job.value("steps", std::uint64_t{0}) + steps;
  job["clock_seconds"] = job.value("clock_seconds", 0.0) +
                         n * plan.document.at("time").at("step_seconds").get<double>();
  job["tokens"] = job.value("tokens", 0.0) + n * tokens;
  return job;
}

Json Reply(const LessonStep& step) { return {{"schema", kLessonSchema}, {"step", step.slug}}; }

}  // namespace

LessonSession::LessonSession(const PluginRegistry& registry, const std::vector<LessonStep>& course,
                             LessonProgress progress, bool keep)
    : registry_(registry), course_(course), progress_(std::move(progress)), keep_(keep) {}

void LessonSession::Keep() {
  if (keep_) keep_ = WriteProgress(&progress_, diagnostics_);
}

// A step is done when each of its questions has been answered, its goal was reached and, where
// things happen to the job, what one of them asks.
void LessonSession::Pass(const LessonStep& step, const std::string& what) {
  Json& at = progress_.At(step.slug);
  Json& passed = at["passed"];
  if (passed.is_null()) passed = Json::array();
  if (std::find(passed.begin(), passed.end(), what) == passed.end()) passed.push_back(what);
  const auto has = [&](const std::string& one) {
    return std::find(passed.begin(), passed.end(), one) != passed.end();
  };
  bool done = (step.goal.empty() || has(kGoal)) && (step.events.empty() || has(kEvent));
  for (std::size_t i = 0; i < step.questions.size(); ++i) done = done && has(std::to_string(i + 1));
  if (done) at["done"] = true;
}

std::vector<std::string> LessonSession::SetsOf(const LessonStep& step) {
  const Json& at = progress_.At(step.slug);
  if (!at.contains("set")) return step.break_sets;
  return at.at("set").get<std::vector<std::string>>();
}

Json LessonSession::Show(const LessonStep& step) {
  std::vector<std::string> problems;
  Json out = ShowDocument(registry_, step, &problems);
  for (const std::string& problem : problems)
    diagnostics_.Warning("lesson.figure", {step.folder, 0, 0, ""}, problem);
  if (!step.HasCheck()) {  // there is nothing to do but read
    progress_.At(step.slug)["done"] = true;
    Keep();
  }
  out["done"] = progress_.Done(step.slug);
  return out;
}

Json LessonSession::State(const LessonStep& step) {
  Json out = StateDocument(registry_, step, StateOf(registry_, step, SetsOf(step)));
  if (progress_.At(step.slug).contains("job")) out["job"] = progress_.At(step.slug).at("job");
  out["done"] = progress_.Done(step.slug);
  return out;
}

std::size_t LessonSession::Questions(const LessonStep& step) const {
  return step.mix.steps.empty() ? step.questions.size() : DrawMix(course_, step, 0).size();
}

// The learner's plan with the words over it; nothing, with errors, when it is refused.
std::optional<LessonState> LessonSession::Changed(const LessonStep& step,
                                                  const std::vector<std::string>& words) {
  Diagnostics found;  // of these words alone: earlier mistakes of `run` do not count
  LessonRequest request;
  if (words[0] == kLoad) {
    LessonPlans plans(registry_, step);
    std::vector<std::string> problems;
    request.sets = SetsOfFront(FrontDocument(step, plans, &problems),
                               words.size() == 2 ? words[1] : "", found);
  } else {
    request = ReadRequest(step, words, found);
  }
  CheckKnobs(step, request.sets, found);
  const std::vector<std::string> merged = MergedSets(SetsOf(step), request.sets);
  CheckOtherFlags(registry_, step, request, merged, found);
  std::optional<LessonState> next;
  if (!found.HasErrors()) {
    next = StateOf(registry_, step, merged);
    if (next->planned.document.is_null()) {
      found.Append(NamedByFlags(next->planned.diagnostics, request));
      next.reset();
    }
  }
  diagnostics_.Append(found);
  return next;
}

Json LessonSession::Set(const LessonStep& step, const std::vector<std::string>& words) {
  if (words.empty()) {
    progress_.At(step.slug).erase("set");
    Keep();
    return State(step);
  }
  const std::optional<LessonState> next = Changed(step, words);
  if (!next) return nullptr;
  progress_.At(step.slug)["set"] = next->sets;
  Json out = StateDocument(registry_, step, *next);
  if (out["goal"].is_object() && out["goal"]["reached"] == true && !step.break_sets.empty())
    Pass(step, kGoal);  // a repair is done when it holds; other goals are submitted
  Keep();
  out["done"] = progress_.Done(step.slug);
  return out;
}

// The question itself, or the one of another step that a mix draws in its place.
MixedQuestion LessonSession::Meant(const LessonStep& step, std::size_t question,
                                   std::optional<std::uint64_t>* seed) const {
  if (step.mix.steps.empty()) return {&step, question, 0};
  const MixedQuestion drawn = DrawMix(course_, step, seed->value_or(0)).at(question);
  *seed = drawn.seed;
  return drawn;
}

Json LessonSession::Ask(const LessonStep& step, std::size_t question,
                        std::optional<std::uint64_t> seed) {
  std::optional<std::uint64_t> drawn = seed;
  const MixedQuestion meant = Meant(step, question, &drawn);
  const AskedQuestion asked = AskQuestion(registry_, *meant.step, meant.question, drawn);
  if (!asked.problem.empty())
    diagnostics_.Warning("lesson.question", {step.folder, 0, 0, ""}, asked.problem);
  Json out = Reply(step);
  out["question"] = question + 1;
  out["seed"] = seed ? Json(*seed) : Json(nullptr);
  if (meant.step != &step) out["from"] = meant.step->slug;
  out["text"] = asked.text;
  out["unit"] = asked.unit;
  out["choices"] = asked.choices;
  out["correct"] = nullptr;
  return out;
}

Json LessonSession::Check(const LessonStep& step, std::size_t question,
                          std::optional<std::uint64_t> seed, const std::string& answer) {
  std::optional<std::uint64_t> drawn = seed;
  const MixedQuestion meant = Meant(step, question, &drawn);
  const AskedQuestion asked = AskQuestion(registry_, *meant.step, meant.question, drawn);
  if (!asked.problem.empty())
    diagnostics_.Warning("lesson.question", {step.folder, 0, 0, ""}, asked.problem);
  const LessonGrade grade = GradeAnswer(asked, answer);
  const std::string name = std::to_string(question + 1);
  const std::string tried = seed ? absl::StrCat(name, "/", *seed) : name;
  Json& tries = progress_.At(step.slug)["tries"];
  if (tries.is_null()) tries = Json::object();
  if (!tries.contains(tried) || !tries[tried].is_number_integer()) tries[tried] = 0;
  const int wrong = tries[tried].get<int>() + (grade.correct ? 0 : 1);
  tries[tried] = wrong;
  if (grade.correct) Pass(step, name);
  Keep();
  Json out = Reply(step);
  out["question"] = question + 1;
  out["seed"] = seed ? Json(*seed) : Json(nullptr);
  if (meant.step != &step) out["from"] = meant.step->slug;
  out["text"] = asked.text;
  out["correct"] = grade.correct;
  const bool tell = grade.correct || wrong >= kTriesBeforeWorked;
  out["expected_shown"] = tell ? Json(asked.expected_shown) : Json(nullptr);
  out["slip"] = grade.slip.empty() ? Json(nullptr) : Json(grade.slip);
  out["message"] = grade.message;
  out["hint"] = !grade.correct && wrong >= kTriesBeforeHint ? Json(asked.hint) : Json(nullptr);
  out["worked"] = tell ? Json(asked.worked) : Json(nullptr);
  out["tries"] = wrong;
  out["done"] = progress_.Done(step.slug);
  return out;
}

Json LessonSession::CheckPlan(const LessonStep& step, const std::vector<std::string>& sets,
                              const std::string& file) {
  LessonPlanned planned = file.empty()
                              ? PlanLesson(registry_, step.scenario, MergedSets(SetsOf(step), sets))
                              : PlanLesson(registry_, file, sets);
  if (!file.empty() && planned.document.is_null()) {
    diagnostics_.Append(planned.diagnostics);
    return nullptr;
  }
  Json out = Reply(step);
  const Json goal = GoalDocument(registry_, step, step.goal, planned);
  const bool reached = goal.is_object() && goal.at("reached") == true;
  if (reached) Pass(step, kGoal);
  Keep();
  out["question"] = nullptr;
  out["correct"] = reached;
  out["expected_shown"] = step.goal_text;
  out["slip"] = nullptr;
  std::string message = reached ? "reached" : "not reached";
  if (planned.document.is_null()) message = absl::StrCat("refused: ", planned.Why());
  if (goal.is_object() && !planned.document.is_null())
    for (const Json& require : goal.at("requirements"))
      if (require.at("holds") == false)
        absl::StrAppend(&message, ": ", require.at("text").get<std::string>());
  out["message"] = message;
  out["hint"] = nullptr;
  out["goal"] = goal;
  out["gauges"] = GaugesDocument(planned);
  out["done"] = progress_.Done(step.slug);
  return out;
}

Json LessonSession::Submit(const LessonStep& step, const std::vector<std::string>& words) {
  if (!words.empty() && Set(step, words).is_null()) return nullptr;
  const std::vector<std::string> sets = SetsOf(step);
  const LessonState state = StateOf(registry_, step, sets);
  Json out = Reply(step);
  const Json gauges = GaugesDocument(state.planned);
  const bool legal = gauges.at("legal") == true;
  const bool fits = legal && gauges.at("fits") == true;
  out["accepted"] = fits;
  out["reason"] = nullptr;
  if (!legal) out["reason"] = gauges.at("reason");
  if (legal && !fits)
    out["reason"] =
        absl::StrCat("it does not fit: ",
                     FormatFigure("over_bytes", "", -gauges.at("headroom_bytes").get<double>()),
                     " over the memory of a device");
  out["gauges"] = gauges;
  const Json goal = GoalDocument(registry_, step, step.goal, state.planned);
  out["goal"] = goal;
  if (fits) {
    progress_.At(step.slug)["job"] = NewJob(sets);
    if (goal.is_object() && goal.at("reached") == true) Pass(step, kGoal);
    out["job"] = progress_.At(step.slug).at("job");
    Keep();
  }
  out["done"] = progress_.Done(step.slug);
  return out;
}

Json LessonSession::Replan(const LessonStep& step, const std::vector<std::string>& words,
                           const std::string& event, std::optional<std::uint64_t> seed,
                           std::uint64_t steps) {
  if (step.restart_seconds.empty()) {
    diagnostics_.Error("lesson.replan", {}, absl::StrCat("no job runs in ", step.slug));
    return nullptr;
  }
  if (steps > kMostSteps) {
    diagnostics_.Error(
        "lesson.steps", {},
        absl::StrCat("a job runs at most ", WithThousands(static_cast<long long>(kMostSteps)),
                     " steps before it is changed"),
        "name how many it ran, as --steps 1000");
    return nullptr;
  }
  const LessonEvent* happened = nullptr;
  std::vector<std::string> names;
  for (const LessonEvent& one : step.events) names.push_back(one.name);
  if (seed && event.empty() && !step.events.empty())
    happened = &step.events[*seed % step.events.size()];
  for (const LessonEvent& one : step.events)
    if (one.name == event) happened = &one;
  if (!event.empty() && happened == nullptr) {
    diagnostics_.Error("lesson.event", {}, absl::StrCat("there is no event \"", event, "\""),
                       absl::StrCat("events: ", Enumerate(names)));
    return nullptr;
  }
  Diagnostics found;
  std::vector<std::string> sets = ReadRequest(step, words, found).sets;
  CheckKnobs(step, sets, found);
  diagnostics_.Append(found);
  if (found.HasErrors()) return nullptr;
  Json& at = progress_.At(step.slug);
  if (words.empty() && at.contains("set"))  // the draft
    sets = at.at("set").get<std::vector<std::string>>();
  Json job = at.contains("job") ? at.at("job") : NewJob({});
  const std::vector<std::string> running = job.value("set", std::vector<std::string>());
  const LessonState old = StateOf(registry_, step, running);
  job = Advanced(std::move(job), old.planned, steps);
  const std::vector<std::string> with_event =
      happened == nullptr ? running : MergedSets(running, happened->sets);
  const LessonState before = StateOf(registry_, step, with_event);
  const std::vector<std::string> next_sets = MergedSets(with_event, sets);
  const LessonState next = StateOf(registry_, step, next_sets);

  Json out = Reply(step);
  out["event"] = happened == nullptr ? Json(nullptr) : Json(happened->name);
  out["event_text"] = happened == nullptr ? Json(nullptr) : Json(happened->text);
  out["running"] = GaugesDocument(old.planned);
  out["running_after_event"] = GaugesDocument(before.planned);
  out["changes"] = ChangesDocument(step, old, next);
  const Json gauges = GaugesDocument(next.planned);
  out["new"] = gauges;
  const bool legal = gauges.at("legal") == true;
  const bool fits = legal && gauges.at("fits") == true;
  out["accepted"] = fits;
  out["reason"] = legal ? (fits ? Json(nullptr) : Json("it does not fit")) : gauges.at("reason");
  const auto& goal_of = happened == nullptr ? step.goal : happened->goal;
  Json goal = GoalDocument(registry_, step, goal_of, next.planned);
  if (happened != nullptr && goal.is_object()) goal["text"] = happened->text;
  out["goal"] = goal;
  if (!fits) return out;

  // A job that goes on as it was has no pause.
  double cost = 0;
  if (next.planned.document != old.planned.document) {
    LessonPlans plans(registry_, step);
    plans.Add("old", old.planned.document);
    plans.Add("new", next.planned.document);
    const ExpressionResult pause = plans.Evaluate(step.restart_seconds);
    if (!pause.ok()) diagnostics_.Warning("lesson.replan", {step.folder, 0, 0, ""}, pause.problem);
    cost = pause.number.value;
  }
  out["cost_seconds"] = cost;
  // Against the job as it would go on; where it cannot, there is nothing to break even with.
  const Json& against = out["running_after_event"];
  out["saved_seconds_per_step"] = nullptr;
  out["break_even_steps"] = nullptr;
  if (against.at("legal") == true && against.at("fits") == true) {
    const double saved =
        against.at("step_seconds").get<double>() - gauges.at("step_seconds").get<double>();
    out["saved_seconds_per_step"] = saved;
    if (saved > 0) out["break_even_steps"] = std::ceil(cost / saved);
  }
  job["set"] = next_sets;
  job["event"] = out["event"];
  job["clock_seconds"] = job.value("clock_seconds", 0.0) + cost;
  at["job"] = std::move(job);
  out["job"] = at["job"];
  if (goal.is_object() && goal.at("reached") == true)
    Pass(step, happened == nullptr ? kGoal : kEvent);
  Keep();
  out["done"] = progress_.Done(step.slug);
  return out;
}

Json LessonSession::Reset() {
  progress_.steps = progress_.read = Json::object();
  progress_.forget = true;
  Keep();
  return List();
}

}  // namespace shardlab
