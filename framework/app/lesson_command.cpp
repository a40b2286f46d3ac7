#include "app/lesson_command.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "app/lesson_run.h"
#include "app/lesson_session.h"
#include "app/lesson_text.h"
#include "base/text.h"
#include "io/shared_files.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

const std::vector<std::string>& Actions() {
  static const std::vector<std::string> actions = {"list", "show",   "run",    "check", "state",
                                                   "set",  "submit", "replan", "reset"};
  return actions;
}

// Options of this command, each with a value unless it is one of the last four.
constexpr std::array<const char*, 12> kOptions = {"--format",  "--plugins", "--set",   "--question",
                                                  "--seed",    "--event",   "--steps", "--lessons",
                                                  "--figures", "--help",    "-h",      "--version"};
constexpr std::size_t kValued = 8;

// The place of an option in kOptions, or their number.
std::size_t OptionAt(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return static_cast<std::size_t>(std::find(kOptions.begin(), kOptions.end(), name) -
                                  kOptions.begin());
}

// An answer may begin with '-': whatever follows `check STEP` is one, unless it is an option of
// this command. It is taken out before options are read.
std::optional<std::string> TakeAnswer(std::vector<std::string>* args) {
  if (args->size() < 3 || (*args)[0] != "check") return std::nullopt;
  if (OptionAt((*args)[2]) < kOptions.size()) return std::nullopt;
  const std::string taken = (*args)[2];
  args->erase(args->begin() + 2);
  return taken;
}

// So may what a framework's flags set: behind `set STEP` and its like everything is taken out, in
// its order, but for the options of this command and their values.
std::vector<std::string> TakeWords(std::vector<std::string>* args) {
  std::vector<std::string> words;
  if (args->size() < 3) return words;
  const std::string& action = (*args)[0];
  if (action != "set" && action != "submit" && action != "replan") return words;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < args->size(); ++i) {
    const std::string& word = (*args)[i];
    const std::size_t option = OptionAt(word);
    if (i < 2 || option < kOptions.size()) {
      rest.push_back(word);
      const bool apart = i >= 2 && option < kValued && word.find('=') == std::string::npos;
      if (apart && i + 1 < args->size()) rest.push_back((*args)[++i]);
    } else {
      words.push_back(word);
    }
  }
  *args = std::move(rest);
  return words;
}

struct Options {
  std::vector<std::string> sets;
  std::string lessons, event, answer;
  std::vector<std::string> words;  // of set, submit and replan
  bool has_answer = false, figures = false;
  long long question = 1;
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> seed;
};

class Lesson {
 public:
  Lesson(CommandLine& line, Streams streams, Options options)
      : line_(line), streams_(streams), options_(std::move(options)) {}

  int Run() {
    std::vector<std::string> words = line_.positional();
    const std::string action = words.empty() ? "list" : words[0];
    if (!words.empty()) words.erase(words.begin());
    if (std::find(Actions().begin(), Actions().end(), action) == Actions().end()) {
      const std::string near = Nearest(action, Actions());
      return line_.Fail(absl::StrCat("lesson does not know \"", action, "\""),
                        near.empty() ? absl::StrCat("it knows ", Enumerate(Actions()))
                                     : absl::StrCat("did you mean \"", near, "\"?"));
    }
    std::string folder = options_.lessons;
    if (folder.empty()) folder = SharedFile("lessons", streams_.terminal.program.c_str());
    if (folder.empty())
      return line_.Fail("the course's folder is not installed", "name it with --lessons DIR");
    Diagnostics diagnostics;
    const std::vector<LessonStep> course = ReadCourse(folder, diagnostics);
    LessonProgress progress = ReadProgress(ProgressPath(), diagnostics);
    if (diagnostics.HasErrors()) {
      line_.Tell(diagnostics, {});
      return kWrongInput;
    }
    const bool needs_no_plan = action == "list" || action == "reset";
    const PluginRegistry registry = needs_no_plan ? PluginRegistry() : line_.LoadPlugins();
    if (!line_.PluginsAreUsable()) return kWrongInput;
    LessonSession session(registry, course, std::move(progress), true);
    const LessonStep* step = nullptr;
    if (!needs_no_plan) {
      if (words.empty() && action == "run") {  // resume
        const Json list = session.List();
        if (list.at("next").is_string()) words.push_back(list.at("next").get<std::string>());
      }
      if (words.empty()) return line_.Fail(absl::StrCat("which step? lesson ", action, " STEP"));
      step = FindStep(course, words[0], diagnostics);
      words.erase(words.begin());
    }
    if (diagnostics.HasErrors()) {
      line_.Tell(diagnostics, {});
      return kWrongInput;
    }
    return Act(action, session, step, words, diagnostics);
  }

 private:
  int Act(const std::string& action, LessonSession& session, const LessonStep* step,
          std::vector<std::string> words, Diagnostics diagnostics) {
    words.insert(words.end(), options_.words.begin(), options_.words.end());
    words.insert(words.end(), options_.sets.begin(), options_.sets.end());
    if (action == "run") {
      if (streams_.terminal.in == nullptr) return line_.Fail("run needs somebody who answers");
      RunLesson(session, *step, options_.seed, *streams_.terminal.in, streams_.out, line_.style());
      return kDone;
    }
    Json document;
    std::string (*text)(const Json&, const TextStyle&) = &LessonListText;
    if (action == "list") {
      document = session.List();
    } else if (action == "reset") {
      document = session.Reset();
    } else if (action == "show") {
      document = session.Show(*step);
      text = options_.figures ? &LessonFiguresText : &LessonShowText;
    } else if (action == "state") {
      document = session.State(*step);
      text = &LessonStateText;
    } else if (action == "set") {
      document = session.Set(*step, words);
      text = &LessonStateText;
    } else if (action == "submit") {
      document = session.Submit(*step, words);
      text = &LessonJobText;
    } else if (action == "replan") {
      document = session.Replan(*step, words, options_.event, options_.seed, options_.steps);
      text = &LessonJobText;
    } else if (!Check(session, *step, words, &document, &text)) {
      return kWrongInput;
    }
    diagnostics.Append(session.diagnostics());
    if (document.is_null()) {
      line_.Tell(diagnostics, {});
      return kWrongInput;
    }
    streams_.out << (line_.json()
                         ? document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                         : text(document, line_.style()));
    line_.TellOnError(diagnostics, {});
    return kDone;
  }

  bool Check(LessonSession& session, const LessonStep& step, std::vector<std::string> words,
             Json* document, std::string (**text)(const Json&, const TextStyle&)) {
    *text = &LessonGradeText;
    // An answer behind the options: a single word that sets nothing.
    if (!options_.has_answer && words.size() == 1 && words[0].find('=') == std::string::npos) {
      options_.has_answer = true;
      options_.answer = words[0];
      words.clear();
    }
    std::error_code ignored;
    const bool file = options_.has_answer && !step.goal.empty() &&
                      std::filesystem::is_regular_file(options_.answer, ignored);
    const long long count = static_cast<long long>(session.Questions(step));
    if (!step.goal.empty() && (file || !words.empty() || count == 0)) {
      *document = session.CheckPlan(step, words, file ? options_.answer : "");
      return true;
    }
    if (count == 0) {
      line_.Fail(absl::StrCat(step.slug, " has nothing to check"));
      return false;
    }
    if (options_.question < 1 || options_.question > count) {
      line_.Fail(absl::StrCat(step.slug, " has ", count, count == 1 ? " question" : " questions"));
      return false;
    }
    const std::size_t question = static_cast<std::size_t>(options_.question - 1);
    if (options_.has_answer) {
      *document = session.Check(step, question, options_.seed, options_.answer);
    } else {
      *document = session.Ask(step, question, options_.seed);
      *text = &LessonQuestionText;
    }
    return true;
  }

  CommandLine& line_;
  Streams streams_;
  Options options_;
};

}  // namespace

int LessonCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line(
      "lesson [list | show STEP | run [STEP] | check STEP [ANSWER] | state STEP | "
      "set STEP K=V... |\n                       submit STEP | replan STEP K=V... | reset]",
      "The course: 22 steps from a model that does not fit to re-planning a running job. STEP is "
      "a\n"
      "name or a number. list: what is done; show: a step's text with live figures; run: do it\n"
      "here; check: grade an answer (the next argument, even if it begins with -), or a plan by\n"
      "--set or as a file; state, set: the plan and its knobs, by key or by a framework's flag; "
      "set\n"
      "alone goes back to the start; submit: start the job; replan: change the running one; "
      "reset:\n"
      "forget all progress.",
      streams);
  Options options;
  std::uint64_t seed = 0;
  line.options().add_options()("set", po::value(&options.sets)->composing(),
                               "a key of the plan with another value; repeatable")(
      "question", po::value(&options.question)->default_value(1), "which question of the step")(
      "seed", po::value(&seed), "draws the numbers of the question, or the event of replan")(
      "event", po::value(&options.event), "what happens to the job before replan")(
      "steps", po::value(&options.steps)->default_value(0),
      "how many steps the job ran before replan")("lessons", po::value(&options.lessons),
                                                  "another folder of steps")(
      "figures", po::bool_switch(&options.figures), "show: every figure of the step, by name");
  std::vector<std::string> rest = args;
  const std::optional<std::string> answer = TakeAnswer(&rest);
  options.words = TakeWords(&rest);
  constexpr std::size_t kMost = 64;  // settings of one call
  if (!line.Parse(rest, 0, kMost)) return line.status();
  if (line.values().count("seed") != 0) options.seed = seed;
  options.has_answer = answer.has_value();
  options.answer = answer.value_or("");
  return Lesson(line, streams, std::move(options)).Run();
}

}  // namespace shardlab
