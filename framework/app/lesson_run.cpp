#include "app/lesson_run.h"

#include <charconv>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "app/lesson_gauges.h"
#include "app/lesson_text.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    "  an answer           grades it\n"
    "  set KEY=VALUE ...   turns knobs; set alone goes back to the start\n"
    "  set --FLAG VALUE    the same in a framework's flags, where the step has some;\n"
    "                      set without --FLAG takes a switch out\n"
    "  2+  or  2-          turns knob 2 one value up or down\n"
    "  load N              turns all knobs to plan N, where the step lists plans\n"
    "  state               the plan, the knobs and their legal values\n"
    "  submit              starts the job with the plan as it is\n"
    "  replan [KEY=VALUE ...] [event NAME] [steps N]   changes the running job, to\n"
    "                      the plan as it is set where nothing is named\n"
    "  show                the text again;  figures: every figure of it, by name\n"
    "  skip                the next question;  quit: leave, progress is kept\n";

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

// "2+": knob 2 one value up; nothing when the word is no such thing. A number too long for any knob
// is the last there can be.
struct Turn {
  std::size_t knob = 0;  // from 1, as state numbers them
  bool up = true;
};
std::optional<Turn> ReadTurn(const std::string& word) {
  Turn turn;
  const char way = word.back();
  const char* const end = word.data() + word.size() - 1;
  const auto [read, error] = std::from_chars(word.data(), end, turn.knob);
  if (error == std::errc::result_out_of_range) turn.knob = std::numeric_limits<std::size_t>::max();
  if ((way != '+' && way != '-') || error == std::errc::invalid_argument || read != end)
    return std::nullopt;
  turn.up = way == '+';
  return turn;
}

// "1+ 2-": the turns of a line; none when a word of it is something else.
std::vector<Turn> ReadTurns(const std::vector<std::string>& words) {
  std::vector<Turn> out;
  for (const std::string& word : words) {
    const std::optional<Turn> turn = ReadTurn(word);
    if (!turn) return {};
    out.push_back(*turn);
  }
  return out;
}

// The setting that a turn means; empty, with why, when there is no such knob or no next value.
std::string Turned(const Json& state, const Turn& turn, std::string* why) {
  const Json& knobs = state.at("knobs");
  if (turn.knob < 1 || turn.knob > knobs.size()) {
    *why = knobs.empty()
               ? "this step has no knobs"
               : absl::StrCat("there is no knob ", turn.knob, ", only 1 to ", knobs.size());
    return "";
  }
  const Json& knob = knobs[turn.knob - 1];
  const Json& values = knob.at("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].at("value") != knob.at("value")) continue;
    const std::size_t next = turn.up ? i + 1 : i - 1;  // below the first it wraps, and is refused
    if (next >= values.size()) break;
    const Json& value = values[next].at("value");
    return absl::StrCat(knob.at("key").get<std::string>(), "=",
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  *why = absl::StrCat("knob ", turn.knob, " has no value ", turn.up ? "above" : "below",
                      " this one; state lists them, and set takes any");
  return "";
}

// The choice that a letter, a number or its own text stands for; empty when it is none.
std::string Chosen(const Json& choices, const std::string& line) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    auto text = choices[i].get<std::string>();
    const std::string letter(1, static_cast<char>('a' + i));
    if (line == text || line == letter || line == std::to_string(i + 1)) return text;
  }
  return "";
}

// "steps 100" and "event lost-server" among the settings of replan. What counts no steps stays a
// setting, and is refused as one.
struct ReplanWords {
  std::vector<std::string> sets;
  std::string event;
  std::uint64_t steps = 0;
};
bool ReadCount(const std::string& word, std::uint64_t* count) {
  const char* const end = word.data() + word.size();
  const auto [read, error] = std::from_chars(word.data(), end, *count);
  return read == end && error == std::errc();
}
ReplanWords ReadReplan(const std::vector<std::string>& words) {
  ReplanWords out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool more = i + 1 < words.size();
    if (words[i] == "event" && more) {
      out.event = words[++i];
    } else if (words[i] == "steps" && more && ReadCount(words[i + 1], &out.steps)) {
      ++i;
    } else {
      out.sets.push_back(words[i]);
    }
  }
  return out;
}

class Run {
 public:
  Run(LessonSession& session, const LessonStep& step, std::optional<std::uint64_t> seed,
      std::istream& in, std::ostream& out, const TextStyle& style)
      : session_(session),
        step_(step),
        seed_(seed),
        in_(in),
        out_(out),
        style_(style),
        questions_(session.Questions(step)) {}

  void All() {
    const Json shown = session_.Show(step_);
    const bool before = shown.at("done") == true;  // gone through again: it ends by `quit`
    if (shown.contains("predict")) Predict(shown);
    out_ << LessonShowText(shown, style_);
    if (questions_ == 0 && step_.goal.empty()) return;
    out_ << "\nType an answer; help lists what else can be typed.\n";
    while (before || !done_) {
      const bool asks = question_ < questions_;
      if (asks) {
        out_ << "\n" << LessonQuestionText(session_.Ask(step_, question_, seed_), style_);
      } else if (step_.goal.empty()) {
        break;
      }
      std::string line;
      if (!ReadLine(&line) || !Answer(line, asks)) break;
    }
    const bool mixed = !step_.mix.steps.empty();
    const bool done = mixed ? question_ >= questions_ : done_;
    out_ << (done ? "\nThis step is done. " : "\nProgress is kept. ")
         << "shardlab lesson list shows what is left.\n";
  }

 private:
  // A line that was read as no prediction comes first.
  bool ReadLine(std::string* line) {
    out_ << "> " << std::flush;
    if (!waiting_) return static_cast<bool>(std::getline(in_, *line));
    *line = *waiting_;
    waiting_.reset();
    return true;
  }

  void Predict(const Json& shown) {
    const Json& predict = shown.at("predict");
    out_ << style_.Bold(shown.at("title").get<std::string>()) << "\n"
         << style_.Bold("guess first: ")
         << Folded(predict.at("text").get<std::string>(), 2, LessonWidth(style_) - 13) << "\n";
    char letter = 'a';
    for (const Json& choice : predict.at("choices"))
      out_ << "  " << letter++ << ") " << choice.get<std::string>() << "\n";
    std::string line;
    if (ReadLine(&line)) {
      const std::string chosen = Chosen(predict.at("choices"), line);
      if (chosen.empty()) waiting_ = line;  // an answer to what comes, from one who knows
      out_ << (chosen.empty() ? "no guess" : "your guess: " + chosen) << "\n";
    }
    out_ << Folded(predict.at("told").get<std::string>(), 0, LessonWidth(style_)) << "\n\n";
  }

  void TurnKnob(const Turn& turn) {
    std::string why;
    const std::string set = Turned(session_.State(step_), turn, &why);
    if (set.empty())
      out_ << why << "\n";
    else
      Tell(session_.Set(step_, {set}), LessonStateText);
  }

  void Tell(const Json& document, std::string (*text)(const Json&, const TextStyle&)) {
    const auto& all = session_.diagnostics().all();
    for (; told_ < all.size(); ++told_) {
      out_ << style_.Red("no") << "  "
           << Folded(all[told_].hint.empty()
                         ? all[told_].message
                         : absl::StrCat(all[told_].message, "; ", all[told_].hint),
                     4, LessonWidth(style_) - 4)
           << "\n";
    }
    if (document.is_null()) return;
    out_ << text(document, style_);
    if (document.contains("done") && document.at("done") == true) done_ = step_.mix.steps.empty();
  }

  // False: the learner leaves.
  bool Answer(const std::string& line, bool asks) {
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty()) return true;
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    const std::string& verb = words[0];
    if (verb == "quit" || verb == "exit") return false;
    if (verb == "help" || verb == "?") {
      out_ << kHelp;
    } else if (verb == "skip") {
      ++question_;
    } else if (verb == "show") {
      out_ << LessonShowText(session_.Show(step_), style_);
    } else if (verb == "figures") {
      out_ << LessonFiguresText(session_.Show(step_), style_);
    } else if (verb == "state") {
      out_ << LessonStateText(session_.State(step_), style_);
    } else if (verb == "set") {
      Tell(session_.Set(step_, rest), LessonStateText);
    } else if (verb == "load") {
      Tell(session_.Set(step_, words), LessonStateText);
    } else if (verb == "submit") {
      Tell(session_.Submit(step_, rest), LessonJobText);
    } else if (verb == "replan") {
      const ReplanWords replan = ReadReplan(rest);
      Tell(session_.Replan(step_, replan.sets, replan.event, std::nullopt, replan.steps),
           LessonJobText);
    } else if (const std::vector<Turn> turns = ReadTurns(words); !turns.empty()) {
      for (const Turn& turn : turns) TurnKnob(turn);
    } else if (asks) {
      const Json graded = session_.Check(step_, question_, seed_, line);
      Tell(graded, LessonGradeText);
      if (graded.at("correct") == true) ++question_;
    } else {
      out_ << "type help\n";
    }
    return true;
  }

  LessonSession& session_;
  const LessonStep& step_;
  std::optional<std::uint64_t> seed_;
  std::istream& in_;
  std::ostream& out_;
  const TextStyle& style_;
  std::size_t questions_;
  std::size_t question_ = 0;
  std::size_t told_ = 0;  // diagnostics
  std::optional<std::string> waiting_;
  bool done_ = false;
};

}  // namespace

void RunLesson(LessonSession& session, const LessonStep& step, std::optional<std::uint64_t> seed,
               std::istream& in, std::ostream& out, const TextStyle& style) {
  Run(session, step, seed, in, out, style).All();
}

}  // namespace shardlab
