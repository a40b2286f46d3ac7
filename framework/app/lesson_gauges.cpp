#include "app/lesson_gauges.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/lesson_figures.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBar = 48;       // columns of a memory bar
constexpr std::size_t kMostRanks = 9;  // more are not drawn one by one
constexpr double kWholeBelow = 1e15;   // a whole number below this is shown as one

struct AccountMark {
  const char* key;
  char letter;
  const char* word;
};
// As `shardlab plan` marks them; what the textbook leaves out is one letter.
constexpr std::array<AccountMark, 5> kMarks = {{{"parameters_bytes", 'P', "parameters"},
                                                {"gradients_bytes", 'G', "gradients"},
                                                {"optimizer_bytes", 'O', "optimizer"},
                                                {"activations_bytes", 'A', "activations"},
                                                {"other_bytes", 'x', "other"}}};

// A rank's accounts one behind the other, and a '|' where the device's memory ends.
std::string Bar(const Json& accounts, double scale, double capacity) {
  const auto columns = [&](double bytes) {
    return static_cast<std::size_t>(std::llround(bytes / scale * static_cast<double>(kBar)));
  };
  std::string out;
  double sum = 0;
  for (const AccountMark& mark : kMarks) {
    sum += accounts.at(mark.key).get<double>();
    out.append(std::max(columns(sum), out.size()) - out.size(), mark.letter);
  }
  out.append(kBar - std::min(kBar, out.size()), '.');
  return out.insert(std::min(columns(capacity), out.size()), "|");
}

// Two lanes, each a step wide: what computes, and what travels, behind compute (=) or while nothing
// else goes on (!). A step without traffic has none.
std::string LanesText(const Json& gauges) {
  const double step = gauges.at("step_seconds").get<double>(),
               hidden = gauges.at("hidden_seconds").get<double>(),
               exposed = gauges.at("exposed_seconds").get<double>();
  if (hidden + exposed <= 0 || step <= 0) return "";
  const auto columns = [&](double seconds) {
    const auto most = static_cast<double>(kBar);
    return static_cast<std::size_t>(std::llround(std::min(1.0, seconds / step) * most));
  };
  const auto lane = [&](const char* name, const std::string& bar, double seconds) {
    return absl::StrCat("  ", name, " ", bar, std::string(kBar - std::min(kBar, bar.size()), '.'),
                        " ", FormatSeconds(seconds), "\n");
  };
  const double compute = gauges.at("compute_seconds").get<double>();
  const std::string busy(columns(compute), '#');
  // The ends of a lane meet its compute: hidden traffic lies under it, exposed behind.
  std::string travel = std::string(columns(hidden), '=') + std::string(columns(exposed), '!');
  if (travel.size() > kBar) travel.resize(kBar);
  return lane("compute", busy, compute) + lane("traffic", travel, hidden + exposed);
}

std::string Shown(double value) {
  return value == std::floor(value) && std::abs(value) < kWholeBelow ? FormatFigure("", "", value)
                                                                     : Significant(value, 5);
}

}  // namespace

std::size_t LessonWidth(const TextStyle& style) {
  return static_cast<std::size_t>(std::clamp(style.width, 40, 100));
}

std::string Folded(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out = Wrapped(text, indent, width);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string LessonGaugesText(const Json& gauges, const TextStyle& style) {
  if (gauges.at("legal") == false)
    return absl::StrCat(style.Red("REFUSED"), "  ",
                        Folded(gauges.at("reason").get<std::string>(), 9, LessonWidth(style)),
                        "\n");
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
  const Json& ranks = gauges.at("ranks");
  const double scale = std::max(peak, capacity);
  std::size_t worst = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].at("total_bytes") > ranks[worst].at("total_bytes")) worst = i;
    if (ranks.size() > kMostRanks && i > 1 && i + 1 < ranks.size()) {
      if (i == 2) absl::StrAppend(&out, "  ... ", ranks.size() - 3, " more\n");
      continue;
    }
    absl::StrAppendFormat(&out, "  rank %-3d %s %s\n", static_cast<int>(i),
                          Bar(ranks[i], scale, capacity),
                          FormatBytes(ranks[i].at("total_bytes").get<double>()));
  }
  std::string legend;
  for (const AccountMark& mark : kMarks) {
    const double bytes = ranks[worst].at(mark.key).get<double>();
    if (bytes > 0)
      absl::StrAppend(&legend, legend.empty() ? "" : ", ", std::string(1, mark.letter), " ",
                      mark.word, " ", FormatBytes(bytes));
  }
  absl::StrAppend(&out, "  ", Folded(legend, 2, LessonWidth(style) - 2), "\n");
  out += LanesText(gauges);
  absl::StrAppend(&out, "  step ", FormatSeconds(gauges.at("step_seconds").get<double>()),
                  ", of it exposed traffic ",
                  FormatSeconds(gauges.at("exposed_seconds").get<double>()), "; MFU ",
                  FormatFigure("", "%", gauges.at("mfu").get<double>()), ", bubble ",
                  FormatFigure("", "%", gauges.at("bubble_fraction").get<double>()), "\n");
  absl::StrAppend(&out, "  ", gauges.at("data").get<int>(), " x ",
                  gauges.at("micro_batches").get<int>(), " micro-batches (replicas x each)\n");
  return out;
}

std::string LessonGoalText(const Json& goal, const TextStyle& style) {
  if (!goal.is_object()) return "";
  std::string out = absl::StrCat(
      goal.at("reached") == true ? style.Green("goal reached") : style.Yellow("goal"), "  ",
      Folded(goal.at("text").get<std::string>(), 6, LessonWidth(style) - 14), "\n");
  for (const Json& require : goal.at("requirements")) {
    const bool holds = require.at("holds") == true;
    absl::StrAppend(&out, holds ? "  holds   " : "  BROKEN  ",
                    require.at("text").get<std::string>());
    if (require.contains("value")) {
      const auto bound = [&](const char* name) { return Shown(require.at(name).get<double>()); };
      absl::StrAppend(&out, ": ", bound("value"));
      const bool exact = require.contains("min") && require.contains("max") &&
                         require.at("min") == require.at("max");
      if (require.contains("min") && !exact)
        absl::StrAppend(&out, holds ? " >= " : " not >= ", bound("min"));
      if (exact)
        absl::StrAppend(&out, holds ? " as " : " instead of ", bound("min"));
      else if (require.contains("max"))
        absl::StrAppend(&out, holds ? " <= " : " not <= ", bound("max"));
    }
    out += "\n";
  }
  return out;
}

std::string LessonChartText(const Json& chart) {
  if (chart.empty()) return "";
  std::string out = "pipeline: F forward, B backward, R recomputed, / idle\n";
  for (const Json& line : chart) absl::StrAppend(&out, line.get<std::string>(), "\n");
  return out;
}

std::string LessonTrafficText(const Json& plan) {
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

std::string LessonFrontText(const Json& front) {
  if (!front.is_object()) return "";
  std::string out = absl::StrCat("plans that no other beats in both, ",
                                 front.at("x").at("label").get<std::string>(), " and ",
                                 front.at("y").at("label").get<std::string>(), "\n");
  std::size_t number = 0;
  for (const Json& plan : front.at("plans")) {
    ++number;
    if (plan.at("best") == false) continue;
    absl::StrAppendFormat(&out, "  load %-3d %-34s %10s %10s\n", static_cast<int>(number),
                          plan.at("label").get<std::string>(),
                          plan.at("x_shown").get<std::string>(),
                          plan.at("y_shown").get<std::string>());
  }
  return out;
}

}  // namespace shardlab
