#include "app/lesson_run.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/lesson_text.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "  an answer           grades it\n"
    "  set KEY=VALUE ...   turns knobs; set alone goes back to the start\n"
    "  2+  or  2-          turns knob 2 one value up or down\n"
    "  state               the plan, the knobs and their legal values\n"
    "  submit              starts the job with the plan as it is\n"
    "  replan KEY=VALUE ... [event NAME]   changes the running job\n"
    "  show                the text again\n"
    "  skip                the next question;  quit: leave, progress is kept\n";

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

// "2+": the next value of knob 2; empty when the line is no such thing or there is no next value.
std::string Turned(const Json& state, const std::string& word) {
  if (word.size() != 2 || word[0] < '1' || word[0] > '9' || (word[1] != '+' && word[1] != '-'))
    return "";
  const std::size_t index = static_cast<std::size_t>(word[0] - '1');
  if (index >= state.at("knobs").size()) return "";
  const Json& knob = state.at("knobs")[index];
  const Json& values = knob.at("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].at("value") != knob.at("value")) continue;
    const std::size_t next = word[1] == '+' ? i + 1 : i - 1;  // wraps below zero, and is refused
    if (next >= values.size()) return "";
    const Json& value = values[next].at("value");
    return absl::StrCat(knob.at("key").get<std::string>(), "=",
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return "";
}

}  // namespace

void RunLesson(LessonSession& session, const LessonStep& step, std::istream& in, std::ostream& out,
               const TextStyle& style) {
  out << LessonShowText(session.Show(step), style);
  if (!step.HasCheck()) return;
  out << "\nType an answer; help lists what else can be typed.\n";
  std::size_t question = 0;
  std::size_t told = 0;  // diagnostics
  bool done = false;
  const auto tell = [&](const Json& document, auto text) {
    const auto& all = session.diagnostics().all();
    for (; told < all.size(); ++told) {
      out << style.Red("no") << "  " << all[told].message;
      if (!all[told].hint.empty()) out << "; " << all[told].hint;
      out << "\n";
    }
    if (document.is_null()) return;
    out << text(document, style);
    if (document.contains("done") && document.at("done") == true) done = true;
  };
  while (!done) {
    const bool asks = question < step.questions.size();
    if (asks) {
      out << "\n" << LessonQuestionText(session.Ask(step, question, std::nullopt), style);
    } else if (step.goal.empty()) {
      break;
    }
    out << "> " << std::flush;
    std::string line;
    if (!std::getline(in, line)) break;
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty()) continue;
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "quit" || words[0] == "exit") break;
    if (words[0] == "help" || words[0] == "?") {
      out << kHelp;
    } else if (words[0] == "skip") {
      ++question;
      if (question >= step.questions.size() && step.goal.empty()) break;
    } else if (words[0] == "show") {
      tell(session.Show(step), LessonShowText);
    } else if (words[0] == "state") {
      tell(session.State(step), LessonStateText);
    } else if (words[0] == "set") {
      tell(session.Set(step, rest), LessonStateText);
    } else if (words[0] == "submit") {
      tell(session.Submit(step), LessonJobText);
    } else if (words[0] == "replan") {
      std::vector<std::string> sets;
      std::string event;
      for (std::size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] == "event" && i + 1 < rest.size())
          event = rest[++i];
        else
          sets.push_back(rest[i]);
      }
      tell(session.Replan(step, sets, event, std::nullopt), LessonJobText);
    } else if (const std::string set = Turned(session.State(step), words[0]); !set.empty()) {
      tell(session.Set(step, {set}), LessonStateText);
    } else if (asks) {
      const Json graded = session.Check(step, question, std::nullopt, line);
      tell(graded, LessonGradeText);
      if (graded.at("correct") == true) ++question;
    } else {
      out << "type help\n";
    }
  }
  out << (done ? "\nThis step is done. " : "\nProgress is kept. ")
      << "shardlab lesson list shows what is left.\n";
}

}  // namespace shardlab
