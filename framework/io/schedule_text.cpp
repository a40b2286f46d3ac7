#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"
#include "io/schedule_study.h"

namespace shardlab {
namespace {

std::string Percent(double fraction) { return absl::StrCat(Significant(100 * fraction, 4), " %"); }

struct Ink {
  const char *kind, *color;
};
constexpr Ink kInks[] = {{"F", "34"}, {"I", "36"}, {"W", "32"}, {"B", "35"},
                         {"+", "33"}, {"R", "31"}, {"/", "2"}};

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
std::size_t Columns(const ScheduleStudy& study, std::size_t room) {
  double unit = study.timeline.makespan;
  for (const TimedWork& w : study.timeline.works) {
    if (w.end > w.start) unit = std::min(unit, w.end - w.start);
  }
  const double steps = study.timeline.makespan / unit;
  const auto whole = static_cast<std::size_t>(std::llround(steps));
  if (whole == 0 || whole > room || std::abs(steps - std::round(steps)) > 1e-6) return room;
  return whole * std::min<std::size_t>(room / whole, 4);
}

}  // namespace

std::string StudyText(const ScheduleStudy& study, const TextStyle& style) {
  const Timeline& t = study.timeline;
  std::string out =
      absl::StrCat(style.Bold(study.name), "  ", study.shape.ranks, " ranks, ", study.shape.chunks,
                   study.shape.chunks == 1 ? " chunk" : " chunks", ", ", study.shape.micro_batches,
                   " micro-batches\n\nmakespan ", FormatSeconds(t.makespan), ", bubble ",
                   Percent(t.bubble_fraction), " of it (idle over total, mean of ranks)\n\n");
  absl::StrAppend(&out,
                  style.Dim(absl::StrFormat("%6s %11s %11s %11s %9s %8s", "rank", "busy", "idle",
                                            "own bubble", "in flight", "until I")),
                  "\n");
  for (std::size_t r = 0; r < t.ranks.size(); ++r) {
    const RankTimeline& rank = t.ranks[r];
    absl::StrAppend(&out,
                    absl::StrFormat("%6d %11s %11s %11s %9d %8d\n", r, FormatSeconds(rank.busy),
                                    FormatSeconds(rank.idle), FormatSeconds(rank.own_bubble),
                                    rank.peak_in_flight, rank.peak_in_flight_until_i));
  }
  absl::StrAppend(&out, "\n",
                  style.Dim(Wrapped(
                      "idle: the makespan less what the rank is busy; own bubble: idle between its "
                      "first and last op; in flight: the most chunks from forward to weight "
                      "gradient, until I: to input gradient",
                      0, static_cast<std::size_t>(std::max(60, style.width)))));
  return out;
}

std::string StudyChart(const ScheduleStudy& study, const TextStyle& style) {
  const Timeline& t = study.timeline;
  constexpr std::size_t kBefore = 9, kAfter = 14;
  const auto width = static_cast<std::size_t>(std::max(60, style.width));
  const std::size_t columns =
      t.makespan > 0 ? Columns(study, width - kBefore - kAfter) : width - kBefore - kAfter;
  const auto column = [&](double time) {
    return t.makespan <= 0 ? std::size_t{0}
                           : static_cast<std::size_t>(
                                 std::llround(time / t.makespan * static_cast<double>(columns)));
  };
  std::vector<std::string> lines(t.ranks.size(), std::string(columns, '/'));
  const auto draw = [&](int rank, double start, double end, const char* kind) {
    std::string& line = lines[static_cast<std::size_t>(rank)];
    const std::string letters = kind;
    const std::size_t from = column(start), to = std::min(column(end), columns);
    for (std::size_t at = from; at < to; ++at) {
      if (letters.size() > 1) {  // a pair
        line[at] = to - from >= letters.size() ? letters[(at - from) % letters.size()] : '+';
      } else {
        line[at] = at == from
                       ? letters[0]
                       : static_cast<char>(std::tolower(static_cast<unsigned char>(letters[0])));
      }
    }
  };
  for (const TimedWork& w : t.works) {
    const double replayed = Replays(w.work.kind) ? w.start + study.times.recompute : w.start;
    if (replayed > w.start) draw(w.rank, w.start, replayed, "R");
    draw(w.rank, replayed, w.end, Name(w.work.kind));
  }
  std::string out;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    absl::StrAppend(&out, absl::StrFormat("rank %-3d ", r), Painted(lines[r], style), "  ",
                    t.ranks[r].peak_in_flight, " in flight\n");
  }
  absl::StrAppend(&out, std::string(kBefore, ' '),
                  style.Dim(absl::StrCat("0", std::string(columns > 12 ? columns - 11 : 1, ' '),
                                         absl::StrFormat("%10s", FormatSeconds(t.makespan)))),
                  "\n\n");
  absl::StrAppend(&out,
                  style.Dim(Wrapped("F forward  I input gradient  W weight gradient  B both  F+B "
                                    "overlapped pair  R recompute  / idle; a capital begins an op",
                                    0, width)));
  return out;
}

std::string StudyEvents(const ScheduleStudy& study) {
  std::string out = absl::StrFormat("%6s %4s %6s %12s %14s %14s\n", "rank", "kind", "chunk",
                                    "micro-batch", "start", "end");
  const auto pair = [](int first, int second) { return absl::StrCat(first, "+", second); };
  for (const TimedWork& w : study.timeline.works) {
    const bool two = w.work.kind == WorkKind::kFB;
    absl::StrAppend(
        &out, absl::StrFormat(
                  "%6d %4s %6s %12s %14s %14s\n", w.rank, Name(w.work.kind),
                  two ? pair(w.work.chunk, w.work.backward_chunk) : absl::StrCat(w.work.chunk),
                  two ? pair(w.work.micro_batch, w.work.backward_micro_batch)
                      : absl::StrCat(w.work.micro_batch),
                  FormatSeconds(w.start), FormatSeconds(w.end)));
  }
  return out;
}

}  // namespace shardlab
