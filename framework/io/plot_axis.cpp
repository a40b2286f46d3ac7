#include "io/plot_axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"

namespace shardlab {
namespace {

struct Unit {
  std::string name, symbol;  // of the column without its unit
  double scale = 1;          // value / scale is what is written
};

// The prefix that leaves the greatest value at 1 or more: m for 0.017 s.
Unit UnitOf(const std::string& column, double greatest) {
  struct Suffix {
    const char* ending;
    const char* symbol;
    bool drop;
  };
  static constexpr Suffix kSuffixes[] = {
      {"_seconds", "s", true}, {"_bytes", "B", true}, {"_bytes_per_second", "B/s", true}};
  struct Prefix {
    double scale;
    const char* symbol;
  };
  static constexpr Prefix kPrefixes[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                                         {1e6, "M"},  {1e3, "k"},  {1, ""},     {1e-3, "m"},
                                         {1e-6, "µ"}, {1e-9, "n"}, {1e-12, "p"}};
  Unit unit{column, "", 1};
  std::string base;
  std::size_t matched = 0;
  for (const Suffix& suffix : kSuffixes) {
    const std::string ending = suffix.ending;
    if (ending.size() <= matched || !absl::EndsWith(column, ending)) continue;
    matched = ending.size();
    unit.name = column.substr(0, column.size() - ending.size());
    base = suffix.symbol;
  }
  const bool seconds = base == "s";
  // A number without a unit keeps its digits up to 100,000; no part of a byte is written.
  const double least_scaled = base.empty() ? 1e5 : 0;
  if (greatest >= least_scaled) {
    for (const Prefix& prefix : kPrefixes) {
      if (greatest < prefix.scale * (1 - 1e-9)) continue;
      if ((seconds && prefix.scale > 1) || (!seconds && prefix.scale < 1)) continue;
      unit.scale = prefix.scale;
      unit.symbol = absl::StrCat(prefix.symbol, base);
      break;
    }
  }
  if (unit.symbol.empty()) unit.symbol = base;
  return unit;
}

// Without what steps of 0.1 leave behind the sixth digit, and without zeros at the end.
std::string TickLabel(double value) {
  double rounded = value;
  if (!absl::SimpleAtod(absl::StrFormat("%.6g", value), &rounded)) rounded = value;
  return ShortNumber(rounded);
}

// 1, 2 or 5 times a power of ten, near `rough`.
double NiceStep(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= rough * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

void Linear(const std::vector<double>& values, double scale, PlotAxis* axis) {
  constexpr double kSteps = 5;
  double low = values.front(), high = values.back();
  // What is told by lengths begins at 0, unless the values would all lie at the far end.
  if (low > 0 && low <= 0.6 * high) low = 0;
  if (high < 0 && high >= 0.6 * low) high = 0;
  if (low == high) {
    const double around = low == 0 ? 1 : std::abs(low) / 2;
    low -= around;
    high += around;
  }
  const double step = NiceStep((high - low) / scale / kSteps);
  const double first = std::floor(low / scale / step + 1e-9),
               last = std::ceil(high / scale / step - 1e-9);
  for (double i = first; i <= last; ++i)
    axis->ticks.push_back({i * step * scale, TickLabel(i * step)});
  axis->low = first * step * scale;
  axis->high = last * step * scale;
}

void Logarithmic(const std::vector<double>& values, double scale, PlotAxis* axis) {
  constexpr std::size_t kMostTicks = 12;
  axis->low = values.front();
  axis->high = values.back();
  if (axis->low == axis->high) {
    axis->low /= 2;
    axis->high *= 2;
  }
  if (values.size() <= kMostTicks && AreDoublings(values)) {
    for (const double value : values) axis->ticks.push_back({value, TickLabel(value / scale)});
    return;
  }
  const double first = std::floor(std::log10(axis->low / scale)),
               last = std::ceil(std::log10(axis->high / scale));
  const bool few = last - first <= 3;
  std::vector<double> ticks;
  for (double decade = first; decade <= last; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (digit == 1 || few) ticks.push_back(digit * std::pow(10.0, decade) * scale);
    }
  }
  // Out to the ticks around the values.
  std::size_t from = 0, past = ticks.size();
  while (from + 1 < past && ticks[from + 1] <= axis->low * (1 + 1e-9)) ++from;
  while (past > from + 1 && ticks[past - 2] >= axis->high * (1 - 1e-9)) --past;
  for (std::size_t i = from; i < past; ++i)
    axis->ticks.push_back({ticks[i], TickLabel(ticks[i] / scale)});
  axis->low = std::min(axis->low, axis->ticks.front().value);
  axis->high = std::max(axis->high, axis->ticks.back().value);
}

}  // namespace

double PlotAxis::At(double value) const {
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value - low) / (high - low);
}

bool AreDoublings(const std::vector<double>& values) {
  if (values.empty()) return false;
  const double least = *std::min_element(values.begin(), values.end());
  if (least <= 0) return false;
  bool more[2] = {false, false};
  for (const double value : values) {
    const double power = std::log2(value / least);
    if (std::abs(power - std::round(power)) > 1e-9) return false;
    if (power > 0.5) more[power > 1.5] = true;
  }
  return more[1];
}

PlotAxis MakeAxis(std::vector<double> values, const std::string& column, bool logarithmic) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  PlotAxis axis;
  axis.logarithmic = logarithmic;
  const Unit unit = UnitOf(column, std::max(std::abs(values.front()), std::abs(values.back())));
  (logarithmic ? Logarithmic : Linear)(values, unit.scale, &axis);
  axis.title = unit.symbol.empty() ? unit.name : absl::StrCat(unit.name, " (", unit.symbol, ")");
  return axis;
}

}  // namespace shardlab
