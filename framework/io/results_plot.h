#pragma once
// Rows of a stored sweep as a chart: which columns, which rows, how they are told apart.
//
//   std::optional<SvgPlot> plot = PlotRows(sweep, rows, asked, &diagnostics);
//   if (plot) file << SvgText(*plot);

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "io/svg_plot.h"
#include "io/sweep_store.h"

namespace shardlab {

struct PlotAsked {
  std::string title;                // the sweep's name if empty
  std::string x, y;                 // the first varied key that is a number, and the step's time
  std::vector<std::string> series;  // if empty, for lines: the other keys that vary
  bool points = false;              // single points instead of lines
  bool log_y = false;
  std::string pareto;  // "low,low": what is better in x and in y; "" for no front
  std::string best;    // "low" or "high": of the rows at one x of a series, the best y
};

// `rows`: those to draw, of `sweep`. A row without a value (an illegal one has none) is left out,
// and how many are is said under the chart. Nothing, with every mistake told, where a name is no
// column, a column is no number, nothing is left, or several rows would be at one x of a line.
std::optional<SvgPlot> PlotRows(const StoredSweep& sweep, const std::vector<SweepRow>& rows,
                                const PlotAsked& asked, Diagnostics* diagnostics);

// A column of the sweep that `name` is: a whole path, or the end of exactly one ("degree" no, where
// two keys end so). Else nothing, with a diagnostic that has the nearest name.
std::optional<std::string> ColumnOf(const StoredSweep& sweep, const std::string& name,
                                    const std::string& option, Diagnostics* diagnostics);

}  // namespace shardlab
