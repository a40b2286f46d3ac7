#pragma once
// A pipeline drawn in the terminal: one line a rank, a letter for each kind of work, a capital
// where it begins.
//
//   Chart chart{.makespan = 9, .shortest = 1, .in_flight = {4, 3}};
//   chart.slices.push_back({0, 0, 1, "F"});
//   out << ChartText(chart, style);

#include <string>
#include <vector>

#include "io/text_style.h"

namespace shardlab {

struct ChartSlice {
  int rank = 0;
  double start = 0, end = 0;
  std::string letters;  // one, or more that take turns
};

struct Chart {
  double makespan = 0;
  double shortest = 0;         // op: where all are a whole number of it the columns are too
  std::vector<int> in_flight;  // [rank] at most
  std::vector<ChartSlice> slices;
  std::string legend = {};
};

std::string ChartText(const Chart& chart, const TextStyle& style);

}  // namespace shardlab
