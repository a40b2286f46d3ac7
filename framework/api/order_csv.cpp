#include "api/order_csv.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text.h"

namespace shardlab {
namespace {

constexpr int kMost = 1 << 20;
constexpr std::array<const char*, 7> kCommunication = {
    "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
constexpr std::array<WorkKind, 4> kKinds = {WorkKind::kF, WorkKind::kI, WorkKind::kW, WorkKind::kB};

struct Cell {
  int stage = 0, micro_batch = 0;
  std::optional<WorkKind> kind;  // none: communication
};

std::optional<int> Number(absl::string_view digits) {
  int number = 0;
  if (digits.empty() || !absl::SimpleAtoi(digits, &number) || number < 0 || number > kMost)
    return std::nullopt;
  return number;
}

std::optional<Cell> ParseCell(absl::string_view text) {
  const auto digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  std::size_t op = 0, after = text.size();
  while (op < text.size() && digit(text[op])) ++op;
  while (after > op && digit(text[after - 1])) --after;
  const absl::string_view name = text.substr(op, after - op);
  const std::optional<int> stage = Number(text.substr(0, op));
  const std::optional<int> micro_batch = Number(text.substr(after));
  if (!stage) return std::nullopt;
  Cell cell{*stage, micro_batch.value_or(0), std::nullopt};
  for (const char* communication : kCommunication) {
    if (name == communication) return cell;
  }
  for (const WorkKind kind : kKinds) {
    if (name == Name(kind)) cell.kind = kind;
  }
  if (!cell.kind || !micro_batch) return std::nullopt;
  return cell;
}

class Reader {
 public:
  absl::StatusOr<PlacedOrder> Read(std::string_view text) {
    std::vector<absl::string_view> lines =
        absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
    while (!lines.empty() && absl::StripAsciiWhitespace(lines.back()).empty()) lines.pop_back();
    for (std::size_t row = 0; row < lines.size(); ++row) {
      if (absl::Status status = Row(row, lines[row]); !status.ok()) return status;
    }
    if (rows_.empty()) return absl::InvalidArgumentError("there are no rows");
    if (absl::Status status = Place(); !status.ok()) return status;
    return std::move(out_);
  }

 private:
  using Item = std::pair<Cell, std::optional<Cell>>;  // the second: the B of a pair

  absl::Status Row(std::size_t row, absl::string_view line) {
    rows_.emplace_back();
    const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const absl::string_view cell = absl::StripAsciiWhitespace(cells[i]);
      if (cell.empty()) continue;
      const std::optional<Item> item = ParseItem(cell);
      if (!item) {
        return absl::InvalidArgumentError(absl::StrCat(
            "row ", row + 1, ", cell ", i + 1, ": \"", absl::CHexEscape(cell.substr(0, 40)),
            "\" is no op; write stage, F, I, W or B, and micro-batch, like 2F0, or a pair "
            "(2F4;5B1)OVERLAP_F_B"));
      }
      if (!item->first.kind) continue;
      rows_.back().push_back(*item);
      cells_ += item->second ? 2 : 1;
    }
    return absl::OkStatus();
  }

  static std::optional<Item> ParseItem(absl::string_view text) {
    if (!absl::ConsumePrefix(&text, "(")) {
      const std::optional<Cell> cell = ParseCell(text);
      return cell ? std::optional<Item>({*cell, std::nullopt}) : std::nullopt;
    }
    if (!absl::ConsumeSuffix(&text, ")OVERLAP_F_B")) return std::nullopt;
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ';');
    if (parts.size() != 2) return std::nullopt;
    const std::optional<Cell> f = ParseCell(parts[0]), b = ParseCell(parts[1]);
    if (!f || !b || f->kind != WorkKind::kF || b->kind != WorkKind::kB) return std::nullopt;
    return Item{*f, *b};
  }

  absl::Status Place() {
    std::vector<std::set<int>> stages(rows_.size());
    int stage = 0, micro_batch = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto see = [&](const Cell& cell) {
        stages[r].insert(cell.stage);
        stage = std::max(stage, cell.stage);
        micro_batch = std::max(micro_batch, cell.micro_batch);
      };
      for (const Item& item : rows_[r]) {
        see(item.first);
        if (item.second) see(*item.second);
      }
      if (stages[r].size() == stages[0].size() && !stages[r].empty()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("row ", r + 1, " has ops of ", stages[r].size(), " stages and row 1 of ",
                       stages[0].size(), ": each rank holds as many"));
    }
    // Each stage owes a forward and a backward of each micro-batch.
    if (2LL * (stage + 1) * (micro_batch + 1) > cells_) {
      return absl::InvalidArgumentError(absl::StrCat(cells_, " ops are too few for ", stage + 1,
                                                     " stages and ", micro_batch + 1,
                                                     " micro-batches"));
    }
    out_.shape = {static_cast<int>(rows_.size()), static_cast<int>(stages[0].size()),
                  micro_batch + 1};
    out_.stages = stage + 1;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::vector<int> own(stages[r].begin(), stages[r].end());
      out_.stage_of.insert(out_.stage_of.end(), own.begin(), own.end());
      const auto work = [&own](const Cell& cell) {
        const auto chunk = std::find(own.begin(), own.end(), cell.stage) - own.begin();
        return Work{*cell.kind, static_cast<std::int16_t>(chunk), cell.micro_batch};
      };
      out_.order.emplace_back();
      for (const Item& item : rows_[r]) {
        out_.order.back().push_back(item.second ? Work::Pair(work(item.first), work(*item.second))
                                                : work(item.first));
      }
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<Item>> rows_;
  long long cells_ = 0;
  PlacedOrder out_;
};

}  // namespace

absl::StatusOr<PlacedOrder> ParseOrderCsv(std::string_view text) { return Reader().Read(text); }

std::string OrderToCsv(const ScheduleOrder& order, const std::vector<int>& stage_of) {
  const std::size_t chunks = order.empty() ? 0 : stage_of.size() / order.size();
  std::string out;
  for (std::size_t r = 0; r < order.size(); ++r) {
    const auto cell = [&](const Work& w) {
      return absl::StrCat(stage_of[r * chunks + static_cast<std::size_t>(w.chunk)], Name(w.kind),
                          w.micro_batch);
    };
    absl::StrAppend(&out,
                    absl::StrJoin(order[r], ",",
                                  [&](std::string* to, const Work& w) {
                                    absl::StrAppend(
                                        to, w.kind != WorkKind::kFB
                                                ? cell(w)
                                                : absl::StrCat("(", cell(w.Forward()), ";",
                                                               cell(w.Backward()), ")OVERLAP_F_B"));
                                  }),
                    "\n");
  }
  return out;
}

}  // namespace shardlab
