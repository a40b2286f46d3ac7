#include "io/timeline_chart.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

struct Ink {
  const char *kind, *color;
};
constexpr Ink kInks[] = {{"F", "34"}, {"I", "36"}, {"W", "32"}, {"B", "35"}, {"+", "33"},
                         {"R", "31"}, {"G", "33"}, {"O", "37"}, {"/", "2"}};

// One line of the chart, painted run by run.
std::string Painted(const std::string& line, const TextStyle& style) {
  if (!style.color) return line;
  const auto color = [](char letter) {
    for (const Ink& ink : kInks) {
      if (std::toupper(static_cast<unsigned char>(letter)) == ink.kind[0]) return ink.color;
    }
    return "0";
  };
  std::string out;
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t end = begin;
    while (end < line.size() && color(line[end]) == color(line[begin])) ++end;
    out += style.Paint(color(line[begin]), line.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

// Columns for the makespan: a whole number for the shortest op where they are all of one length and
// there is room.
std::size_t Columns(const Chart& chart, std::size_t room) {
  if (chart.makespan <= 0 || chart.shortest <= 0) return room;
  const double steps = chart.makespan / chart.shortest;
  const auto whole = static_cast<std::size_t>(std::llround(steps));
  if (whole == 0 || whole > room || std::abs(steps - std::round(steps)) > 1e-6) return room;
  return whole * std::min<std::size_t>(room / whole, 4);
}

void Draw(const ChartSlice& slice, std::size_t from, std::size_t to, std::string* line) {
  const std::string& letters = slice.letters;
  for (std::size_t at = from; at < to; ++at) {
    if (letters.size() > 1) {  // a pair
      (*line)[at] = to - from >= letters.size() ? letters[(at - from) % letters.size()] : '+';
    } else {
      (*line)[at] = at == from
                        ? letters[0]
                        : static_cast<char>(std::tolower(static_cast<unsigned char>(letters[0])));
    }
  }
}

}  // namespace

std::string ChartText(const Chart& chart, const TextStyle& style) {
  constexpr std::size_t kBefore = 9, kAfter = 14;
  const auto width = static_cast<std::size_t>(std::max(60, style.width));
  const std::size_t columns = Columns(chart, width - kBefore - kAfter);
  const auto column = [&](double time) {
    return chart.makespan <= 0 ? std::size_t{0}
                               : static_cast<std::size_t>(std::llround(
                                     time / chart.makespan * static_cast<double>(columns)));
  };
  std::vector<std::string> lines(chart.in_flight.size(), std::string(columns, '/'));
  for (const ChartSlice& slice : chart.slices) {
    Draw(slice, column(slice.start), std::min(column(slice.end), columns),
         &lines[static_cast<std::size_t>(slice.rank)]);
  }
  std::string out;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    absl::StrAppend(&out, absl::StrFormat("rank %-3d ", r), Painted(lines[r], style), "  ",
                    chart.in_flight[r], " in flight\n");
  }
  absl::StrAppend(&out, std::string(kBefore, ' '),
                  style.Dim(absl::StrCat("0", std::string(columns > 12 ? columns - 11 : 1, ' '),
                                         absl::StrFormat("%10s", FormatSeconds(chart.makespan)))),
                  "\n\n");
  absl::StrAppend(&out, style.Dim(Wrapped(chart.legend, 0, width)));
  return out;
}

}  // namespace shardlab
