#pragma once
// Axes of plots: ticks at round numbers, and values in a unit that a person reads.
//
//   const PlotAxis axis = MakeAxis(values, "time.step_seconds", false);
//   axis.At(0.017);            // 0..1 along the axis
//   axis.ticks[0].label        // "15"; axis.title: "time.step (ms)"

#include <string>
#include <vector>

namespace shardlab {

struct PlotTick {
  double value = 0;
  std::string label;
};

struct PlotAxis {
  double low = 0, high = 1;  // ends, in the column's own unit; low < high
  bool logarithmic = false;
  std::vector<PlotTick> ticks;  // ascending, all within the ends
  std::string title;            // the column without its unit, then the unit in parentheses

  // From 0 at the low end to 1 at the high one.
  double At(double value) const;
};

// `values`: not empty, all finite, and all above 0 where `logarithmic`. The unit is told by the
// column's name: `_seconds`, `_bytes`, `_per_second`; a name without one has none.
// Linear axes begin at 0 where the values come near it. Logarithmic ones have a tick at each value
// when the values are few and each a power of two times another, else at 1, 2 and 5 of each decade.
PlotAxis MakeAxis(std::vector<double> values, const std::string& column, bool logarithmic);

// All above 0, at least three different ones, each a power of two times the least: degrees.
bool AreDoublings(const std::vector<double>& values);

}  // namespace shardlab
