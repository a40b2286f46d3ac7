#include "io/results_plot.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "io/plot_axis.h"
#include "io/sweep_text.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::string WordOf(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return ShortNumber(value.get<double>());
  return value.dump();
}

// Numbers ascending and before words; words stay as the rows have them.
bool Before(const std::vector<Json>& a, const std::vector<Json>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_number() != b[i].is_number()) return a[i].is_number();
    if (a[i].is_number() && a[i] != b[i]) return a[i].get<double>() < b[i].get<double>();
  }
  return false;
}

std::vector<std::string> VariedAmong(const StoredSweep& sweep, const std::vector<SweepRow>& rows) {
  std::vector<std::string> varied;
  for (const std::string& key : sweep.keys) {
    for (const SweepRow& row : rows) {
      if (CellOf(row, key) == CellOf(rows.front(), key)) continue;
      varied.push_back(key);
      break;
    }
  }
  return varied;
}

class Plotter {
 public:
  Plotter(const StoredSweep& sweep, const std::vector<SweepRow>& rows, const PlotAsked& asked,
          Diagnostics* diagnostics)
      : sweep_(sweep), rows_(rows), asked_(asked), diagnostics_(*diagnostics) {}

  std::optional<SvgPlot> Plot() {
    if (rows_.empty()) {
      Wrong("plot.empty", "no row is left to draw",
            "the store's sweep has none, or --where keeps none");
      return std::nullopt;
    }
    plot_.title = asked_.title.empty() ? sweep_.name : asked_.title;
    plot_.lines = !asked_.points && asked_.pareto.empty();
    const std::optional<std::string> x = Numbers(asked_.x.empty() ? FirstNumber() : asked_.x,
                                                 "--x"),
                                     y = Numbers(asked_.y.empty() ? "time.step_seconds" : asked_.y,
                                                 "--y");
    for (const std::string& name : asked_.series) {
      if (const auto column = ColumnOf(sweep_, name, "--series", &diagnostics_))
        series_.push_back(*column);
    }
    CheckWords();
    if (!x || !y || diagnostics_.HasErrors()) return std::nullopt;
    plot_.x_column = *x;
    plot_.y_column = *y;
    if (asked_.series.empty() && plot_.lines && asked_.best.empty()) {
      for (const std::string& key : VariedAmong(sweep_, rows_)) {
        if (key != *x) series_.push_back(key);
      }
    }
    Collect();
    if (diagnostics_.HasErrors()) return std::nullopt;
    return std::move(plot_);
  }

 private:
  void Wrong(const std::string& code, const std::string& message, const std::string& hint = "") {
    diagnostics_.Error(code, {}, message, hint);
  }

  std::string FirstNumber() const {
    const std::vector<std::string> varied = VariedAmong(sweep_, rows_);
    for (const std::string& key : varied) {
      if (CellOf(rows_.front(), key).is_number()) return key;
    }
    return sweep_.keys.empty() ? "time.step_seconds" : sweep_.keys.front();
  }

  std::optional<std::string> Numbers(const std::string& name, const std::string& option) {
    std::optional<std::string> column = ColumnOf(sweep_, name, option, &diagnostics_);
    if (!column) return std::nullopt;
    for (const SweepRow& row : rows_) {
      const Json value = CellOf(row, *column);
      if (value.is_null() || value.is_number()) continue;
      Wrong("plot.number",
            absl::StrCat(option, " ", *column, " is no number: a row has ", value.dump()),
            absl::StrCat("--series ", *column, " tells rows apart by it"));
      return std::nullopt;
    }
    return column;
  }

  void CheckWords() {
    const auto good = [](const std::string& word) { return word == "low" || word == "high"; };
    if (!asked_.best.empty() && !good(asked_.best))
      Wrong("plot.word", absl::StrCat("--best is low or high, not \"", asked_.best, "\""));
    if (asked_.pareto.empty()) return;
    const std::size_t comma = asked_.pareto.find(',');
    if (comma == std::string::npos || !good(asked_.pareto.substr(0, comma)) ||
        !good(asked_.pareto.substr(comma + 1)))
      Wrong("plot.word",
            absl::StrCat("--pareto says what is better in x and in y, not \"", asked_.pareto, "\""),
            "\"low,low\", \"low,high\", \"high,low\" or \"high,high\"");
    if (!asked_.best.empty())
      Wrong("plot.word", "--best chooses points of lines, and --pareto draws none");
  }

  static std::string NameOf(const std::vector<Json>& values) {
    std::vector<std::string> words;
    words.reserve(values.size());
    for (const Json& value : values) words.push_back(WordOf(value));
    return absl::StrJoin(words, ", ");
  }

  void Collect() {
    std::int64_t without = 0, illegal = 0;
    std::vector<double> x;
    std::map<std::string, std::size_t> at;
    std::vector<std::pair<std::vector<Json>, PlotSeries>> named;
    for (const SweepRow& row : rows_) {
      const Json px = CellOf(row, plot_.x_column), py = CellOf(row, plot_.y_column);
      if (!px.is_number() || !py.is_number()) {
        ++(row.legal ? without : illegal);
        continue;
      }
      std::vector<Json> values;
      for (const std::string& column : series_) values.push_back(CellOf(row, column));
      const std::string name = NameOf(values);
      const auto [found, added] = at.emplace(name, named.size());
      if (added) named.emplace_back(std::move(values), PlotSeries{name, {}});
      named[found->second].second.points.push_back({px.get<double>(), py.get<double>()});
      x.push_back(px.get<double>());
      if (asked_.log_y && py.get<double>() <= 0 && !diagnostics_.HasErrors())
        Wrong("plot.log", absl::StrCat("--log-y needs ", plot_.y_column, " above 0, and a row has ",
                                       py.dump()));
    }
    if (x.empty()) {
      Wrong("plot.empty",
            absl::StrCat("none of the ", WithThousands(static_cast<long long>(rows_.size())),
                         " rows has both ", plot_.x_column, " and ", plot_.y_column),
            illegal > 0 ? "illegal combinations have no results" : "");
      return;
    }
    std::stable_sort(named.begin(), named.end(),
                     [](const auto& a, const auto& b) { return Before(a.first, b.first); });
    for (auto& [values, series] : named) plot_.series.push_back(std::move(series));
    if (plot_.series.size() > kMostSeries) {
      Wrong("plot.series",
            absl::StrCat("a chart of ", plot_.series.size(), " lines cannot be read; ", kMostSeries,
                         " are the most"),
            "fewer keys with --series and the best row of each with --best, or fewer rows with "
            "--where");
      return;
    }
    plot_.log_x = AreDoublings(x);
    plot_.log_y = asked_.log_y;
    plot_.legend_title = absl::StrJoin(ShortNames(series_), ", ");
    if (plot_.lines) Order();
    Front();
    Note(static_cast<std::int64_t>(x.size()), without, illegal);
  }

  void Order() {
    const double sign = asked_.best == "high" ? -1 : 1;
    for (PlotSeries& series : plot_.series) {
      std::stable_sort(series.points.begin(), series.points.end(),
                       [&](const PlotPoint& a, const PlotPoint& b) {
                         return a.x != b.x ? a.x < b.x : sign * a.y < sign * b.y;
                       });
      const auto last =
          std::unique(series.points.begin(), series.points.end(),
                      [](const PlotPoint& a, const PlotPoint& b) { return a.x == b.x; });
      if (last != series.points.end() && asked_.best.empty()) {
        Wrong("plot.several",
              absl::StrCat("several rows have one ", plot_.x_column,
                           series.name.empty() ? "" : absl::StrCat(" in ", series.name)),
              "tell them apart with --series, take one with --best low or high, or draw --points");
        return;
      }
      series.points.erase(last, series.points.end());
    }
  }

  void Front() {
    if (asked_.pareto.empty()) return;
    std::vector<PlotPoint> all;
    for (const PlotSeries& series : plot_.series)
      all.insert(all.end(), series.points.begin(), series.points.end());
    plot_.front_low_x = absl::StartsWith(asked_.pareto, "low");
    plot_.front =
        ParetoFront(std::move(all), plot_.front_low_x, absl::EndsWith(asked_.pareto, "low"));
  }

  void Note(std::int64_t drawn, std::int64_t without, std::int64_t illegal) {
    plot_.note = absl::StrCat(WithThousands(drawn), drawn == 1 ? " plan" : " plans");
    if (plot_.lines && !asked_.best.empty())
      absl::StrAppend(&plot_.note, ", the ", asked_.best == "low" ? "lowest" : "highest",
                      " at each x");
    if (illegal > 0)
      absl::StrAppend(&plot_.note, "; ", WithThousands(illegal), " illegal combinations left out");
    if (without > 0) absl::StrAppend(&plot_.note, "; ", WithThousands(without), " without a value");
  }

  const StoredSweep& sweep_;
  const std::vector<SweepRow>& rows_;
  const PlotAsked& asked_;
  Diagnostics& diagnostics_;
  SvgPlot plot_;
  std::vector<std::string> series_;
};

}  // namespace

std::optional<std::string> ColumnOf(const StoredSweep& sweep, const std::string& name,
                                    const std::string& option, Diagnostics* diagnostics) {
  std::vector<std::string> all = sweep.keys, ends;
  for (const std::string& column : sweep.columns) {
    if (std::find(all.begin(), all.end(), column) == all.end()) all.push_back(column);
  }
  for (const std::string& column : all) {
    if (column == name) return column;
    if (absl::EndsWith(column, absl::StrCat(".", name))) ends.push_back(column);
  }
  if (ends.size() == 1) return ends.front();
  if (ends.size() > 1) {
    diagnostics->Error("plot.column", {},
                       absl::StrCat(option, " ", name, " is the end of several columns"),
                       absl::StrCat("write ", Enumerate(ends, "or")));
    return std::nullopt;
  }
  std::string near = Nearest(name, all);
  if (near.empty()) {
    std::vector<std::string> last;
    last.reserve(all.size());
    for (const std::string& column : all) last.push_back(column.substr(column.rfind('.') + 1));
    near = Nearest(name.substr(name.rfind('.') + 1), last);
    const auto whole = std::find(last.begin(), last.end(), near);
    if (whole != last.end()) near = all[static_cast<std::size_t>(whole - last.begin())];
  }
  diagnostics->Error("plot.column", {},
                     absl::StrCat(option, " ", name, " is no column of this sweep"),
                     near.empty() ? "results show DB --format csv has all in its first line"
                                  : absl::StrCat("did you mean \"", near, "\"?"));
  return std::nullopt;
}

std::optional<SvgPlot> PlotRows(const StoredSweep& sweep, const std::vector<SweepRow>& rows,
                                const PlotAsked& asked, Diagnostics* diagnostics) {
  return Plotter(sweep, rows, asked, diagnostics).Plot();
}

}  // namespace shardlab
