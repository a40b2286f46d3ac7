#include "io/lesson_flags.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/export_plan.h"
#include "io/scenario.h"

namespace shardlab {
namespace {

constexpr const char* kWithout = "without";

bool IsFlag(const std::string& word) { return word.starts_with("--"); }

// Words with blanks are split where they are a line of flags; a TOML value keeps its blanks.
std::vector<std::string> Split(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    const std::string text = word.substr(std::min(word.size(), word.find_first_not_of(' ')));
    if (!IsFlag(text) && !text.starts_with(absl::StrCat(kWithout, " "))) {
      out.push_back(word);
      continue;
    }
    std::istringstream stream(word);
    for (std::string part; stream >> part;) out.push_back(part);
  }
  return out;
}

// TOML of a step's file as --set takes it: texts without quotes.
std::string Unquoted(const std::string& toml) {
  const bool quoted = toml.size() > 1 && toml.front() == '"' && toml.back() == '"';
  return quoted ? toml.substr(1, toml.size() - 2) : toml;
}

class Reader {
 public:
  Reader(const LessonStep& step, Diagnostics& diagnostics)
      : step_(step), diagnostics_(diagnostics) {}

  LessonRequest Read(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == kWithout && i + 1 < words.size()) {
        TakeOut(words[++i]);
      } else if (!IsFlag(words[i])) {
        out_.sets.push_back(words[i]);
      } else {
        i = Flag(words, i);
      }
    }
    return std::move(out_);
  }

 private:
  // The place of the last word that belongs to the flag at `i`.
  std::size_t Flag(const std::vector<std::string>& words, std::size_t i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (Absent(name)) return Follows(words, i) && equals == std::string::npos ? i + 1 : i;
    const LessonKnob* knob = Knob(name);
    if (knob != nullptr && !knob->with.empty()) {
      Add(*knob, Unquoted(knob->with), name);
      return i;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = words[i].substr(equals + 1);
    } else if (Follows(words, i)) {
      value = words[++i];
    }
    const std::string written = value.empty() ? name : absl::StrCat(name, " ", value);
    if (knob == nullptr) {
      out_.others.push_back(written);
    } else if (value.empty()) {
      diagnostics_.Error("lesson.flag", {}, absl::StrCat(name, " needs a value"),
                         absl::StrCat("write ", name, " ", Unquoted(knob->values.back())));
    } else {
      Add(*knob, value, written);
    }
    return i;
  }

  // Is there a value behind the flag? A further flag or a KEY=VALUE is none.
  static bool Follows(const std::vector<std::string>& words, std::size_t i) {
    return i + 1 < words.size() && !IsFlag(words[i + 1]) && words[i + 1] != kWithout &&
           words[i + 1].find('=') == std::string::npos;
  }

  void TakeOut(const std::string& name) {
    const LessonKnob* knob = Knob(name);
    if (knob != nullptr && !knob->without.empty()) {
      Add(*knob, Unquoted(knob->without), absl::StrCat(kWithout, " ", name));
      return;
    }
    std::vector<std::string> switches;
    for (const LessonKnob& one : step_.knobs)
      if (!one.without.empty()) switches.push_back(one.flag);
    diagnostics_.Error("lesson.flag", {}, absl::StrCat(name, " cannot be taken out here"),
                       switches.empty() ? "" : absl::StrCat("these can: ", Enumerate(switches)));
  }

  void Add(const LessonKnob& knob, const std::string& value, const std::string& written) {
    out_.sets.push_back(absl::StrCat(knob.key, "=", value));
    out_.flags.emplace_back(knob.key, written);
  }

  const LessonKnob* Knob(const std::string& name) const {
    for (const LessonKnob& knob : step_.knobs)
      if (!knob.flag.empty() && knob.flag == name) return &knob;
    return nullptr;
  }

  bool Absent(const std::string& name) {
    for (const LessonNoFlag& absent : step_.no_flags) {
      if (std::find(absent.names.begin(), absent.names.end(), name) == absent.names.end()) continue;
      diagnostics_.Error("lesson.flag", {}, absl::StrCat("there is no flag ", name),
                         absent.message);
      return true;
    }
    return false;
  }

  const LessonStep& step_;
  Diagnostics& diagnostics_;
  LessonRequest out_;
};

}  // namespace

LessonRequest ReadRequest(const LessonStep& step, const std::vector<std::string>& words,
                          Diagnostics& diagnostics) {
  return Reader(step, diagnostics).Read(Split(words));
}

void CheckOtherFlags(const PluginRegistry& registry, const LessonStep& step,
                     const LessonRequest& request, const std::vector<std::string>& sets,
                     Diagnostics& diagnostics) {
  if (request.others.empty()) return;
  std::vector<std::string> names;
  for (const LessonKnob& knob : step.knobs)
    if (!knob.flag.empty()) names.push_back(knob.flag);
  if (step.flags_of.empty()) {
    diagnostics.Error("lesson.flag", {},
                      absl::StrCat("this step takes no flags such as ", request.others[0]));
    return;
  }
  Diagnostics ignored;  // what cannot be exported is told where the export is shown
  const ExportedPlan exported =
      ExportPlan(registry, step.flags_of, ReadScenario(step.scenario, sets, ignored), &ignored);
  std::set<std::string> lines;
  for (const ExportedFile& file : exported.files)
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(file.text, '\n')))
      lines.insert(line.substr(std::min(line.size(), line.find_first_not_of(' '))));
  for (const std::string& other : request.others) {
    if (lines.count(other) != 0) continue;
    const std::string name = other.substr(0, other.find(' '));
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const std::string& one) {
      return one == name || one.starts_with(absl::StrCat(name, " "));
    });
    const std::string near = Nearest(name, names);
    const std::string legal = absl::StrCat("flags that can be changed: ", Enumerate(names));
    if (line != lines.end())
      diagnostics.Error("lesson.flag", {}, absl::StrCat(other, " does not change in this step"),
                        absl::StrCat("the plan has ", *line, "; ", legal));
    else
      diagnostics.Error("lesson.flag", {}, absl::StrCat("the plan's script has no flag ", name),
                        near.empty() ? legal : absl::StrCat("did you mean \"", near, "\"?"));
  }
}

Diagnostics NamedByFlags(const Diagnostics& diagnostics, const LessonRequest& request) {
  Diagnostics out;
  for (Diagnostic d : diagnostics.all()) {
    for (const auto& [key, written] : request.flags)
      if (d.place.key == key) d.message = absl::StrCat(written, ": ", d.message);
    out.Add(std::move(d));
  }
  return out;
}

}  // namespace shardlab
