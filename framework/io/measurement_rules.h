#pragma once
// How measurements become scenarios, as data: a TOML file of rules over the columns. No code knows
// a source, a framework or a device by name; validation/sources.toml is the file that ships.
//
//   MeasurementRules rules = ReadMeasurementRules("sources.toml", diagnostics);
//   RowScenario row = ScenarioOf(measurement, rules);
//   if (row.skip.empty()) plan(row.toml);
//
// A rule applies when every column of its `when` matches one of its patterns; all rules apply in
// the order of the file, those of the row's source after those for all, later values over earlier
// ones. Patterns: * any text, ? one character, "" blank, !p not p, <8 <=8 >8 >=8 numbers. A value
// "= 4 * hidden" is computed from columns, left to right; if one of them is blank, so is the value.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/value.h"
#include "base/diagnostic.h"
#include "io/measurement.h"

namespace shardlab {

struct ColumnPattern {
  std::string column;
  std::vector<std::string> any;  // of these
};
using RowFilter = std::vector<ColumnPattern>;

// What the printed number of bytes means.
struct MemoryReading {
  std::string of =
      "allocated";           // resident (between steps), allocated, reserved, total (the driver)
  std::string rank = "max";  // max, first, last: pipeline rank
  std::string unit = "GiB";  // GiB, GB
};

struct MeasurementRule {
  RowFilter when;
  std::vector<std::pair<std::string, Value>> columns;       // where the cell is blank
  std::vector<std::pair<std::string, Value>> scenario;      // dotted key -> value
  std::vector<std::pair<std::string, std::string>> memory;  // of, rank, unit
  // Why no plan is made, why the step time or the memory is not judged; "" takes back what an
  // earlier rule said.
  std::optional<std::string> skip, skip_step, skip_memory;
};

struct MeasurementSource {
  std::string name, title, from;
  MeasurementRule rule;  // of every row; `when` says which rows are of this source
  std::vector<MeasurementRule> rules;
};

// Memory over how many ranks share it: bytes for each parameter, from pairs of runs that differ in
// nothing else. `memory` as MemoryReading::of.
struct SlopeCheck {
  std::string name, memory, from;
  RowFilter when;
  double least = 0, most = 0;  // bytes a parameter
  // Columns that count devices too, besides gpus, dp and global_batch.
  std::vector<std::string> doubles;
};

struct MeasurementRules {
  std::string file;
  std::vector<std::string> text_columns;  // that only these rules know
  std::vector<std::string> required;      // columns without which a row cannot be planned
  std::vector<MeasurementRule> rules;
  std::vector<MeasurementSource> sources;
  std::vector<SlopeCheck> checks;
};

MeasurementRules ReadMeasurementRules(const std::string& path, Diagnostics& diagnostics);
MeasurementRules MeasurementRulesFromText(const std::string& text, const std::string& file,
                                          Diagnostics& diagnostics);

// What the rules make of a row.
struct RowScenario {
  Measurement filled;  // with what the rules put into blank cells
  std::string source;  // a name of the rules, or what stands before the id's first -
  std::string toml;    // the scenario's text; empty when skipped
  MemoryReading memory;
  std::string skip, skip_step, skip_memory;  // empty: judged
};
RowScenario ScenarioOf(const Measurement& measurement, const MeasurementRules& rules);

bool Matches(const RowFilter& when, const Measurement& measurement);

}  // namespace shardlab
