#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/quantity.h"
#include "io/schedule_study.h"
#include "io/timeline_chart.h"

namespace shardlab {
namespace {

std::string Percent(double fraction) { return absl::StrCat(Significant(100 * fraction, 4), " %"); }

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
  Chart chart;
  chart.makespan = chart.shortest = t.makespan;
  for (const RankTimeline& rank : t.ranks) chart.in_flight.push_back(rank.peak_in_flight);
  for (const TimedWork& w : t.works) {
    if (w.end > w.start) chart.shortest = std::min(chart.shortest, w.end - w.start);
    const double replayed = Replays(w.work.kind) ? w.start + study.times.recompute : w.start;
    if (replayed > w.start) chart.slices.push_back({w.rank, w.start, replayed, "R"});
    chart.slices.push_back({w.rank, replayed, w.end, Name(w.work.kind)});
  }
  chart.legend =
      "F forward  I input gradient  W weight gradient  B both  F+B overlapped pair  R recompute  / "
      "idle; a capital begins an op";
  return ChartText(chart, style);
}

std::string StudyEvents(const ScheduleStudy& study) {
  std::string out = absl::StrFormat("%6s %4s %6s %12s %14s %14s\n", "rank", "kind", "chunk",
                                    "micro-batch", "start", "end");
  const auto pair = [](int first, int second) { return absl::StrCat(first, "+", second); };
  const auto add = [&](int rank, const char* kind, const Work& work, double start, double end) {
    const bool two = work.kind == WorkKind::kFB;
    absl::StrAppend(&out, absl::StrFormat("%6d %4s %6s %12s %14s %14s\n", rank, kind,
                                          two ? pair(work.chunk, work.backward_chunk)
                                              : absl::StrCat(work.chunk),
                                          two ? pair(work.micro_batch, work.backward_micro_batch)
                                              : absl::StrCat(work.micro_batch),
                                          FormatSeconds(start), FormatSeconds(end)));
  };
  for (const TimedWork& w : study.timeline.works) {
    const double replayed = Replays(w.work.kind) ? w.start + study.times.recompute : w.start;
    if (replayed > w.start) add(w.rank, "R", w.work, w.start, replayed);
    add(w.rank, Name(w.work.kind), w.work, replayed, w.end);
  }
  for (const TimedMessage& m : study.timeline.messages) {
    add(m.from_rank, "SEND", m.from, m.start, m.end);
    add(m.to_rank, "RECV", m.to, m.start, m.end);
  }
  return out;
}

}  // namespace shardlab
