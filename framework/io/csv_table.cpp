#include "io/csv_table.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {
namespace {

std::string Trimmed(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(AbslSv(text)));
}

class Parser {
 public:
  Parser(const std::string& text, const std::string& file, Diagnostics& diagnostics)
      : text_(text), file_(file), diagnostics_(diagnostics) {
    if (text_.compare(0, 3, "\xef\xbb\xbf") == 0) at_ = counted_ = 3;
  }

  CsvTable Run() {
    table_.file = file_;
    while (at_ < text_.size()) {
      CsvRow row = Line();
      const bool blank = row.cells.size() == 1 && row.cells[0].text.empty();
      if (blank) continue;
      if (table_.header.empty()) {
        Header(std::move(row));
      } else {
        Body(std::move(row));
      }
    }
    if (table_.header.empty()) {
      diagnostics_.Error("csv.empty", {file_, 1, 1, ""}, "the file has no line of column names",
                         "the first line names the columns: id,gpus,...");
    }
    return std::move(table_);
  }

 private:
  // In characters, counted on from the last time that it was asked for on this line.
  int ColumnNow() {
    for (; counted_ < at_; ++counted_) {
      if ((static_cast<unsigned char>(text_[counted_]) & 0xC0) != 0x80) ++column_;
    }
    return column_;
  }
  void StartLine() {
    ++line_;
    counted_ = at_;
    column_ = 1;
  }
  bool AtEnd() const { return at_ >= text_.size(); }
  bool AtLineEnd() const {
    return AtEnd() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }
  void NextLine() {
    if (!AtEnd() && text_[at_] == '\r') ++at_;
    if (!AtEnd() && text_[at_] == '\n') ++at_;
    StartLine();
  }

  CsvRow Line() {
    CsvRow row;
    row.line = line_;
    for (;;) {
      row.cells.push_back(Cell());
      if (!AtEnd() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      NextLine();
      return row;
    }
  }

  CsvCell Cell() {
    CsvCell cell;
    cell.place = {file_, line_, ColumnNow(), ""};
    std::size_t look = at_;
    while (look < text_.size() && text_[look] == ' ') ++look;
    if (look < text_.size() && text_[look] == '"') {
      at_ = look;
      Quoted(cell);
    } else {
      while (!AtLineEnd() && text_[at_] != ',') cell.text += text_[at_++];
      cell.text = Trimmed(cell.text);
    }
    return cell;
  }

  void Quoted(CsvCell& cell) {
    cell.place.column = ColumnNow();
    ++at_;
    for (;;) {
      if (AtEnd()) {
        diagnostics_.Error("csv.quote", cell.place, "a quote opens here and never closes",
                           "write \"\" for a quote inside a quoted cell");
        return;
      }
      const char c = text_[at_++];
      if (c == '"') {
        if (AtEnd() || text_[at_] != '"') break;
        ++at_;
      }
      if (c == '\n') StartLine();
      cell.text += c;
    }
    cell.text = Trimmed(cell.text);
    const Place after{file_, line_, ColumnNow(), ""};
    std::string rest;
    while (!AtLineEnd() && text_[at_] != ',') rest += text_[at_++];
    if (!Trimmed(rest).empty()) {
      diagnostics_.Error("csv.quote", after, "text follows the closing quote of a cell",
                         "quote the whole cell, with \"\" for each quote inside");
    }
  }

  void Header(CsvRow row) {
    std::map<std::string, Place> seen;
    for (CsvCell& cell : row.cells) {
      cell.place.key = cell.text;
      const auto [first, fresh] = seen.emplace(cell.text, cell.place);
      if (cell.text.empty()) {
        diagnostics_.Error("csv.column", cell.place, "a column has no name");
      } else if (!fresh) {
        Diagnostic twice{Severity::kError,
                         "csv.column",
                         absl::StrCat("the column ", cell.text, " is there twice"),
                         cell.place,
                         "keep one of them",
                         {}};
        twice.other_places.push_back(first->second);
        diagnostics_.Add(std::move(twice));
      }
    }
    table_.header = std::move(row.cells);
  }

  void Body(CsvRow row) {
    if (row.cells.size() != table_.header.size()) {
      diagnostics_.Error(
          "csv.cells", {file_, row.line, 1, ""},
          absl::StrCat("the line has ", row.cells.size(), " cells, the header ",
                       table_.header.size()),
          "one cell for each column, blank for what is not stated; quote a cell that has a comma");
      return;
    }
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      row.cells[i].place.key = table_.header[i].text;
    table_.rows.push_back(std::move(row));
  }

  const std::string& text_;
  const std::string file_;
  Diagnostics& diagnostics_;
  CsvTable table_;
  std::size_t at_ = 0, counted_ = 0;
  int line_ = 1, column_ = 1;
};

}  // namespace

std::size_t CsvTable::Column(std::string_view name) const {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i].text == name) return i;
  }
  return kNoColumn;
}

CsvTable ParseCsv(const std::string& text, const std::string& file, Diagnostics& diagnostics) {
  return Parser(text, file, diagnostics).Run();
}

}  // namespace shardlab
