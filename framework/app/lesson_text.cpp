#include "app/lesson_text.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/lesson_figures.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBar = 36;  // columns of a memory bar, without the part over the line

std::size_t WidthOf(const TextStyle& style) {
  return static_cast<std::size_t>(std::clamp(style.width, 40, 100));
}

// Without the newline at the end of wrapped text.
std::string Folded(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out = Wrapped(text, indent, width);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// **so** is bold where there is colour.
std::string Emphasis(std::string text, const TextStyle& style) {
  for (std::size_t open = text.find("**"); open != std::string::npos; open = text.find("**")) {
    const std::size_t close = text.find("**", open + 2);
    if (close == std::string::npos) break;
    text = text.substr(0, open) + style.Bold(text.substr(open + 2, close - open - 2)) +
           text.substr(close + 2);
  }
  return text;
}

std::vector<std::string> Cells(const std::string& row) {
  std::vector<std::string> out;
  for (std::size_t at = 1; at < row.size();) {
    const std::size_t bar = std::min(row.find('|', at), row.size());
    std::string cell = row.substr(at, bar - at);
    const std::size_t from = cell.find_first_not_of(' ');
    out.push_back(
        from == std::string::npos ? "" : cell.substr(from, cell.find_last_not_of(' ') - from + 1));
    at = bar + 1;
  }
  return out;
}

// A Markdown table with its columns one under another; the line below the head becomes a rule.
std::string TableText(const std::vector<std::string>& rows) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> widths;
  for (const std::string& row : rows) {
    cells.push_back(Cells(row));
    const bool rule = row.find_first_not_of("|-: ") == std::string::npos;
    if (rule && cells.size() == 2) cells.back().clear();
    widths.resize(std::max(widths.size(), cells.back().size()), 0);
    for (std::size_t i = 0; i < cells.back().size(); ++i)
      widths[i] = std::max(widths[i], cells.back()[i].size());
  }
  std::string out;
  for (const std::vector<std::string>& row : cells) {
    std::string line = " ";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = row.empty()      ? std::string(widths[i], '-')
                               : i < row.size() ? row[i]
                                                : "";
      absl::StrAppend(&line, " ", cell, std::string(widths[i] - cell.size(), ' '), " ");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

// Paragraphs are wrapped, tables lined up; lists and code keep their lines.
std::string MarkdownText(const std::string& text, const TextStyle& style) {
  std::istringstream lines(text);
  std::string line, paragraph, out;
  bool code = false;
  std::vector<std::string> table;
  const auto flush = [&] {
    if (!paragraph.empty())
      absl::StrAppend(&out, Emphasis(Folded(paragraph, 0, WidthOf(style)), style), "\n");
    if (!table.empty()) absl::StrAppend(&out, TableText(table));
    table.clear();
    paragraph.clear();
  };
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      flush();
      code = !code;
      continue;
    }
    if (!code && line.starts_with("|")) {
      table.push_back(line);
      continue;
    }
    if (code || line.empty() || line[0] == '#' || line.starts_with("- ")) {
      flush();
      if (code) {
        absl::StrAppend(&out, "    ", line, "\n");
      } else if (line.starts_with("#")) {
        absl::StrAppend(&out, style.Bold(line.substr(line.find_first_not_of("# "))), "\n");
      } else if (line.starts_with("- ")) {
        absl::StrAppend(&out, Folded(line, 2, WidthOf(style)), "\n");
      } else {
        absl::StrAppend(&out, line, "\n");
      }
      continue;
    }
    absl::StrAppend(&paragraph, paragraph.empty() ? "" : " ", line);
  }
  flush();
  return out;
}

std::string GaugesText(const Json& gauges, const TextStyle& style) {
  if (gauges.at("legal") == false)
    return absl::StrCat(style.Red("REFUSED"), "  ",
                        Folded(gauges.at("reason").get<std::string>(), 9, WidthOf(style)), "\n");
  const double capacity = gauges.at("capacity_bytes").get<double>();
  const double peak = gauges.at("peak_bytes").get<double>();
  const std::string verdict = gauges.at("verdict");
  std::string out;
  if (verdict == "does_not_fit")
    absl::StrAppend(&out, style.Red("DOES NOT FIT"), "  ", FormatBytes(peak), " > ",
                    FormatBytes(capacity), ": ", FormatBytes(peak - capacity), " over\n");
  else
    absl::StrAppend(&out, verdict == "tight" ? style.Yellow("TIGHT") : style.Green("FITS"), "  ",
                    FormatBytes(peak), " of ", FormatBytes(capacity), ", ",
                    FormatFigure("", "%", 1 - peak / capacity), " free\n");
  const Json& ranks = gauges.at("rank_bytes");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double bytes = ranks[i].get<double>();
    // What is over the line is drawn behind it, no more than as wide again.
    const int filled = static_cast<int>(std::lround(std::min(2.0, bytes / capacity) * kBar));
    std::string bar = std::string(std::min(filled, kBar), '#') +
                      std::string(kBar - std::min(filled, kBar), '.') + "|" +
                      std::string(std::max(0, std::min(filled - kBar, kBar / 2)), '!');
    absl::StrAppendFormat(&out, "  rank %-3d %s %s\n", static_cast<int>(i), bar,
                          FormatBytes(bytes));
  }
  absl::StrAppend(&out, "  step ", FormatSeconds(gauges.at("step_seconds").get<double>()), ", MFU ",
                  FormatFigure("", "%", gauges.at("mfu").get<double>()), ", bubble ",
                  FormatFigure("", "%", gauges.at("bubble_fraction").get<double>()), "\n");
  return out;
}

std::string GoalText(const Json& goal, const TextStyle& style) {
  if (!goal.is_object()) return "";
  std::string out =
      absl::StrCat(goal.at("reached") == true ? style.Green("goal reached") : style.Yellow("goal"),
                   "  ", Folded(goal.at("text").get<std::string>(), 6, WidthOf(style) - 8), "\n");
  for (const Json& require : goal.at("requirements")) {
    absl::StrAppend(&out, require.at("holds") == true ? "  holds   " : "  BROKEN  ",
                    require.at("text").get<std::string>());
    if (require.contains("value")) {
      absl::StrAppend(&out, ": ", Significant(require.at("value").get<double>(), 5));
      const bool exact = require.contains("min") && require.contains("max") &&
                         require.at("min") == require.at("max");
      if (require.contains("min") && !exact)
        absl::StrAppend(&out, require.at("holds") == true ? " >= " : " not >= ",
                        Significant(require.at("min").get<double>(), 5));
      if (exact)
        absl::StrAppend(&out, require.at("holds") == true ? " as " : " instead of ",
                        Significant(require.at("min").get<double>(), 5));
      else if (require.contains("max"))
        absl::StrAppend(&out, require.at("holds") == true ? " <= " : " not <= ",
                        Significant(require.at("max").get<double>(), 5));
    }
    out += "\n";
  }
  return out;
}

std::string ChartText(const Json& chart) {
  if (chart.empty()) return "";
  std::string out = "pipeline: F forward, B backward, R recomputed, / idle\n";
  for (const Json& line : chart) absl::StrAppend(&out, line.get<std::string>(), "\n");
  return out;
}

// One line for each axis and collective.
std::string TrafficText(const Json& plan) {
  if (plan.is_null() || plan.at("communication").empty()) return "";
  struct Line {
    std::string axis, collective;
    int ranks = 0;
    double bytes = 0, seconds = 0;
  };
  std::vector<Line> lines;
  for (const Json& row : plan.at("communication")) {
    Line line{row.at("axis"), row.at("collective"), row.at("group_size"), row.at("bytes"),
              row.at("seconds")};
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& one) {
      return one.axis == line.axis && one.collective == line.collective && one.ranks == line.ranks;
    });
    if (same == lines.end()) {
      lines.push_back(std::move(line));
    } else {
      same->bytes += line.bytes;
      same->seconds += line.seconds;
    }
  }
  std::string out = "traffic of one device and step\n";
  for (const Line& line : lines)
    absl::StrAppendFormat(&out, "  %-9s %-15s %3d ranks %11s sent %10s\n", line.axis,
                          line.collective, line.ranks, FormatBytes(line.bytes),
                          FormatSeconds(line.seconds));
  return out;
}

}  // namespace

std::string LessonListText(const Json& document, const TextStyle& style) {
  std::string out, part;
  for (const Json& step : document.at("steps")) {
    if (step.at("part") != part) {
      part = step.at("part");
      absl::StrAppend(&out, out.empty() ? "" : "\n", style.Bold(part), "\n");
    }
    absl::StrAppendFormat(&out, "  [%s] %2d  %-23s %d min  %s\n",
                          step.at("done") == true ? "x" : " ", step.at("number").get<int>(),
                          step.at("slug").get<std::string>(), step.at("minutes").get<int>(),
                          step.at("title").get<std::string>());
  }
  absl::StrAppend(&out, "\n", document.at("done").get<int>(), " of ", document.at("steps").size(),
                  " done, ", document.at("minutes_left").get<int>(), " of ",
                  document.at("minutes").get<int>(), " minutes left");
  if (document.at("next").is_string())
    absl::StrAppend(&out, "; go on with: shardlab lesson run ",
                    document.at("next").get<std::string>());
  return out + "\n";
}

std::string LessonShowText(const Json& document, const TextStyle& style) {
  std::string out = absl::StrCat(style.Bold(absl::StrCat(document.at("number").get<int>(), ". ",
                                                         document.at("title").get<std::string>())),
                                 "\npart ", document.at("part").get<std::string>(), ", ",
                                 document.at("minutes").get<int>(), " min\n\n",
                                 MarkdownText(document.at("text"), style), "\n");
  absl::StrAppend(&out, GaugesText(document.at("gauges"), style), ChartText(document.at("chart")),
                  TrafficText(document.at("plan")));
  if (document.contains("break")) {
    const Json& broken = document.at("break");
    absl::StrAppend(&out, "\n", style.Bold("break it"), "\n",
                    Folded(broken.at("text").get<std::string>(), 0, WidthOf(style)), "\n");
    for (const Json& set : broken.at("set"))
      absl::StrAppend(&out, "  set ", set.get<std::string>(), "\n");
    absl::StrAppend(&out, GaugesText(broken.at("gauges"), style),
                    GoalText(broken.at("goal"), style));
  } else {
    absl::StrAppend(&out, GoalText(document.at("goal"), style));
  }
  for (const Json& question : document.at("questions"))
    absl::StrAppend(&out, "\n", LessonQuestionText(question, style));
  return out;
}

std::string LessonStateText(const Json& document, const TextStyle& style) {
  std::string out = GaugesText(document.at("gauges"), style);
  out += ChartText(document.at("chart"));
  int number = 1;
  for (const Json& knob : document.at("knobs")) {
    std::string values;
    std::string reasons;
    for (const Json& value : knob.at("values")) {
      const std::string text = value.at("value").is_string() ? value.at("value").get<std::string>()
                                                             : value.at("value").dump();
      const bool now = value.at("value") == knob.at("value");
      const bool legal = value.at("legal") == true;
      const char* mark = !legal ? "(no)" : value.at("fits") == true ? "" : "!";
      absl::StrAppend(&values, " ", now ? "[" : "", text, mark, now ? "]" : "");
      if (!legal && reasons.empty())
        reasons = absl::StrCat(
            "     ", text, ": ",
            Folded(value.at("reason").get<std::string>(), 7 + text.size(), WidthOf(style)), "\n");
    }
    absl::StrAppendFormat(&out, "  %d  %s:%s\n", number++, knob.at("key").get<std::string>(),
                          values);
    out += reasons;
  }
  if (number > 1) absl::StrAppend(&out, "     [now]  ! does not fit  (no) is refused\n");
  return out + GoalText(document.at("goal"), style);
}

std::string LessonQuestionText(const Json& question, const TextStyle& style) {
  std::string out =
      absl::StrCat(style.Bold(absl::StrCat("question ", question.at("question").get<int>(), ": ")),
                   Folded(question.at("text").get<std::string>(), 4, WidthOf(style) - 12), "\n");
  char letter = 'a';
  for (const Json& choice : question.at("choices"))
    absl::StrAppend(&out, "  ", std::string(1, letter++), ") ", choice.get<std::string>(), "\n");
  return out;
}

std::string LessonGradeText(const Json& document, const TextStyle& style) {
  const bool right = document.at("correct") == true;
  std::string out =
      absl::StrCat(right ? style.Green("right") : style.Red("no"), "  ",
                   right ? (document.at("expected_shown").is_string()
                                ? document.at("expected_shown").get<std::string>()
                                : "")
                         : Folded(document.at("message").get<std::string>(), 4, WidthOf(style) - 4),
                   "\n");
  if (document.contains("goal")) {
    absl::StrAppend(&out, GaugesText(document.at("gauges"), style),
                    GoalText(document.at("goal"), style));
    return out;
  }
  if (document.at("hint").is_string())
    absl::StrAppend(
        &out, "hint: ", Folded(document.at("hint").get<std::string>(), 6, WidthOf(style)), "\n");
  if (document.at("worked").is_string() && !document.at("worked").get<std::string>().empty())
    absl::StrAppend(
        &out, right ? "" : absl::StrCat(document.at("expected_shown").get<std::string>(), "\n"),
        Folded(document.at("worked").get<std::string>(), 0, WidthOf(style)), "\n");
  return out;
}

std::string LessonJobText(const Json& document, const TextStyle& style) {
  std::string out;
  if (document.contains("event_text") && document.at("event_text").is_string()) {
    absl::StrAppend(&out, Folded(document.at("event_text").get<std::string>(), 0, WidthOf(style)),
                    "\nthe job as it runs:\n",
                    GaugesText(document.at("running_after_event"), style));
  } else if (document.contains("running")) {
    absl::StrAppend(&out, "the job as it runs:\n", GaugesText(document.at("running"), style));
  }
  const Json& gauges = document.contains("new") ? document.at("new") : document.at("gauges");
  absl::StrAppend(&out, "the plan:\n", GaugesText(gauges, style));
  if (document.at("accepted") == false)
    absl::StrAppend(&out, style.Red("refused"), "  ",
                    Folded(document.at("reason").get<std::string>(), 9, WidthOf(style)), "\n");
  else
    absl::StrAppend(&out, style.Green("accepted"), "  the job runs, ",
                    WithThousands(std::llround(gauges.at("tokens_per_second").get<double>())),
                    " tokens/s\n");
  if (document.contains("cost_seconds")) {
    absl::StrAppend(&out, "checkpoint, reshard and restart cost ",
                    FormatSeconds(document.at("cost_seconds").get<double>()));
    if (document.at("break_even_steps").is_number())
      absl::StrAppend(&out, ", earned back after ",
                      WithThousands(std::llround(document.at("break_even_steps").get<double>())),
                      " steps");
    out += "\n";
  }
  if (document.contains("job")) {
    const nlohmann::ordered_json& job = document.at("job");
    absl::StrAppend(&out, "job clock ", FormatSeconds(job.value("clock_seconds", 0.0)), ", ",
                    job.value("steps", 0), " steps, ",
                    WithThousands(std::llround(job.value("tokens", 0.0))), " tokens\n");
  }
  return out + GoalText(document.at("goal"), style);
}

}  // namespace shardlab
