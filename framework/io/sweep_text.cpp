#include "io/sweep_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

std::string Shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? ShortNumber(value.get<double>()) : value.dump();
}

double NumberOf(const SweepRow& row, const std::string& name) {
  const Json value = CellOf(row, name);
  return value.is_number() ? value.get<double>() : 0;
}

// What every row shows beside its keys.
std::vector<std::string> Results(const SweepRow& row) {
  std::string verdict = Shown(CellOf(row, "memory.verdict"));
  std::replace(verdict.begin(), verdict.end(), '_', ' ');
  return {verdict, FormatBytes(NumberOf(row, "memory.peak_bytes")),
          FormatSeconds(NumberOf(row, "time.step_seconds")),
          absl::StrCat(Significant(100 * NumberOf(row, "throughput.mfu"), 3), " %"),
          WithThousands(std::llround(NumberOf(row, "throughput.tokens_per_second_per_device")))};
}

// Of each name of a row its place among all; npos for one that is not among them.
std::vector<std::size_t> PlacesOf(const Cells::NameList& names, const std::vector<std::string>& all,
                                  std::size_t begin, std::size_t end) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(begin),
               to = all.begin() + static_cast<std::ptrdiff_t>(end);
    const auto at = std::find(from, to, name);
    places.push_back(at == to ? std::string::npos : static_cast<std::size_t>(at - all.begin()));
  }
  return places;
}

}  // namespace

Json CellOf(const SweepRow& row, const std::string& name) {
  for (const auto* cells : {&row.cells, &row.keys}) {
    for (const auto& [key, value] : *cells) {
      if (key == name) return value;
    }
  }
  return nullptr;
}

std::vector<std::string> ShortNames(const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  for (const std::string& key : keys) {
    const std::size_t dot = key.rfind('.');
    names.push_back(dot == std::string::npos ? key : key.substr(dot + 1));
    ++uses[names.back()];
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (uses[names[i]] == 1 && names[i] != "degree") continue;
    names[i] = keys[i];
    if (names[i].rfind("strategy.", 0) == 0) names[i] = names[i].substr(9);
  }
  return names;
}

std::string CountsText(const SweepCounts& c) {
  std::vector<std::string> parts;
  const auto part = [&](std::int64_t n, const char* what) {
    if (n > 0) parts.push_back(absl::StrCat(WithThousands(n), " ", what));
  };
  part(c.illegal, "illegal");
  part(c.pruned, "ruled out");
  parts.push_back(absl::StrCat(WithThousands(c.evaluated), " evaluated"));
  std::string text = absl::StrCat(
      WithThousands(c.considered),
      c.considered == 1 ? " combination: " : " combinations: ", absl::StrJoin(parts, ", "));
  if (c.not_fitting > 0)
    absl::StrAppend(&text, ", of which ", WithThousands(c.not_fitting), " do not fit");
  if (c.filtered > 0)
    absl::StrAppend(&text, "; ", WithThousands(c.filtered), " not kept by the filter");
  return text;
}

SweepText::SweepText(SweepSummary summary, const TextStyle& style)
    : summary_(std::move(summary)), style_(style) {
  lines_.push_back(ShortNames(summary_.keys));
  for (const char* name : {"verdict", "peak", "step", "MFU", "tokens/s/device"})
    lines_.back().push_back(name);
  reasons_.push_back("");
}

void SweepText::Add(const SweepRow& row) {
  if (rows_++ < summary_.most_rows) {
    std::vector<std::string> line;
    for (const std::string& key : summary_.keys) line.push_back(Shown(CellOf(row, key)));
    if (row.legal) {
      for (std::string& result : Results(row)) line.push_back(std::move(result));
    }
    lines_.push_back(std::move(line));
    reasons_.push_back(row.legal ? "" : absl::StrCat("illegal: ", row.reason));
  }
  if (!row.legal || CellOf(row, "memory.fits") != true) return;
  if (!best_ || NumberOf(row, "throughput.tokens_per_second_per_device") >
                    NumberOf(*best_, "throughput.tokens_per_second_per_device"))
    best_ = row;
}

std::string SweepText::Make() const {
  std::string out =
      absl::StrCat(style_.Bold(summary_.name), "\n", CountsText(summary_.counts), "\n");
  if (rows_ == 0) return out;
  std::vector<std::size_t> widths(lines_[0].size(), 0);
  for (const auto& line : lines_) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  out += "\n";
  for (std::size_t i = 0; i < lines_.size(); ++i) out += Line(i, widths);
  const std::size_t shown = lines_.size() - 1;
  if (shown < rows_) {
    absl::StrAppend(
        &out,
        style_.Dim(absl::StrCat("  (", WithThousands(static_cast<long long>(rows_ - shown)),
                                " more rows; --format csv has all)")),
        "\n");
  }
  return out + Fastest();
}

std::string SweepText::Line(std::size_t i, const std::vector<std::size_t>& widths) const {
  std::string out;
  for (std::size_t c = 0; c < lines_[i].size(); ++c) {
    const std::string pad(widths[c] - lines_[i][c].size() + 2, ' ');
    out += pad + lines_[i][c];
  }
  if (!reasons_[i].empty()) {
    const std::size_t room = std::max<std::size_t>(
        24, static_cast<std::size_t>(style_.width) - std::min<std::size_t>(out.size() + 2, 60));
    std::string reason = reasons_[i];
    if (reason.size() > room) reason = reason.substr(0, room - 3) + "...";
    out += "  " + style_.Dim(reason);
  }
  return (i == 0 ? style_.Bold(out) : out) + "\n";
}

std::string SweepText::Fastest() const {
  if (!best_) return "\nno combination fits\n";
  std::vector<std::string> sets;
  for (const auto& [key, value] : best_->keys)
    sets.push_back(absl::StrCat("--set ", key, "=", Shown(value)));
  return absl::StrCat(
      "\n", Wrapped(absl::StrCat("most tokens/s per device that fits: ", absl::StrJoin(sets, " ")),
                    2, static_cast<std::size_t>(std::max(60, style_.width))));
}

SweepCsv::SweepCsv(std::vector<std::string> keys, const std::vector<std::string>& columns)
    : names_(std::move(keys)), keys_(names_.size()) {
  names_.insert(names_.end(), columns.begin(), columns.end());
}

std::string SweepCsv::Head() const {
  std::string out = "combination,legal,reason";
  for (const std::string& name : names_) absl::StrAppend(&out, ",", CsvField(name));
  return out + "\n";
}

std::string SweepCsv::Line(const SweepRow& row) {
  if (key_names_ != row.keys.shared_names()) {
    key_names_ = row.keys.shared_names();
    key_places_ = PlacesOf(*key_names_, names_, 0, keys_);
  }
  if (cell_names_ != row.cells.shared_names()) {
    cell_names_ = row.cells.shared_names();
    cell_places_ = PlacesOf(*cell_names_, names_, keys_, names_.size());
  }
  std::vector<const Json*> values(names_.size(), nullptr);
  const auto put = [&](const Cells& cells, const std::vector<std::size_t>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] != std::string::npos) values[places[i]] = &cells.values()[i];
    }
  };
  put(row.keys, key_places_);
  put(row.cells, cell_places_);
  std::string out =
      absl::StrCat(row.combination, ",", row.legal ? 1 : 0, ",", CsvField(row.reason));
  for (const Json* value : values)
    absl::StrAppend(&out, ",", value != nullptr ? CsvField(*value) : "");
  return out + "\n";
}

}  // namespace shardlab
