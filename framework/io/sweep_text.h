#pragma once
// Rows of a sweep for people and for spreadsheets.
//
//   out << SweepText(summary, rows, style);
//   out << SweepCsv(keys, columns, rows);

#include <string>
#include <vector>

#include "io/sweep_run.h"
#include "io/text_style.h"

namespace shardlab {

struct SweepSummary {
  std::string name;
  std::int64_t combinations = 0;
  SweepCounts counts;
  std::vector<std::string> keys;
  std::size_t most_rows = 40;  // shown
};

// The counts, a table of the rows in their order, and the fastest one that fits.
std::string SweepText(const SweepSummary& summary, const std::vector<SweepRow>& rows,
                      const TextStyle& style);

// A line of names, then a line for each row; an absent value is empty.
std::string SweepCsv(const std::vector<std::string>& keys, const std::vector<std::string>& columns,
                     const std::vector<SweepRow>& rows);

// "1,944 combinations: 1,200 illegal, 744 evaluated, of which 84 do not fit"
std::string CountsText(const SweepCounts& counts);

// The value of a row under a name, null where it has none.
nlohmann::ordered_json CellOf(const SweepRow& row, const std::string& name);

// For each key its last part, or all of it where two end alike.
std::vector<std::string> ShortNames(const std::vector<std::string>& keys);

}  // namespace shardlab
