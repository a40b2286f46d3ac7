#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/lesson_question.h"

namespace shardlab {
namespace {

constexpr double kGiB = 1073741824.0;
constexpr double kRawCount = 1e6;  // a bare answer above this is no number of billions
constexpr std::size_t kLongest = 200;

std::string Trimmed(const std::string& text) {
  const char* blanks = " \t\r\n\"'`";
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Answer {
  double value = 0;
  std::string unit;     // lower case, without blanks
  std::string problem;  // empty when there is a number
};

// "1,128.9" and "1.128,9" are not told apart; a comma with three digits after it separates
// thousands, any other is a point.
std::string WithoutCommas(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      out += text[i];
      continue;
    }
    std::size_t digits = 0;
    while (i + 1 + digits < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[i + 1 + digits])) != 0)
      ++digits;
    if (digits != 3) out += '.';
  }
  return out;
}

Answer ReadNumber(const std::string& raw) {
  const std::string text = WithoutCommas(Trimmed(raw));
  if (text.empty()) return {0, "", "there is no answer"};
  if (text.size() > kLongest) return {0, "", "that is too long for an answer"};
  const unsigned char first = static_cast<unsigned char>(text[0]);
  // Not strtod's "nan", "inf" and hexadecimal numbers.
  const bool begins = std::isdigit(first) != 0 || first == '.' || first == '-' || first == '+';
  const bool hex = text.size() > 1 && (text[1] == 'x' || text[1] == 'X') && text[0] == '0';
  char* end = nullptr;
  Answer out;
  if (begins && !hex) out.value = std::strtod(text.c_str(), &end);
  if (end == nullptr || end == text.c_str() || !std::isfinite(out.value))
    return {0, "", "that does not read as a number"};
  std::string rest = Trimmed(end);
  if (!rest.empty() && rest[0] == '/') {
    rest = Trimmed(rest.substr(1));
    char* after = nullptr;
    const double below = std::strtod(rest.c_str(), &after);
    if (after == rest.c_str() || !std::isfinite(below) || below == 0)
      return {0, "", "that does not read as a fraction"};
    out.value /= below;
    rest = after;
  }
  for (const char c : Lower(rest))
    if (c != ' ' && c != '\t') out.unit += c;
  return out;
}

struct UnitScale {
  const char* name;
  double scale;
};
constexpr std::array<UnitScale, 11> kBytes = {{{"b", 1},
                                               {"kb", 1e3},
                                               {"mb", 1e6},
                                               {"gb", 1e9},
                                               {"tb", 1e12},
                                               {"pb", 1e15},
                                               {"kib", 1024.0},
                                               {"mib", 1048576.0},
                                               {"gib", kGiB},
                                               {"tib", 1024 * kGiB},
                                               {"bytes", 1}}};
constexpr std::array<UnitScale, 7> kTimes = {
    {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"sec", 1}, {"seconds", 1}, {"min", 60}, {"h", 3600}}};
constexpr std::array<UnitScale, 7> kCounts = {{{"b", 1e9},
                                               {"bn", 1e9},
                                               {"billion", 1e9},
                                               {"billions", 1e9},
                                               {"m", 1e6},
                                               {"million", 1e6},
                                               {"parameters", 1}}};
constexpr std::array<UnitScale, 3> kRatios = {{{"x", 1}, {"times", 1}, {"%", 0.01}}};

template <std::size_t N>
double ScaleIn(const std::array<UnitScale, N>& units, const std::string& unit) {
  for (const UnitScale& known : units)
    if (unit == known.name) return known.scale;
  return 0;
}

// What one of `unit` is in the unit of expected values; 0: no such unit.
double ScaleOf(const std::string& unit, const std::string& of_question) {
  const std::string wanted = Lower(of_question);
  if (ScaleIn(kBytes, wanted) != 0 && wanted != "b")
    return ScaleIn(kBytes, unit.empty() ? wanted : unit);
  if (ScaleIn(kTimes, wanted) != 0) return ScaleIn(kTimes, unit.empty() ? wanted : unit);
  if (wanted == "billion") return ScaleIn(kCounts, unit.empty() ? wanted : unit);
  return unit.empty() ? 1 : ScaleIn(kRatios, unit);
}

bool Near(double got, double wanted, double relative) {
  return std::abs(got - wanted) <= relative * std::abs(wanted) * (1 + 1e-12);
}

LessonGrade Unreadable(const std::string& problem, const std::string& example) {
  return {false, "", absl::StrCat(problem, "; write it like ", example)};
}

const AskedSlip* SlipNear(const AskedQuestion& question, double got, double relative,
                          double absolute) {
  for (const AskedSlip& slip : question.slips) {
    const double room = std::max(relative * std::abs(slip.value), absolute);
    if (slip.texts.empty() && std::abs(got - slip.value) <= room * (1 + 1e-12)) return &slip;
  }
  return nullptr;
}

LessonGrade GradeNumber(const AskedQuestion& question, const std::string& text) {
  const std::string example = question.unit == "x" ? "\"1.2\" or \"1.2x\""
                              : question.unit == "billion"
                                  ? "\"12.3\" or \"12.3 billion\""
                                  : absl::StrCat("\"12.3 ", question.unit, "\"");
  const Answer answer = ReadNumber(text);
  if (!answer.problem.empty()) return Unreadable(answer.problem, example);
  const double scale = ScaleOf(answer.unit, question.unit);
  if (scale == 0)
    return Unreadable(absl::StrCat("\"", answer.unit, "\" is no unit of this answer"), example);
  const bool raw =
      question.unit == "billion" && answer.unit.empty() && std::abs(answer.value) >= kRawCount;
  const double got = answer.value * (raw ? 1 : scale);
  if (Near(got, question.expected, question.tolerance)) return {true, "", "right"};
  if (const AskedSlip* slip = SlipNear(question, got, question.tolerance, 0))
    return {false, slip->name, slip->message};
  const bool decimal =
      ScaleIn(kBytes, Lower(question.unit)) != 0 && answer.unit.find('i') == std::string::npos;
  if (decimal && question.unit == "GB" && Near(got / 1e9 * kGiB, question.expected, 0.005))
    return {false, "gib",
            "that is the figure in GiB (2^30 bytes): with its unit it would be right"};
  return {false, "", got < question.expected ? "not this: it is more" : "not this: it is less"};
}

LessonGrade GradeFraction(const AskedQuestion& question, const std::string& text) {
  const Answer answer = ReadNumber(text);
  const std::string example = "\"12.5 %\", \"0.125\" or \"1/8\"";
  if (!answer.problem.empty()) return Unreadable(answer.problem, example);
  if (!answer.unit.empty() && answer.unit != "%" && answer.unit != "percent")
    return Unreadable(absl::StrCat("\"", answer.unit, "\" is no unit of a share"), example);
  const bool percent = !answer.unit.empty() || answer.value > 1;
  const double got = percent ? answer.value / 100 : answer.value;
  if (std::abs(got - question.expected) <= question.tolerance * (1 + 1e-12))
    return {true, "", "right"};
  if (const AskedSlip* slip = SlipNear(question, got, 0, question.tolerance))
    return {false, slip->name, slip->message};
  return {false, "", got < question.expected ? "not this: it is more" : "not this: it is less"};
}

LessonGrade GradeInteger(const AskedQuestion& question, const std::string& text) {
  const Answer answer = ReadNumber(text);
  if (!answer.problem.empty()) return Unreadable(answer.problem, "\"12\"");
  // A word after the number is what is counted: "15 GPUs".
  for (const char c : answer.unit)
    if (std::isalpha(static_cast<unsigned char>(c)) == 0 && c != '-')
      return Unreadable("only a whole number is wanted", "\"12\"");
  if (answer.value != std::floor(answer.value))
    return {false, "", "not this: the answer is a whole number"};
  if (answer.value == question.expected) return {true, "", "right"};
  if (const AskedSlip* slip = SlipNear(question, answer.value, 0, 0))
    return {false, slip->name, slip->message};
  return {false, "",
          answer.value < question.expected ? "not this: it is more" : "not this: it is less"};
}

// Blanks collapsed, '=' the same as a blank; parts between commas in alphabetical order, so that
// matches may come in any.
std::string Normal(const std::string& text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool arrow = text.compare(i, 2, "->") == 0;
    char c = text[i];
    if (arrow) ++i;
    if (c == '=' || c == ':' || c == '\t' || c == '\n' || arrow) c = ' ';
    std::string& part = parts.back();
    if (c == ',' || c == ';') {
      parts.emplace_back();
    } else if (c != ' ') {
      part += c;
    } else if (!part.empty() && part.back() != ' ') {
      part += ' ';
    }
  }
  for (std::string& part : parts) part = Trimmed(part);
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (const std::string& part : parts)
    if (!part.empty()) absl::StrAppend(&out, out.empty() ? "" : ", ", part);
  return out.starts_with("-") ? out : Lower(out);
}

LessonGrade GradeText(const AskedQuestion& question, const std::string& text) {
  if (text.size() > kLongest) return {false, "", "that is too long for an answer"};
  std::string answer = Normal(Trimmed(text));
  if (answer.empty()) return {false, "", "there is no answer"};
  // The letter or the number of a choice stands for its text.
  if (answer.size() == 1 && !question.choices.empty()) {
    const char c = answer[0];
    const std::size_t index =
        c >= 'a' ? static_cast<std::size_t>(c - 'a') : static_cast<std::size_t>(c - '1');
    if (index < question.choices.size()) answer = Normal(question.choices[index]);
  }
  for (const std::string& accepted : question.accepts)
    if (answer == Normal(accepted)) return {true, "", "right"};
  for (const AskedSlip& slip : question.slips)
    for (const std::string& one : slip.texts)
      if (answer == Normal(one)) return {false, slip.name, slip.message};
  return {false, "", "not this"};
}

// What is matched with what, in the words of the course; empty of an odd number of words.
std::map<std::string, std::string> Pairs(const AskedQuestion& question, const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : Lower(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  std::map<std::string, std::string> pairs;
  if (words.size() % 2 != 0) return pairs;
  for (std::string& word : words)
    for (const auto& [other, meant] : question.same)
      if (word == other) word = meant;
  for (std::size_t i = 0; i < words.size(); i += 2) pairs[words[i]] = words[i + 1];
  return pairs;
}

LessonGrade GradeMatch(const AskedQuestion& question, const std::string& text) {
  if (text.size() > kLongest) return {false, "", "that is too long for an answer"};
  if (Trimmed(text).empty()) return {false, "", "there is no answer"};
  const std::map<std::string, std::string> given = Pairs(question, text),
                                           wanted = Pairs(question, question.accepts[0]);
  std::vector<std::string> items, missing;
  std::size_t right = 0;
  for (const auto& [item, place] : wanted) {
    items.push_back(item);
    const auto at = given.find(item);
    if (at == given.end())
      missing.push_back(item);
    else if (at->second == place)
      ++right;
  }
  if (right == wanted.size() && given.size() == wanted.size()) return {true, "", "right"};
  for (const AskedSlip& slip : question.slips)
    for (const std::string& one : slip.texts)
      if (given == Pairs(question, one)) return {false, slip.name, slip.message};
  if (missing.size() == wanted.size() || given.size() > wanted.size())
    return Unreadable(
        "that does not read as pairs",
        absl::StrCat("\"", wanted.begin()->first, "=...\", one for each of ", Enumerate(items)));
  if (!missing.empty())
    return {false, "", absl::StrCat("say where the others go too: ", Enumerate(missing))};
  return {false, "", absl::StrCat("not this: ", right, " of ", wanted.size(), " are right")};
}

}  // namespace

LessonGrade GradeAnswer(const AskedQuestion& question, const std::string& answer) {
  switch (question.kind) {
    case QuestionKind::kNumber:
      return GradeNumber(question, answer);
    case QuestionKind::kFraction:
      return GradeFraction(question, answer);
    case QuestionKind::kInteger:
      return GradeInteger(question, answer);
    case QuestionKind::kText:
      return GradeText(question, answer);
    case QuestionKind::kMatch:
      return GradeMatch(question, answer);
  }
  return {};
}

}  // namespace shardlab
