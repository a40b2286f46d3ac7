#include "io/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

// One spelling of a unit: 10^decimal * factor of the unit that values are held in. The power of ten
// is kept apart because shifting the decimal point of the text is exact and multiplying by 1e12 or
// 1e-6 is not.
struct Spelling {
  const char* name;
  Unit unit;
  int decimal;
  double factor;
  bool write;  // used for writing too
};

constexpr double kKi = 1024;
constexpr double kMi = 1024 * kKi;
constexpr double kGi = 1024 * kMi;
constexpr double kTi = 1024 * kGi;
constexpr double kPi = 1024 * kTi;
constexpr double kBit = 0.125;
constexpr Spelling kSpellings[] = {
    {"PB", Unit::kBytes, 15, 1, true},
    {"TB", Unit::kBytes, 12, 1, true},
    {"GB", Unit::kBytes, 9, 1, true},
    {"MB", Unit::kBytes, 6, 1, true},
    {"kB", Unit::kBytes, 3, 1, true},
    {"PiB", Unit::kBytes, 0, kPi, true},
    {"TiB", Unit::kBytes, 0, kTi, true},
    {"GiB", Unit::kBytes, 0, kGi, true},
    {"MiB", Unit::kBytes, 0, kMi, true},
    {"KiB", Unit::kBytes, 0, kKi, true},
    {"B", Unit::kBytes, 0, 1, true},
    {"PB/s", Unit::kBytesPerSecond, 15, 1, true},
    {"TB/s", Unit::kBytesPerSecond, 12, 1, true},
    {"GB/s", Unit::kBytesPerSecond, 9, 1, true},
    {"MB/s", Unit::kBytesPerSecond, 6, 1, true},
    {"kB/s", Unit::kBytesPerSecond, 3, 1, true},
    {"PiB/s", Unit::kBytesPerSecond, 0, kPi, false},
    {"TiB/s", Unit::kBytesPerSecond, 0, kTi, false},
    {"GiB/s", Unit::kBytesPerSecond, 0, kGi, false},
    {"MiB/s", Unit::kBytesPerSecond, 0, kMi, false},
    {"KiB/s", Unit::kBytesPerSecond, 0, kKi, false},
    {"Tb/s", Unit::kBytesPerSecond, 12, kBit, false},
    {"Gb/s", Unit::kBytesPerSecond, 9, kBit, false},
    {"Mb/s", Unit::kBytesPerSecond, 6, kBit, false},
    {"Kb/s", Unit::kBytesPerSecond, 3, kBit, false},
    {"kb/s", Unit::kBytesPerSecond, 3, kBit, false},
    {"B/s", Unit::kBytesPerSecond, 0, 1, true},
    {"d", Unit::kSeconds, 0, 86400, true},
    {"h", Unit::kSeconds, 0, 3600, true},
    {"min", Unit::kSeconds, 0, 60, true},
    {"s", Unit::kSeconds, 0, 1, true},
    {"ms", Unit::kSeconds, -3, 1, true},
    {"us", Unit::kSeconds, -6, 1, true},
    {"\u00B5s", Unit::kSeconds, -6, 1, false},  // micro sign
    {"\u03BCs", Unit::kSeconds, -6, 1, false},  // Greek mu
    {"ns", Unit::kSeconds, -9, 1, true},
    {"EFLOP/s", Unit::kFlopsPerSecond, 18, 1, true},
    {"PFLOP/s", Unit::kFlopsPerSecond, 15, 1, true},
    {"TFLOP/s", Unit::kFlopsPerSecond, 12, 1, true},
    {"GFLOP/s", Unit::kFlopsPerSecond, 9, 1, true},
    {"MFLOP/s", Unit::kFlopsPerSecond, 6, 1, true},
    {"FLOP/s", Unit::kFlopsPerSecond, 0, 1, true},
    {"EFLOP", Unit::kFlops, 18, 1, true},
    {"PFLOP", Unit::kFlops, 15, 1, true},
    {"TFLOP", Unit::kFlops, 12, 1, true},
    {"GFLOP", Unit::kFlops, 9, 1, true},
    {"MFLOP", Unit::kFlops, 6, 1, true},
    {"FLOP", Unit::kFlops, 0, 1, true},
};

// Other habits of writing, each with what is written here.
struct Habit {
  const char* written;
  const char* meant;
};
constexpr Habit kHabits[] = {
    {"Tbps", "Tb/s"},
    {"Gbps", "Gb/s"},
    {"Mbps", "Mb/s"},
    {"Kbps", "Kb/s"},
    {"Tbit/s", "Tb/s"},
    {"Gbit/s", "Gb/s"},
    {"Mbit/s", "Mb/s"},
    {"TBps", "TB/s"},
    {"GBps", "GB/s"},
    {"MBps", "MB/s"},
    {"PFLOPS", "PFLOP/s"},
    {"TFLOPS", "TFLOP/s"},
    {"GFLOPS", "GFLOP/s"},
    {"FLOPS", "FLOP/s"},
    {"TFLOPs", "TFLOP/s"},
    {"GFLOPs", "GFLOP/s"},
    {"PFLOPs", "PFLOP/s"},
    {"PFLOPS/s", "PFLOP/s"},
    {"TFLOPS/s", "TFLOP/s"},
    {"GFLOPS/s", "GFLOP/s"},
    {"bytes", "B"},
    {"byte", "B"},
    {"sec", "s"},
    {"secs", "s"},
    {"second", "s"},
    {"seconds", "s"},
    {"minutes", "min"},
    {"minute", "min"},
    {"hours", "h"},
    {"hour", "h"},
    {"hr", "h"},
    {"days", "d"},
    {"day", "d"},
    {"microseconds", "us"},
    {"milliseconds", "ms"},
    {"usec", "us"},
    {"msec", "ms"},
    {"nanoseconds", "ns"},
    {"G", "GB"},
    {"M", "MB"},
    {"T", "TB"},
    {"Gi", "GiB"},
    {"Mi", "MiB"},
    {"Ti", "TiB"},
};

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

const Spelling* FindSpelling(std::string_view name) {
  const auto* const it = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                      [name](const Spelling& s) { return name == s.name; });
  return it == std::end(kSpellings) ? nullptr : it;
}

std::string Example(std::string_view number, const char* unit) {
  return "\"" + std::string(number) + " " + unit + "\"";
}

std::string LegalUnits(Unit unit) {
  std::vector<std::string> names;
  for (const Spelling& s : kSpellings) {
    if (s.unit == unit && s.write) names.emplace_back(s.name);
  }
  if (unit == Unit::kBytesPerSecond) names.insert(names.end(), {"Tb/s", "Gb/s", "Mb/s"});
  return "units of " + std::string(UnitName(unit)) + ": " + Enumerate(names, "and");
}

// What may be meant by a unit that is none, among those of the wanted kind.
std::string UnknownUnitHint(std::string_view word, std::string_view number, Unit unit) {
  const auto meant = [&](const std::vector<std::string>& names) {
    std::string out = "did you mean ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      out += (i > 0 ? " or " : "") + Example(number, names[i].c_str());
      if (names[i].find("b/s") != std::string::npos) out += " (bits)";
    }
    return out + "?";
  };
  for (const Habit& habit : kHabits) {
    if (word != habit.written) continue;
    std::string name = habit.meant;
    if (unit == Unit::kFlops && name.size() > 2 && name.find("FLOP/s") != std::string::npos) {
      name.resize(name.size() - 2);  // "TFLOPS" for a count
    }
    if (const Spelling* s = FindSpelling(name); s != nullptr && s->unit == unit)
      return meant({name});
  }
  std::vector<std::string> same_letters;
  std::vector<std::string> all;
  std::vector<std::string> all_lower;
  for (const Spelling& s : kSpellings) {
    if (s.unit != unit) continue;
    all.emplace_back(s.name);
    all_lower.push_back(Lower(s.name));
    if (Lower(s.name) == Lower(word)) same_letters.emplace_back(s.name);
  }
  // "KB" is written for both.
  if (unit == Unit::kBytes && word == "KB") same_letters = {"kB", "KiB"};
  if (!same_letters.empty()) return meant(same_letters);
  const std::string nearest = Nearest(Lower(word), all_lower);
  if (!nearest.empty() && word.size() > 1) {
    const auto at = std::find(all_lower.begin(), all_lower.end(), nearest) - all_lower.begin();
    return meant({all[static_cast<std::size_t>(at)]});
  }
  return LegalUnits(unit);
}

struct NumberText {
  std::string mantissa;  // digits and at most one point, with the sign
  std::string exponent;  // digits with the sign; "" when there is none
  std::size_t length = 0;
};

// The number that a text begins with; length 0 when it begins with none.
NumberText ScanNumber(std::string_view text) {
  NumberText number;
  std::size_t at = 0;
  std::size_t digits = 0;
  const auto run = [&](std::string* out) {
    std::size_t count = 0;
    // Underscores between digits, as in TOML's own numbers.
    while (at < text.size() &&
           (IsDigit(text[at]) ||
            (text[at] == '_' && count > 0 && at + 1 < text.size() && IsDigit(text[at + 1])))) {
      if (text[at] != '_') {
        out->push_back(text[at]);
        ++count;
      }
      ++at;
    }
    return count;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
    if (text[at] == '-') number.mantissa = "-";
    ++at;
  }
  digits += run(&number.mantissa);
  if (at < text.size() && text[at] == '.') {
    number.mantissa += '.';
    ++at;
    digits += run(&number.mantissa);
  }
  if (digits == 0) return NumberText();
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const std::size_t before = at++;
    std::string exponent;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
      if (text[at] == '-') exponent = "-";
      ++at;
    }
    if (run(&exponent) > 0) {
      number.exponent = exponent;
    } else {
      at = before;  // "5 EFLOP" written together: the E is the unit's
    }
  }
  number.length = at;
  return number;
}

// The number times 10^shift, correctly rounded; nothing when it is no finite double or vanishes.
bool ToDouble(const NumberText& number, int shift, double* value) {
  long exponent = shift;
  if (!number.exponent.empty()) {
    constexpr std::size_t kLongest = 6;
    if (number.exponent.size() > kLongest) return false;
    exponent += std::strtol(number.exponent.c_str(), nullptr, 10);
  }
  const std::string text = number.mantissa + "e" + std::to_string(exponent);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && std::isfinite(*value);
}

QuantityResult Problem(std::string problem, std::string hint = "") {
  return {0, std::move(problem), std::move(hint)};
}

}  // namespace

QuantityResult ParseQuantity(std::string_view text, Unit unit) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  if (text.empty()) return Problem("is an empty string", "write " + UnitExamples(unit, "80"));

  const NumberText number = ScanNumber(text);
  if (number.length == 0) {
    return Problem("has no number (\"" + Shortened(text) + "\")",
                   "write " + UnitExamples(unit, "80"));
  }
  const std::string_view number_text = text.substr(0, number.length);
  std::string_view word = text.substr(number.length);
  while (!word.empty() && IsBlank(word.front())) word.remove_prefix(1);
  const std::string short_number = Shortened(number_text);

  Spelling spelling{"", Unit::kNone, 0, 1, false};
  if (word.empty()) {
    if (unit != Unit::kNone) {
      return Problem("has no unit (\"" + Shortened(text) + "\")",
                     "write " + UnitExamples(unit, short_number));
    }
  } else {
    const Spelling* found = FindSpelling(word);
    if (unit == Unit::kNone) {
      return Problem("takes a number without a unit, not \"" + Shortened(text) + "\"",
                     "write " + short_number);
    }
    if (found == nullptr && word.front() == ',') {
      return Problem("has a comma in its number (\"" + Shortened(text) + "\")",
                     "write 1000 or 1_000, with a point before decimals");
    }
    if (found == nullptr && unit == Unit::kBytes &&
        FindSpelling(std::string(word) + "/s") != nullptr) {
      std::string bytes(word);
      bytes.back() = 'B';
      if (bytes == "KB") bytes = "kB";
      return Problem(
          "counts bits (\"" + Shortened(text) + "\": a small b is a bit and stands only in rates)",
          "did you mean " + Example(short_number, bytes.c_str()) + "?");
    }
    if (found == nullptr) {
      return Problem("has an unknown unit \"" + Shortened(word) + "\"",
                     UnknownUnitHint(word, short_number, unit));
    }
    if (found->unit != unit) {
      std::string hint = "write " + UnitExamples(unit, short_number);
      // "450 GB" for a rate, "989 TFLOP/s" for a count: the unit meant is one "/s" away.
      const std::string with = std::string(word) + "/s";
      const std::string without(word.substr(0, word.size() > 2 ? word.size() - 2 : 0));
      for (const std::string& near : {with, without}) {
        const Spelling* s = FindSpelling(near);
        if (s != nullptr && s->unit == unit)
          hint = "did you mean " + Example(short_number, s->name) + "?";
      }
      return Problem("must be " + std::string(UnitName(unit)) + ", and \"" + Shortened(text) +
                         "\" is " + UnitName(found->unit),
                     std::move(hint));
    }
    spelling = *found;
  }

  double value = 0;
  if (!ToDouble(number, spelling.decimal, &value) || !std::isfinite(value * spelling.factor)) {
    return Problem("is too large or too small to be held (\"" + Shortened(text) + "\")");
  }
  if (value < 0) return Problem("is negative (\"" + Shortened(text) + "\")");
  return {std::abs(value * spelling.factor), "", ""};
}

const char* UnitName(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return "a plain number";
    case Unit::kBytes:
      return "a number of bytes";
    case Unit::kSeconds:
      return "a time";
    case Unit::kBytesPerSecond:
      return "a rate of bytes";
    case Unit::kFlopsPerSecond:
      return "a rate of operations";
    case Unit::kFlops:
      return "a number of operations";
  }
  return "";
}

const char* UnitSymbol(Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return "";
    case Unit::kBytes:
      return "B";
    case Unit::kSeconds:
      return "s";
    case Unit::kBytesPerSecond:
      return "B/s";
    case Unit::kFlopsPerSecond:
      return "FLOP/s";
    case Unit::kFlops:
      return "FLOP";
  }
  return "";
}

std::string UnitExamples(Unit unit, const std::string& number) {
  switch (unit) {
    case Unit::kNone:
      return number;
    case Unit::kBytes:
      return Example(number, "GB") + " (10^9 bytes each) or " + Example(number, "GiB") +
             " (2^30 bytes each)";
    case Unit::kSeconds:
      return Example(number, "us") + ", " + Example(number, "ms") + " or " + Example(number, "s");
    case Unit::kBytesPerSecond:
      return Example(number, "GB/s") + " or " + Example(number, "Gb/s") + " (bits)";
    case Unit::kFlopsPerSecond:
      return Example(number, "TFLOP/s");
    case Unit::kFlops:
      return Example(number, "GFLOP") + " or " + Example(number, "TFLOP");
  }
  return number;
}

std::string ExactQuantity(double value, Unit unit) {
  if (unit == Unit::kNone || !std::isfinite(value)) return ShortNumber(value);
  const std::string symbol = UnitSymbol(unit);
  std::string best = ShortNumber(value) + " " + symbol;
  if (value == 0) return best;
  bool best_is_plain = std::abs(value) >= 1 && best.find('e') == std::string::npos;
  for (const Spelling& s : kSpellings) {
    if (s.unit != unit || !s.write || s.name == symbol) continue;
    // The division may be off by one unit in the last place; reading back decides.
    const double scaled = value / (s.factor * std::pow(10.0, s.decimal));
    if (std::abs(scaled) < 1) continue;
    const std::string number = Significant(scaled, 15);
    for (const std::string& digits :
         {ShortNumber(scaled), ShortNumber(std::strtod(number.c_str(), nullptr))}) {
      const std::string text = digits + " " + s.name;
      if (digits.find('e') != std::string::npos || ParseQuantity(text, unit).value != value)
        continue;
      if (!best_is_plain || text.size() < best.size()) {
        best = text;
        best_is_plain = true;
      }
    }
  }
  return best;
}

namespace {

struct Step {
  const char* name;
  double scale;
};

// In the largest step that gives at least 1 after rounding: 999,999 bytes to five digits are 1.0000
// MB.
template <std::size_t kCount>
std::string Scaled(double value, const Step (&steps)[kCount], int digits) {
  const Step& smallest = steps[kCount - 1];
  if (value == 0 || !std::isfinite(value)) {
    return (value == 0 ? std::string("0") : ShortNumber(value)) + " " + smallest.name;
  }
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
  const double rounded = std::strtod(buffer, nullptr);
  for (const Step& step : steps) {
    if (std::abs(rounded) < step.scale && &step != &smallest) continue;
    // Fewer digits than a whole number of the smallest unit has need no fraction: "512 B".
    const bool whole = step.scale == 1 && value == std::floor(value) && std::abs(rounded) < 1000;
    return (whole ? ShortNumber(value) : Significant(rounded / step.scale, digits)) + " " +
           step.name;
  }
  return "";
}

}  // namespace

std::string FormatBytes(double bytes) {
  static constexpr Step kSteps[] = {{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9},
                                    {"MB", 1e6},  {"kB", 1e3},  {"B", 1}};
  return Scaled(bytes, kSteps, 5);
}

std::string FormatSeconds(double seconds) {
  static constexpr Step kShort[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  static constexpr Step kLong[] = {{"d", 86400}, {"h", 3600}, {"min", 60}};
  if (seconds == 0) return "0 s";
  if (!std::isfinite(seconds)) return ShortNumber(seconds) + " s";
  // Below 1000 s seconds read well; then each unit from twice its size on.
  const double size = std::abs(seconds);
  if (size < 999.95) return Scaled(seconds, kShort, 4);
  const Step& step = size >= 2 * 86400.0 ? kLong[0] : size >= 2 * 3600.0 ? kLong[1] : kLong[2];
  return Significant(seconds / step.scale, 4) + " " + step.name;
}

std::string FormatRate(double bytes_per_second) {
  static constexpr Step kSteps[] = {{"PB/s", 1e15}, {"TB/s", 1e12}, {"GB/s", 1e9},
                                    {"MB/s", 1e6},  {"kB/s", 1e3},  {"B/s", 1}};
  return Scaled(bytes_per_second, kSteps, 4);
}

std::string FormatFlops(double flops) {
  static constexpr Step kSteps[] = {{"EFLOP", 1e18}, {"PFLOP", 1e15}, {"TFLOP", 1e12},
                                    {"GFLOP", 1e9},  {"MFLOP", 1e6},  {"FLOP", 1}};
  return Scaled(flops, kSteps, 4);
}

std::string FormatFlopRate(double flops_per_second) {
  static constexpr Step kSteps[] = {{"EFLOP/s", 1e18}, {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12},
                                    {"GFLOP/s", 1e9},  {"MFLOP/s", 1e6},  {"FLOP/s", 1}};
  return Scaled(flops_per_second, kSteps, 4);
}

std::string FormatQuantity(double value, Unit unit) {
  switch (unit) {
    case Unit::kNone:
      return ShortNumber(value);
    case Unit::kBytes:
      return FormatBytes(value);
    case Unit::kSeconds:
      return FormatSeconds(value);
    case Unit::kBytesPerSecond:
      return FormatRate(value);
    case Unit::kFlopsPerSecond:
      return FormatFlopRate(value);
    case Unit::kFlops:
      return FormatFlops(value);
  }
  return ShortNumber(value);
}

}  // namespace shardlab
