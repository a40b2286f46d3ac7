#include "io/results_compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/sweep_text.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Cell> All(const SweepRow& row) {
  std::vector<Cell> cells = {{"legal", row.legal ? 1 : 0}};
  if (!row.legal) cells.emplace_back("reason", row.reason);
  cells.insert(cells.end(), row.keys.begin(), row.keys.end());
  cells.insert(cells.end(), row.cells.begin(), row.cells.end());
  return cells;
}

Json Find(const std::vector<Cell>& cells, const std::string& name) {
  for (const auto& [other, value] : cells) {
    if (other == name) return value;
  }
  return nullptr;
}

// How far apart: relative for numbers, beyond any of those for all else; a value that is missing
// says the least.
double Change(const Json& a, const Json& b) {
  constexpr double kOther = 1e300;
  if (a.is_null() || b.is_null()) return -1;
  if (!a.is_number() || !b.is_number()) return kOther;
  const double from = a.get<double>(), to = b.get<double>();
  return from == 0 ? kOther : std::abs(to / from - 1);
}

std::string WordOf(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return WithThousands(value.get<std::int64_t>());
  if (value.is_number()) return Significant(value.get<double>(), 6);
  return value.dump();
}

std::string ChangeText(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number() || a.get<double>() <= 0) return "";
  const double percent = (b.get<double>() / a.get<double>() - 1) * 100;
  return absl::StrCat(percent > 0 ? "+" : "", Significant(percent, 3), " %");
}

void Note(const ColumnDifference& one, std::vector<ColumnDifference>* all) {
  for (ColumnDifference& known : *all) {
    if (known.column != one.column) continue;
    known.rows += one.rows;
    if (Change(one.a, one.b) > Change(known.a, known.b)) {
      known.a = one.a;
      known.b = one.b;
    }
    return;
  }
  all->push_back(one);
}

}  // namespace

std::vector<ColumnDifference> CompareRows(const SweepRow& a, const SweepRow& b) {
  const std::vector<Cell> of_a = All(a), of_b = All(b);
  std::vector<ColumnDifference> columns;
  for (const auto& [name, value] : of_a) {
    const Json other = Find(of_b, name);
    if (other != value) columns.push_back({name, 1, value, other});
  }
  for (const auto& [name, value] : of_b) {
    if (Find(of_a, name).is_null()) columns.push_back({name, 1, nullptr, value});
  }
  return columns;
}

SweepDifference CompareSweeps(const StoredSweep& a, const std::vector<SweepRow>& rows_a,
                              const StoredSweep& b, const std::vector<SweepRow>& rows_b) {
  std::vector<std::string> shared;
  for (const std::string& key : a.keys) {
    if (std::find(b.keys.begin(), b.keys.end(), key) != b.keys.end()) shared.push_back(key);
  }
  const auto name_of = [&](const SweepRow& row) {
    Json name = Json::array();
    for (const std::string& key : shared) name.push_back(CellOf(row, key));
    return name.dump();
  };
  std::map<std::string, std::vector<const SweepRow*>> of_b;
  for (const SweepRow& row : rows_b) of_b[name_of(row)].push_back(&row);
  SweepDifference difference;
  std::map<std::string, std::size_t> taken;
  for (const SweepRow& row : rows_a) {
    const std::string name = name_of(row);
    const auto found = of_b.find(name);
    std::size_t& next = taken[name];
    if (found == of_b.end() || next >= found->second.size()) {
      ++difference.only_a;
      continue;
    }
    const std::vector<ColumnDifference> columns = CompareRows(row, *found->second[next++]);
    ++(columns.empty() ? difference.same : difference.different);
    for (const ColumnDifference& one : columns) Note(one, &difference.columns);
  }
  difference.only_b =
      static_cast<std::int64_t>(rows_b.size()) - difference.same - difference.different;
  return difference;
}

std::string ColumnsText(const std::vector<ColumnDifference>& columns, bool counts) {
  std::vector<std::vector<std::string>> table = {
      {"", "A", "B", "B against A", counts ? "rows" : ""}};
  for (const ColumnDifference& one : columns)
    table.push_back({one.column, WordOf(one.a), WordOf(one.b), ChangeText(one.a, one.b),
                     counts ? WithThousands(one.rows) : ""});
  std::vector<std::size_t> widths(table.front().size());
  for (const auto& line : table) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : table) {
    std::string text = absl::StrCat("  ", line[0], std::string(widths[0] - line[0].size(), ' '));
    for (std::size_t i = 1; i < line.size(); ++i)
      absl::StrAppend(&text, "  ", std::string(widths[i] - line[i].size(), ' '), line[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, text, "\n");
  }
  return out;
}

Json ColumnsToJson(const std::vector<ColumnDifference>& columns, bool counts) {
  Json list = Json::array();
  for (const ColumnDifference& one : columns) {
    Json json = {{"column", one.column}, {"a", one.a}, {"b", one.b}};
    if (counts) json["rows"] = one.rows;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace shardlab
