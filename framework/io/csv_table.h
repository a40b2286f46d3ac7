#pragma once
// Comma-separated text (RFC 4180) as cells that know where they stand: quoted cells with commas,
// doubled quotes and line ends inside, lines that end in LF or CRLF, a byte-order mark before the
// first name. What is no table is told, every mistake at once: a quote that never closes, text
// after a closing quote, a line with more or fewer cells than the header, a column named twice.
//
//   CsvTable table = ParseCsv(text, "runs.csv", diagnostics);
//   for (const CsvRow& row : table.rows) use(row.cells[table.Column("gpus")].text);

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"

namespace shardlab {

struct CsvCell {
  std::string text;  // without quotes, blanks around it removed
  Place place;       // key: the column's name
};

struct CsvRow {
  int line = 0;
  std::vector<CsvCell> cells;  // as many as the header has
};

struct CsvTable {
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  std::string file;
  std::vector<CsvCell> header;
  std::vector<CsvRow> rows;  // those that could be read
  std::size_t Column(std::string_view name) const;
};

CsvTable ParseCsv(const std::string& text, const std::string& file, Diagnostics& diagnostics);

}  // namespace shardlab
