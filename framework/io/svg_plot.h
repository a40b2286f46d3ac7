#pragma once
// Points as a chart in SVG: lines by series, or single points with a front through the best. The
// same plot is the same bytes; text is escaped; colours are told apart by the colour-blind, and
// each series has a mark of its own as well.
//
//   SvgPlot plot{.title = "70B", .x_column = "strategy.tensor.degree", .y_column = ...};
//   plot.series.push_back({"ZeRO 1", {{1, 0.5}, {2, 0.3}}});
//   out << SvgText(plot);

#include <string>
#include <vector>

namespace shardlab {

struct PlotPoint {
  double x = 0, y = 0;  // finite, in the unit of the column
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

struct SvgPlot {
  std::string title, note;         // note: small, below the chart
  std::string x_column, y_column;  // the unit is told by the name, as in MakeAxis
  std::string legend_title;        // what the series are named by
  bool lines = true;               // else single points
  bool log_x = false, log_y = false;
  std::vector<PlotSeries> series;  // not empty, none without points
  std::vector<PlotPoint> front;    // ascending in x; drawn as steps; may be empty
  bool front_low_x = true;         // less x is better: the steps run before the next point
};

// More could not be told apart.
inline constexpr std::size_t kMostSeries = 28;

std::string SvgText(const SvgPlot& plot);

// Of `points` those that no other beats in both, ascending in x; `low_x`, `low_y`: less is better.
// Of equal points one stays.
std::vector<PlotPoint> ParetoFront(std::vector<PlotPoint> points, bool low_x, bool low_y);

}  // namespace shardlab
