#include "io/measurement.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/csv_table.h"

namespace shardlab {
namespace {

using Column = MeasurementColumn;

const char* Wanted(Column::Kind kind) {
  switch (kind) {
    case Column::kCount:
      return "a whole number from 1";
    case Column::kWhole:
      return "a whole number from 0";
    default:
      return "a number above 0";
  }
}

class Reader {
 public:
  Reader(const std::string& text, const std::string& file, const std::vector<std::string>& more,
         Diagnostics& diagnostics)
      : diagnostics_(diagnostics),
        columns_(MeasurementColumns()),
        table_(ParseCsv(text, file, diagnostics)) {
    for (const std::string& name : more)
      columns_.push_back({name.c_str(), Column::kText, false, "text that the rules read"});
  }

  std::vector<Measurement> Run() {
    if (table_.header.empty()) return {};
    CheckColumns();
    std::vector<Measurement> all;
    for (const CsvRow& row : table_.rows) {
      if (std::optional<Measurement> m = Row(row)) all.push_back(std::move(*m));
    }
    if (all.empty() && !diagnostics_.HasErrors()) {
      diagnostics_.Error("measurement.none", {table_.file, 1, 1, ""},
                         "the file has column names and no rows", "one line for each run");
    }
    return all;
  }

 private:
  void CheckColumns() {
    std::vector<std::string> names;
    for (const Column& column : columns_) names.emplace_back(column.name);
    for (const CsvCell& cell : table_.header) {
      known_.push_back(nullptr);
      for (const Column& column : columns_) {
        if (cell.text == column.name) known_.back() = &column;
      }
      if (known_.back() != nullptr || cell.text.empty()) continue;
      const std::string near = Nearest(cell.text, names);
      diagnostics_.Warning(
          "measurement.column", cell.place,
          absl::StrCat("nothing is known of a column ", cell.text, ": it is not used"),
          near.empty() ? "" : absl::StrCat("did you mean ", near, "?"));
    }
    const Place top{table_.file, table_.header[0].place.line, 1, ""};
    for (const Column& column : columns_) {
      if (!column.required || table_.Column(column.name) != CsvTable::kNoColumn) continue;
      diagnostics_.Error("measurement.column", top,
                         absl::StrCat("the column ", column.name, " is missing"),
                         absl::StrCat(column.name, ": ", column.about));
    }
    for (const char* measured : {"step_s", "tokens_per_s_per_gpu", "mem_gb"}) {
      if (table_.Column(measured) != CsvTable::kNoColumn) return;
    }
    diagnostics_.Error("measurement.column", top, "nothing is measured",
                       "one of the columns step_s, tokens_per_s_per_gpu and mem_gb is needed");
  }

  std::optional<Measurement> Row(const CsvRow& row) {
    Measurement m;
    m.place = {table_.file, row.line, 1, ""};
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const CsvCell& cell = row.cells[i];
      if (known_[i] == nullptr || cell.text.empty()) continue;
      if (known_[i]->kind != Column::kText && !ReadCell(cell.text, known_[i]->kind)) {
        diagnostics_.Error("measurement.number", cell.place,
                           absl::StrCat(known_[i]->name, " must be ", Wanted(known_[i]->kind),
                                        ", not \"", cell.text, "\""),
                           "leave the cell blank when it is not stated");
        continue;
      }
      m.cells[known_[i]->name] = cell.text;
    }
    m.id = m.Text("id");
    if (table_.Column("id") == CsvTable::kNoColumn) return m;
    if (m.id.empty()) {
      diagnostics_.Error("measurement.id", m.place, "the row has no id", "any name of its own");
      return std::nullopt;
    }
    const auto [first, fresh] = ids_.emplace(m.id, m.place);
    if (!fresh) {
      diagnostics_.Error(
          "measurement.id", m.place,
          absl::StrCat("the id ", m.id, " is that of line ", first->second.line, " too"),
          "any name of its own");
      return std::nullopt;
    }
    return m;
  }

  Diagnostics& diagnostics_;
  std::vector<Column> columns_;
  const CsvTable table_;
  std::vector<const Column*> known_;  // for each column of the file
  std::map<std::string, Place> ids_;
};

}  // namespace

const std::vector<MeasurementColumn>& MeasurementColumns() {
  static const std::vector<Column> columns = {
      {"id", Column::kText, true,
       "the row's own name; what stands before its first - is matched "
       "by the rules"},
      {"source", Column::kText, false, "who published it"},
      {"source_ref", Column::kText, false, "where in it"},
      {"model", Column::kText, false, "as the source calls it"},
      {"params_b", Column::kPositive, false, "parameters in 10^9, as the source says"},
      {"layers", Column::kCount, true, "transformer blocks"},
      {"hidden", Column::kCount, true, "width of the residual stream"},
      {"heads", Column::kCount, true, "query heads"},
      {"kv_heads", Column::kCount, false, "key/value heads; heads when blank"},
      {"ffn", Column::kCount, false, "inner width of the MLP"},
      {"vocab", Column::kCount, false, "rows of the embedding"},
      {"seq", Column::kCount, true, "tokens of a sequence"},
      {"experts", Column::kCount, false, "routed experts of a layer"},
      {"topk", Column::kCount, false, "routed experts of a token"},
      {"moe_ffn", Column::kCount, false, "inner width of an expert"},
      {"hardware", Column::kText, false, "device"},
      {"gpus", Column::kCount, true, "devices of the run"},
      {"gpus_per_node", Column::kCount, false, "devices of a server"},
      {"tp", Column::kCount, false, "tensor degree"},
      {"pp", Column::kCount, false, "pipeline degree"},
      {"vpp", Column::kCount, false, "model chunks of a pipeline rank"},
      {"cp", Column::kCount, false, "context degree"},
      {"ep", Column::kCount, false, "expert degree"},
      {"dp", Column::kCount, false, "replicas: gpus / (tp pp cp)"},
      {"zero_stage", Column::kWhole, false,
       "0 none, 1 optimizer state, 2 and gradients, 3 and weights"},
      {"sequence_parallel", Column::kText, false, "yes or no"},
      {"micro_batch", Column::kCount, true, "sequences of a micro-batch"},
      {"global_batch", Column::kCount, true, "sequences of a step"},
      {"precision", Column::kText, false, "as the source says"},
      {"recompute", Column::kText, false, "none, selective, full or a list of modules"},
      {"flash_attention", Column::kText, false, "yes or no"},
      {"step_s", Column::kPositive, false, "seconds of a step"},
      {"tokens_per_s_per_gpu", Column::kPositive, false, "tokens a second and device"},
      {"tflops_per_gpu", Column::kPositive, false, "10^12 FLOP/s of a device, as counted there"},
      {"mfu", Column::kPositive, false, "fraction, as counted there"},
      {"mem_gb", Column::kPositive, false, "memory in the unit of mem_unit"},
      {"resident_gb", Column::kPositive, false, "memory between steps in the unit of mem_unit"},
      {"oom", Column::kWhole, false, "1: ran out of memory"},
      {"notes", Column::kText, false, "what else is stated"},
      {"from_memory", Column::kWhole, false, "1: some value was not read in a source"},
      {"flops_formula", Column::kText, false, "how the source counts FLOPs"},
      {"mem_unit", Column::kText, false, "GiB or GB, with remarks"},
      {"mem_kind", Column::kText, false, "what was read, on which rank"},
  };
  return columns;
}

const std::string& Measurement::Text(const std::string& column) const {
  static const std::string blank;
  const auto found = cells.find(column);
  return found == cells.end() ? blank : found->second;
}

std::optional<double> Measurement::Number(const std::string& column) const {
  return ReadCell(Text(column), Column::kWhole) ? ReadCell(Text(column), Column::kWhole)
                                                : ReadCell(Text(column), Column::kPositive);
}

std::optional<double> ReadCell(std::string_view text, MeasurementColumn::Kind kind) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0 || value > 1e18) return std::nullopt;
  const bool whole = value == std::floor(value);
  const double least = kind == Column::kWhole ? 0 : kind == Column::kCount ? 1 : 1e-300;
  if (value < least || (kind != Column::kPositive && !whole)) return std::nullopt;
  return value;
}

std::vector<Measurement> ReadMeasurements(const std::string& text, const std::string& file,
                                          const std::vector<std::string>& more,
                                          Diagnostics& diagnostics) {
  return Reader(text, file, more, diagnostics).Run();
}

}  // namespace shardlab
