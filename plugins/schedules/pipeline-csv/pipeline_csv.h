#pragma once
// An order read from a file: a schedule CSV of PyTorch, or one that `shardlab schedule --csv` wrote
// and somebody changed. Ranks, chunks and micro-batches are the file's.
//
//   [schedule]
//   plugin = "pipeline-csv"
//   order = "my-order.csv"
//   degree = 4

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/order_csv.h"

namespace shardlab::pipeline_csv {

class OrderOfFile final : public Schedule {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Text({"order", "the schedule CSV; relative to the scenario"}, &file_);
  }

  void Init(const InitContext& context) override {
    if (file_.empty()) return;  // a plan without a pipeline needs none
    const std::optional<std::string> text = context.read_user_text(file_);
    if (!text) return;
    read_ = ParseOrderCsv(*text, file_, context.diagnostics);
  }

  int DefaultChunks() const override { return read_ ? read_->shape.chunks : 1; }
  bool Pairs() const override { return true; }  // it may
  int Stages(const ScheduleShape& shape) const override {
    const bool mine =
        read_ && shape.ranks == read_->shape.ranks && shape.chunks == read_->shape.chunks;
    return mine ? read_->stages : shape.ranks * shape.chunks;
  }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    const auto slot = static_cast<std::size_t>(rank) * static_cast<std::size_t>(shape.chunks) +
                      static_cast<std::size_t>(chunk);
    return read_ && slot < read_->stage_of.size() ? read_->stage_of[slot]
                                                  : Schedule::StageOf(shape, rank, chunk);
  }

  std::string Refusal(const ScheduleShape& shape) const override {
    if (!read_ && file_.empty()) return "pipeline-csv needs a file: write order = \"FILE.csv\"";
    if (!read_) return absl::StrCat(file_, " holds no order that can be played");
    if (shape == read_->shape) return "";
    const char* remedy = shape.ranks != read_->shape.ranks     ? "set degree to its ranks"
                         : shape.chunks != read_->shape.chunks ? "set chunks to its chunks"
                                                               : "set global_batch_size so that "
                                                                 "it comes to its micro-batches";
    return absl::StrCat(file_, " has ", Text(read_->shape), "; the plan has ", Text(shape), ": ",
                        remedy, ", or read another order");
  }

  ScheduleOrder Order(const ScheduleShape&) const override { return read_->order; }

  std::string source() const override {
    return file_.empty() ? "a schedule CSV" : absl::StrCat("the schedule CSV ", file_);
  }

 private:
  static std::string Text(const ScheduleShape& s) {
    return absl::StrCat(s.ranks, " ranks, ", s.chunks, s.chunks == 1 ? " chunk" : " chunks",
                        " and ", s.micro_batches,
                        s.micro_batches == 1 ? " micro-batch" : " micro-batches");
  }

  std::string file_;
  std::optional<PlacedOrder> read_;
};

}  // namespace shardlab::pipeline_csv
