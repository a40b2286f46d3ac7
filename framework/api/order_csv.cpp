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
#include "api/order_fault.h"

namespace shardlab {
namespace {

constexpr int kMost = 1 << 20;              // of a stage or micro-batch
constexpr std::size_t kMostChunks = 32767;  // Work counts them so
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

// Cells of one text, and where they stand in it.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file, Diagnostics* diagnostics)
      : text_(text.data(), text.size()), file_(file), diagnostics_(*diagnostics) {
    absl::ConsumePrefix(&text_, "\xEF\xBB\xBF");  // as some editors begin a file
  }

  std::optional<PlacedOrder> Read() {
    lines_ = absl::StrSplit(text_, '\n');
    while (!lines_.empty() && absl::StripAsciiWhitespace(lines_.back()).empty()) lines_.pop_back();
    if (lines_.empty()) {
      diagnostics_.Error("schedule.csv", {file_, 0, 0, ""}, "there are no rows",
                         "a row for each pipeline rank, like 0F0,0F1,0B0,0B1");
      return std::nullopt;
    }
    for (std::size_t row = 0; row < lines_.size() && unreadable_ < kMostUnreadable; ++row) Row(row);
    if (unreadable_ > 0) return std::nullopt;
    if (const std::optional<OrderFault> fault = FindOrderFault(cells_)) {
      Diagnostic diagnostic;
      diagnostic.code = "schedule.order";
      diagnostic.message = absl::StrCat("an impossible order: ", fault->message);
      diagnostic.hint = fault->hint;
      diagnostic.place = PlaceOf(fault->at);
      if (fault->other) diagnostic.other_places.push_back(PlaceOf(*fault->other));
      diagnostics_.Add(std::move(diagnostic));
      return std::nullopt;
    }
    return Placed();
  }

 private:
  static constexpr int kMostUnreadable = 20;  // told of one file

  void Row(std::size_t row) {
    cells_.emplace_back();
    begins_.emplace_back();
    std::size_t begin = 0;
    for (const absl::string_view field : absl::StrSplit(lines_[row], ',')) {
      const absl::string_view cell = absl::StripAsciiWhitespace(field);
      const auto at = begin + static_cast<std::size_t>(cell.data() - field.data());
      begin += field.size() + 1;
      if (cell.empty() || ReadItem(cell, at)) continue;
      diagnostics_.Error(
          "schedule.csv", PlaceAt(row, at),
          absl::StrCat("\"", absl::Utf8SafeCHexEscape(cell.substr(0, 40)), "\" is no op"),
          "write stage, F, I, W or B, and micro-batch, like 2F0, or a pair "
          "(2F4;5B1)OVERLAP_F_B");
      if (++unreadable_ == kMostUnreadable) return;
    }
  }

  // A cell of the last row, `at` bytes from the row's begin; false when it is no op.
  bool ReadItem(absl::string_view text, std::size_t at) {
    if (!absl::ConsumePrefix(&text, "(")) {
      const std::optional<Cell> cell = ParseCell(text);
      if (cell && cell->kind) Add(*cell, at, false);
      return cell.has_value();
    }
    if (!absl::ConsumeSuffix(&text, ")OVERLAP_F_B")) return false;
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ';');
    if (parts.size() != 2) return false;
    const std::optional<Cell> f = ParseCell(parts[0]), b = ParseCell(parts[1]);
    if (!f || !b || f->kind != WorkKind::kF || b->kind != WorkKind::kB) return false;
    Add(*f, at + 1, true);
    Add(*b, at + 2 + parts[0].size(), false);
    return true;
  }

  void Add(const Cell& cell, std::size_t at, bool with_next) {
    cells_.back().push_back({cell.stage, *cell.kind, cell.micro_batch, with_next});
    begins_.back().push_back(static_cast<std::uint32_t>(at));
  }

  // Columns are characters, not bytes.
  Place PlaceAt(std::size_t row, std::size_t byte) const {
    const absl::string_view before = lines_[row].substr(0, byte);
    const auto characters = std::count_if(before.begin(), before.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    return {file_, static_cast<int>(row) + 1, static_cast<int>(characters) + 1, ""};
  }

  Place PlaceOf(OrderPosition at) const {
    const auto row = static_cast<std::size_t>(at.rank), index = static_cast<std::size_t>(at.index);
    return PlaceAt(row, index < begins_[row].size()
                            ? begins_[row][index]
                            : absl::StripTrailingAsciiWhitespace(lines_[row]).size());
  }

  // What was found possible; nothing where a rank holds more stages than the framework counts.
  std::optional<PlacedOrder> Placed() {
    PlacedOrder out;
    out.order.resize(cells_.size());
    for (std::size_t r = 0; r < cells_.size(); ++r) {
      std::set<int> stages;
      for (const OrderCell& cell : cells_[r]) stages.insert(cell.stage);
      const std::vector<int> own(stages.begin(), stages.end());
      if (own.size() > kMostChunks) {
        diagnostics_.Error("schedule.csv", PlaceAt(r, 0),
                           absl::StrCat("rank ", r, " holds ", own.size(), " stages"),
                           absl::StrCat("at most ", kMostChunks));
        return std::nullopt;
      }
      out.shape = {static_cast<int>(cells_.size()), static_cast<int>(own.size()),
                   out.shape.micro_batches};
      out.stage_of.insert(out.stage_of.end(), own.begin(), own.end());
      out.stages = std::max(out.stages, own.back() + 1);
      const auto work = [&](const OrderCell& cell) {
        const auto chunk = std::lower_bound(own.begin(), own.end(), cell.stage) - own.begin();
        out.shape.micro_batches = std::max(out.shape.micro_batches, cell.micro_batch + 1);
        return Work{cell.kind, static_cast<std::int16_t>(chunk), cell.micro_batch};
      };
      for (std::size_t i = 0; i < cells_[r].size(); ++i) {
        const Work first = work(cells_[r][i]);
        out.order[r].push_back(cells_[r][i].with_next ? Work::Pair(first, work(cells_[r][++i]))
                                                      : first);
      }
    }
    return out;
  }

  absl::string_view text_;
  std::string file_;
  Diagnostics& diagnostics_;
  std::vector<absl::string_view> lines_;
  std::vector<std::vector<OrderCell>> cells_;       // [row]
  std::vector<std::vector<std::uint32_t>> begins_;  // [row][cell] bytes from the row's begin
  int unreadable_ = 0;
};

}  // namespace

std::optional<PlacedOrder> ParseOrderCsv(std::string_view text, const std::string& file,
                                         Diagnostics* diagnostics) {
  return Reader(text, file, diagnostics).Read();
}

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
