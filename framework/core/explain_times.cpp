#include "core/explain_times.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {

const char* ExplainTimes::Part(Bucket bucket) {
  switch (bucket) {
    case Bucket::kForward:
      return "forward";
    case Bucket::kReplay:
      return "recompute";
    default:
      return "backward";
  }
}

std::vector<TimeEntry> ExplainTimes::Of(int rank, double optimizer) {
  for (const OpRow& row : c_.form.ops) {
    const double n = LayersOnRank(rank, row.layer_class);
    if (n == 0) continue;
    const OpShape shape = ShapeOf(c_, c_.form.op_prices[row.price], w_);
    TimeEntry entry;
    entry.part = Part(row.bucket);
    entry.author = row.bucket == Bucket::kReplay ? RecomputeAuthor(row.layer_class) : Author(-1);
    entry.row =
        row.cast ? CastName(row)
                 : absl::StrCat(program_.op(row.op).name,
                                row.bucket == Bucket::kWeightGradient ? " (weight gradient)" : "");
    entry.seconds = Passes() * n * c_.hardware->OpTime(shape).value();
    entry.formula = absl::StrCat(Passes(), " micro-batches x ", ShortNumber(n), " layers x (",
                                 Significant(shape.flops / 1e9, 4), " GFLOP, ",
                                 Significant(shape.bytes / 1e6, 4), " MB)");
    times_.push_back(std::move(entry));
  }
  for (std::size_t k = 0; k < c_.form.classes.size(); ++k) {
    Waits(rank, k, "forward", w_.costs[k].wait_forward, w_.costs[k].calls_forward);
    Waits(rank, k, "backward", w_.costs[k].wait_backward, w_.costs[k].calls_backward);
    Waits(rank, k, "backward", w_.costs[k].wait_weight, c_.form.classes[k].calls_weight);
  }
  const RankMemory& memory = w_.memory[Size(rank)];
  for (const UpdateRow& row : c_.form.updates) {
    const double n = LayersOnRank(rank, row.layer_class);
    if (n == 0) continue;
    TimeEntry entry;
    entry.part = "optimizer";
    if (row.cast) {
      entry.author = absl::StrCat("precision ", c_.precision.recipe);
      entry.row = absl::StrCat(program_.tensor(row.tensor).name, " to ", Name(c_.precision.compute),
                               ", once a step");
      entry.formula = absl::StrCat(LayersText(n), Significant(w_.blocks[row.rows] / 1e6, 4),
                                   " MB read and written");
      entry.seconds = n * UpdateSeconds(c_, row, w_);
      times_.push_back(std::move(entry));
      continue;
    }
    entry.author = c_.optimizer_name;
    entry.row = absl::StrCat(program_.tensor(row.tensor).name, " as matrices");
    entry.formula = absl::StrCat(
        LayersText(n), ShortNumber(w_.blocks[row.matrices]), " x ",
        ShortNumber(w_.blocks[row.rows]), " x ", ShortNumber(w_.blocks[row.columns]), " (",
        Significant(
            c_.optimizer->FlopsOfMatrix(row.kind, w_.blocks[row.rows], w_.blocks[row.columns]) /
                1e9,
            4),
        " GFLOP each)");
    entry.seconds = n * UpdateSeconds(c_, row, w_);
    times_.push_back(std::move(entry));
  }
  const double host =
      c_.rules.count_optimizer_time && memory.host > 0 ? HostOptimizerSeconds(c_, memory) : 0;
  if (host > 0) {
    times_.push_back(
        {"optimizer", c_.optimizer_name, "update on the host",
         absl::StrCat("state read and written, gradient read, weight written "
                      "once, at ",
                      ShortNumber(c_.hardware->machine().host_memory_bandwidth.value()), " B/s"),
         host});
  }
  const double streamed = optimizer - host - memory.update;
  if (streamed > 0) {
    times_.push_back(
        {"optimizer", c_.optimizer_name, "update", "state read and written once", streamed});
  }
  return std::move(times_);
}

// "o (operands to fp8)".
std::string ExplainTimes::CastName(const OpRow& row) const {
  const bool gradient =
      row.bucket == Bucket::kInputGradient || row.bucket == Bucket::kWeightGradient;
  return absl::StrCat(program_.op(row.op).name, gradient ? " (gradient to " : " (operand to ",
                      Name(c_.precision.compute), ")");
}

void ExplainTimes::Waits(int rank, std::size_t layer_class, const char* part, double wait,
                         double calls) {
  const double n = LayersOnRank(rank, layer_class);
  if (wait == 0 || n == 0) return;
  TimeEntry entry;
  entry.part = part;
  entry.author = "software";
  entry.row = absl::StrCat(program_.classes[layer_class].name, " waits for the host");
  entry.seconds = Passes() * n * wait;
  entry.formula =
      absl::StrCat(Passes(), " micro-batches x ", ShortNumber(n), " layers x (", ShortNumber(calls),
                   " calls x ", Significant(c_.host_seconds * 1e6, 3), " us - what they take)");
  times_.push_back(std::move(entry));
}

}  // namespace shardlab
