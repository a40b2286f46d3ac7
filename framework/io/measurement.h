#pragma once
// Published measurements, one run a row: what was trained, on what, cut how, and what was measured.
// Any order of columns; a blank cell says "not stated". Cells stay text until a rule or a scenario
// asks for them, but every number is checked while reading, with line and column.
//
//   std::vector<Measurement> runs = ReadMeasurements(text, "runs.csv", {}, diagnostics);
//   runs[0].Number("gpus");    // 512
//
// Columns and units: MeasurementColumns(). Sequences for batches, fractions for mfu, seconds, bytes
// in the unit that mem_unit names, FLOP/s in 10^12.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace shardlab {

struct MeasurementColumn {
  enum Kind { kText, kCount, kWhole, kPositive };  // counts from 1, whole numbers from 0
  const char* name;
  Kind kind;
  bool required;  // the column, not each cell
  const char* about;
};
const std::vector<MeasurementColumn>& MeasurementColumns();

struct Measurement {
  std::string id;
  Place place;                               // of the row
  std::map<std::string, std::string> cells;  // by column; none for blank ones

  const std::string& Text(const std::string& column) const;  // "" when not stated
  std::optional<double> Number(const std::string& column) const;
};

// Rows that could be read. `more`: columns of text that only the caller's rules know. A column that
// nobody knows is a warning and is not used.
std::vector<Measurement> ReadMeasurements(const std::string& text, const std::string& file,
                                          const std::vector<std::string>& more,
                                          Diagnostics& diagnostics);

// The number that a cell states, or nothing where `text` is no number of that kind.
std::optional<double> ReadCell(std::string_view text, MeasurementColumn::Kind kind);

}  // namespace shardlab
