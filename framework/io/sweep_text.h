#pragma once
// Rows of a sweep for people and for spreadsheets, taken one at a time: a table of them is no
// larger for more rows.
//
//   SweepText text(summary, style);
//   text.Add(row);
//   out << text.Make();

#include <optional>
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

// The counts, a table of the first rows, and the fastest one that fits.
class SweepText final {
 public:
  SweepText(SweepSummary summary, const TextStyle& style);
  void Add(const SweepRow& row);
  std::string Make() const;

 private:
  std::string Line(std::size_t i, const std::vector<std::size_t>& widths) const;
  std::string Fastest() const;

  SweepSummary summary_;
  TextStyle style_;
  std::size_t rows_ = 0;
  std::vector<std::vector<std::string>> lines_;
  std::vector<std::string> reasons_;
  std::optional<SweepRow> best_;
};

// A line of names, then a line for each row; an absent value is empty.
class SweepCsv final {
 public:
  SweepCsv(std::vector<std::string> keys, const std::vector<std::string>& columns);
  std::string Head() const;
  std::string Line(const SweepRow& row);

 private:
  std::vector<std::string> names_;
  std::size_t keys_ = 0;
  // Where the values of a row with these names go.
  Cells::Names key_names_, cell_names_;
  std::vector<std::size_t> key_places_, cell_places_;
};

// "1,944 combinations: 1,200 illegal, 744 evaluated, of which 84 do not fit"
std::string CountsText(const SweepCounts& counts);

// The value of a row under a name, null where it has none.
nlohmann::ordered_json CellOf(const SweepRow& row, const std::string& name);

// For each key its last part, or all of it where two end alike.
std::vector<std::string> ShortNames(const std::vector<std::string>& keys);

}  // namespace shardlab
