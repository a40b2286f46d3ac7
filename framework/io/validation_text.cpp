#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "io/validation_report.h"

namespace shardlab {
namespace {

std::string Percent(double share, bool sign = false) {
  const double percent = 100 * share;
  const char* plus = sign && percent >= 0 ? "+" : "";
  if (std::abs(percent) >= 1000) return absl::StrFormat("%s%.0f", plus, percent);
  return absl::StrFormat("%s%.1f", plus, percent);
}

std::string Left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

class Report {
 public:
  Report(const Validation& v, const ValidationTextOptions& options, const TextStyle& style)
      : v_(v), options_(options), style_(style) {}

  std::string Make() {
    Head();
    Table("memory", v_.memory, "factor on parameters, gradients and optimizer state", false);
    Table("step time", v_.step, "", true);
    Checks();
    Skipped();
    if (options_.rows) Rows();
    return out_;
  }

 private:
  void Head() {
    std::size_t planned = 0;
    for (const ValidatedRow& row : v_.rows) planned += row.prediction.has_value() ? 1 : 0;
    absl::StrAppend(&out_, style_.Bold(options_.file), ": ", v_.rows.size(), " rows, ", planned,
                    " planned, ", v_.rows.size() - planned, " skipped\n");
  }

  void Table(const char* title, const QuantityErrors& q, const std::string& constant, bool order) {
    if (q.sources.empty()) return;
    const std::string fitted = order ? absl::StrCat("utilisation ", Percent(1 / q.constant), " %")
                                     : absl::StrCat(constant, " ", Significant(q.constant, 4));
    absl::StrAppend(&out_, "\n", style_.Bold(title),
                    "   |predicted / measured - 1| in %; constant: ", fitted,
                    ", fitted on all rows below\n");
    absl::StrAppend(
        &out_, "  source              rows   mean median   bias   <=5  <=10  <=20     worst\n");
    for (const SourceErrors& s : q.sources) {
      const ErrorSummary& e = s.errors;
      absl::StrAppend(
          &out_, "  ", Left(s.name, 19), absl::StrFormat("%5d", e.rows),
          absl::StrFormat("%7s%7s%7s%6.0f%6.0f%6.0f%10s  ", Percent(e.mean_absolute),
                          Percent(e.median_absolute), Percent(e.bias, true), 100 * e.within_5,
                          100 * e.within_10, 100 * e.within_20, Percent(e.worst, true)),
          e.worst_id, "\n");
    }
    absl::StrAppend(&out_,
                    "  mean beside baselines and by halves\n"
                    "  source               ours constant    own other-half roofline",
                    "      A      B", order ? "   tau  regret" : "", "\n");
    for (const SourceErrors& s : q.sources) {
      absl::StrAppend(
          &out_, "  ", Left(s.name, 19),
          absl::StrFormat("%6s%9s%7s%11s%9s%7s%7s", Percent(s.errors.mean_absolute),
                          Percent(s.constant), Percent(s.own_constant),
                          s.first_half.rows == 0 || s.second_half.rows == 0
                              ? "-"
                              : Percent(s.other_half_constant),
                          Percent(s.roofline),
                          s.first_half.rows == 0 ? "-" : Percent(s.first_half.mean_absolute),
                          s.second_half.rows == 0 ? "-" : Percent(s.second_half.mean_absolute)));
      if (order && s.order.pairs > 0)
        absl::StrAppend(&out_, absl::StrFormat("%6.2f%8s", s.order.tau(), Percent(s.order.regret)));
      absl::StrAppend(&out_, "\n");
    }
  }

  void Checks() {
    bool any = false;
    for (const SlopeResult& result : v_.checks) {
      if (result.pairs.empty()) continue;
      if (!any)
        absl::StrAppend(&out_, "\n", style_.Bold("self-checks"),
                        "   memory that more ranks share, bytes a parameter\n");
      any = true;
      double least = 1e300, most = -1e300, low = 1e300, high = -1e300;
      for (const SlopePair& pair : result.pairs) {
        least = std::min(least, pair.predicted);
        most = std::max(most, pair.predicted);
        if (pair.measured == 0) continue;
        low = std::min(low, pair.measured);
        high = std::max(high, pair.measured);
      }
      absl::StrAppend(&out_, "  ", result.holds ? "holds  " : "MISSED ", result.check.name, ": ",
                      absl::StrFormat("%.3f to %.3f", least, most), " in ", result.pairs.size(),
                      " pairs, expected ", ShortNumber(result.check.least), " to ",
                      ShortNumber(result.check.most));
      if (low <= high)
        absl::StrAppend(&out_, absl::StrFormat(", measured %.3f to %.3f", low, high));
      absl::StrAppend(&out_, "\n");
    }
  }

  // Reasons with their counts, most frequent first, and the sources that they fell on.
  void Skipped() {
    struct Reason {
      int rows = 0;
      std::map<std::string, int> sources;
    };
    std::map<std::string, Reason> reasons;
    const auto add = [&](const std::string& why, const ValidatedRow& row) {
      Reason& reason = reasons[why];
      ++reason.rows;
      ++reason.sources[row.scenario.source];
    };
    for (const ValidatedRow& row : v_.rows) {
      if (!row.skip.empty()) {
        add(row.skip, row);
        continue;
      }
      const bool judged = row.measured_step || row.measured_memory;
      if (!row.skip_step.empty()) add(absl::StrCat("step time: ", row.skip_step), row);
      if (!row.skip_memory.empty()) add(absl::StrCat("memory: ", row.skip_memory), row);
      if (!judged && row.skip_step.empty() && row.skip_memory.empty())
        add("neither step time nor memory is stated", row);
    }
    if (reasons.empty()) return;
    absl::StrAppend(&out_, "\n", style_.Bold("not judged"), "\n");
    std::vector<std::pair<std::string, Reason>> sorted(reasons.begin(), reasons.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.rows > b.second.rows; });
    for (const auto& [why, reason] : sorted) {
      std::string sources;
      for (const auto& [name, rows] : reason.sources)
        absl::StrAppend(&sources, sources.empty() ? "" : ", ", name, " ", rows);
      absl::StrAppend(&out_, absl::StrFormat("  %4d  ", reason.rows),
                      Wrapped(absl::StrCat(why, " (", sources, ")"), 8,
                              static_cast<std::size_t>(std::max(40, style_.width))));
    }
  }

  void Rows() {
    absl::StrAppend(&out_, "\n", style_.Bold("rows"),
                    "                    step s    measured   error      GiB   measured   error\n");
    for (const ValidatedRow& row : v_.rows) {
      absl::StrAppend(&out_, "  ", Left(row.scenario.filled.id, 16));
      if (!row.prediction) {
        absl::StrAppend(&out_, "  skipped: ", row.skip, "\n");
        continue;
      }
      const RowPrediction& p = *row.prediction;
      const double gib = 1024.0 * 1024 * 1024;
      absl::StrAppend(&out_, Cells(p.step, row.measured_step), " ",
                      Cells(p.memory / gib, row.measured_memory
                                                ? std::optional<double>(*row.measured_memory / gib)
                                                : std::nullopt),
                      row.step_derived ? "  from tokens/s" : "", "\n");
    }
  }

  static std::string Cells(double predicted, std::optional<double> measured) {
    if (!measured) return absl::StrFormat("%10s%12s%8s", Significant(predicted, 4), "-", "-");
    return absl::StrFormat("%10s%12s%8s", Significant(predicted, 4), Significant(*measured, 4),
                           Percent(predicted / *measured - 1, true));
  }

  const Validation& v_;
  const ValidationTextOptions& options_;
  const TextStyle& style_;
  std::string out_;
};

}  // namespace

std::string ValidationText(const Validation& validation, const ValidationTextOptions& options,
                           const TextStyle& style) {
  return Report(validation, options, style).Make();
}

}  // namespace shardlab
