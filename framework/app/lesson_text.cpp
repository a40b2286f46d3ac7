#include "app/lesson_text.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/lesson_gauges.h"
#include "base/text.h"
#include "io/lesson_figures.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

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

// Paragraphs and list items are wrapped, tables lined up; code keeps its lines.
std::string MarkdownText(const std::string& text, const TextStyle& style) {
  std::istringstream lines(text);
  std::string line, paragraph, out;
  bool code = false;
  std::vector<std::string> table;
  const auto flush = [&] {
    const std::size_t indent = paragraph.starts_with("- ") ? 2 : 0;
    if (!paragraph.empty())
      absl::StrAppend(&out, Emphasis(Folded(paragraph, indent, LessonWidth(style)), style), "\n");
    if (!table.empty()) absl::StrAppend(&out, TableText(table));
    table.clear();
    paragraph.clear();
  };
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      flush();
      code = !code;
    } else if (code) {
      // What an exporter refuses is a sentence.
      absl::StrAppend(&out, "    ",
                      line.starts_with("(no)") ? Folded(line, 4, LessonWidth(style) - 4) : line,
                      "\n");
    } else if (line.starts_with("|")) {
      if (!paragraph.empty()) flush();
      table.push_back(line);
    } else if (line.empty() || line[0] == '#') {
      flush();
      absl::StrAppend(
          &out, line.empty() ? "" : style.Bold(line.substr(line.find_first_not_of("# "))), "\n");
    } else {
      if (line.starts_with("- ") || !table.empty()) flush();
      absl::StrAppend(&paragraph, paragraph.empty() ? "" : " ",
                      line.substr(std::min(line.size(), line.find_first_not_of(' '))));
    }
  }
  flush();
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
    absl::StrAppendFormat(&out, "  [%s] %2d  %-24s %d min  %s\n",
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
  absl::StrAppend(&out, LessonGaugesText(document.at("gauges"), style),
                  LessonChartText(document.at("chart")), LessonTrafficText(document.at("plan")));
  out += LessonFrontText(document.at("front"));
  if (document.contains("break")) {
    const Json& broken = document.at("break");
    absl::StrAppend(&out, "\n", style.Bold("break it"), "\n",
                    Folded(broken.at("text").get<std::string>(), 0, LessonWidth(style)), "\n");
    for (const Json& set : broken.at("set"))
      absl::StrAppend(&out, "  set ", set.get<std::string>(), "\n");
    absl::StrAppend(&out, LessonGaugesText(broken.at("gauges"), style),
                    LessonGoalText(broken.at("goal"), style));
  } else {
    absl::StrAppend(&out, LessonGoalText(document.at("goal"), style));
  }
  for (const Json& question : document.at("questions"))
    absl::StrAppend(&out, "\n", LessonQuestionText(question, style));
  return out;
}

std::string LessonFiguresText(const Json& document, const TextStyle& style) {
  constexpr std::size_t kName = 46;
  std::string out;
  for (const auto& [name, shown] : document.at("figures_shown").items()) {
    std::string value;
    for (const char c : shown.get<std::string>()) {
      value += c;
      if (c == ',' && document.at("figures").contains(name) &&
          document.at("figures")[name].is_array())
        value += ' ';  // a list may be folded
    }
    absl::StrAppendFormat(&out, "  %-*s %s\n", static_cast<int>(kName), name,
                          Folded(value, kName + 3, LessonWidth(style) - kName - 3));
  }
  return out.empty() ? "this step has no figures\n" : out;
}

std::string LessonStateText(const Json& document, const TextStyle& style) {
  std::string out = LessonGaugesText(document.at("gauges"), style);
  if (document.at("live").is_string())
    absl::StrAppend(&out, MarkdownText(document.at("live"), style), "\n");
  absl::StrAppend(&out, LessonChartText(document.at("chart")),
                  LessonTrafficText(document.at("plan")));
  int number = 1;
  for (const Json& knob : document.at("knobs")) {
    std::string values;
    std::string reasons;
    for (const Json& value : knob.at("values")) {
      std::string text = value.at("value").is_string() ? value.at("value").get<std::string>()
                                                       : value.at("value").dump();
      // A switch is there or not, whatever the plan calls it.
      if (value.at("value") == knob.at("with")) text = "on";
      if (value.at("value") == knob.at("without")) text = "off";
      const bool now = value.at("value") == knob.at("value");
      const bool legal = value.at("legal") == true;
      const char* mark = !legal ? "(no)" : value.at("fits") == true ? "" : "!";
      absl::StrAppend(&values, " ", now ? "[" : "", text, mark, now ? "]" : "");
      if (!legal && reasons.empty())
        reasons = absl::StrCat(
            "     ", text, ": ",
            Folded(value.at("reason").get<std::string>(), 7 + text.size(), LessonWidth(style)),
            "\n");
    }
    // In the framework's word where there is one; its key is then in the JSON.
    const Json& word = knob.at("flag").is_string() ? knob.at("flag") : knob.at("key");
    absl::StrAppendFormat(&out, "  %d  %s:%s\n", number++, word.get<std::string>(), values);
    out += reasons;
  }
  if (number > 1) absl::StrAppend(&out, "     [now]  ! does not fit  (no) is refused\n");
  return out + LessonGoalText(document.at("goal"), style);
}

std::string LessonQuestionText(const Json& question, const TextStyle& style) {
  std::string out = absl::StrCat(
      style.Bold(absl::StrCat("question ", question.at("question").get<int>(), ": ")),
      Folded(question.at("text").get<std::string>(), 4, LessonWidth(style) - 12), "\n");
  char letter = 'a';
  for (const Json& choice : question.at("choices"))
    absl::StrAppend(&out, "  ", std::string(1, letter++), ") ", choice.get<std::string>(), "\n");
  return out;
}

std::string LessonGradeText(const Json& document, const TextStyle& style) {
  const bool right = document.at("correct") == true;
  std::string out = absl::StrCat(
      right ? style.Green("right") : style.Red("no"), "  ",
      right ? (document.at("expected_shown").is_string()
                   ? document.at("expected_shown").get<std::string>()
                   : "")
            : Folded(document.at("message").get<std::string>(), 4, LessonWidth(style) - 4),
      "\n");
  if (document.contains("goal")) {
    absl::StrAppend(&out, LessonGaugesText(document.at("gauges"), style),
                    LessonGoalText(document.at("goal"), style));
    return out;
  }
  if (document.at("hint").is_string())
    absl::StrAppend(&out,
                    "hint: ", Folded(document.at("hint").get<std::string>(), 6, LessonWidth(style)),
                    "\n");
  if (document.at("worked").is_string() && !document.at("worked").get<std::string>().empty())
    absl::StrAppend(
        &out, right ? "" : absl::StrCat(document.at("expected_shown").get<std::string>(), "\n"),
        Folded(document.at("worked").get<std::string>(), 0, LessonWidth(style)), "\n");
  return out;
}

std::string LessonJobText(const Json& document, const TextStyle& style) {
  std::string out;
  if (document.contains("event_text") && document.at("event_text").is_string()) {
    absl::StrAppend(
        &out, Folded(document.at("event_text").get<std::string>(), 0, LessonWidth(style)),
        "\nthe job as it runs:\n", LessonGaugesText(document.at("running_after_event"), style));
  } else if (document.contains("running")) {
    absl::StrAppend(&out, "the job as it runs:\n", LessonGaugesText(document.at("running"), style));
  }
  const Json& gauges = document.contains("new") ? document.at("new") : document.at("gauges");
  if (document.contains("changes")) {
    std::string changes;
    for (const Json& change : document.at("changes")) {
      const auto shown = [](const Json& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
      };
      absl::StrAppend(&changes, changes.empty() ? "" : ", ", change.at("label").get<std::string>(),
                      " ", shown(change.at("from")), " -> ", shown(change.at("to")));
    }
    absl::StrAppend(&out, "changes: ",
                    Folded(changes.empty() ? "none" : changes, 9, LessonWidth(style) - 9), "\n");
  }
  absl::StrAppend(&out, "the plan:\n", LessonGaugesText(gauges, style));
  if (document.at("accepted") == false)
    absl::StrAppend(&out, style.Red("refused"), "  ",
                    Folded(document.at("reason").get<std::string>(), 9, LessonWidth(style)), "\n");
  else
    absl::StrAppend(&out, style.Green("accepted"), "  the job runs, ",
                    WithThousands(std::llround(gauges.at("tokens_per_second").get<double>())),
                    " tokens/s\n");
  if (document.contains("cost_seconds") && document.at("cost_seconds") > 0) {
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
  return out + LessonGoalText(document.at("goal"), style);
}

}  // namespace shardlab
