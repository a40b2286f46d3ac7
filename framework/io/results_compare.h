#pragma once
// Two stored sweeps, or two of their rows, side by side: what differs.
//
//   out << CompareSweepsText(a, rows_a, b, rows_b);

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/sweep_store.h"

namespace shardlab {

// A column in which rows differ; `a` and `b` are of the row with the greatest change.
struct ColumnDifference {
  std::string column;
  std::int64_t rows = 0;
  nlohmann::ordered_json a, b;  // null where a row has no value
};

struct SweepDifference {
  std::int64_t only_a = 0, only_b = 0;  // rows whose keys the other sweep has not
  std::int64_t same = 0, different = 0;
  std::vector<ColumnDifference> columns;
};

// Rows are matched by the keys that both sweeps vary; those of one key more than once (the other
// sweep varies less) are matched in order.
SweepDifference CompareSweeps(const StoredSweep& a, const std::vector<SweepRow>& rows_a,
                              const StoredSweep& b, const std::vector<SweepRow>& rows_b);
// Of two rows.
std::vector<ColumnDifference> CompareRows(const SweepRow& a, const SweepRow& b);

std::string ColumnsText(const std::vector<ColumnDifference>& columns, bool counts);
nlohmann::ordered_json ColumnsToJson(const std::vector<ColumnDifference>& columns, bool counts);

}  // namespace shardlab
