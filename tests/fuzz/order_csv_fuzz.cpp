// Any bytes as a schedule CSV: nothing may crash, hang, throw or fall silent. What is read is
// compiled as pipeline-csv would, and what compiles is played; written again and read again it is
// the same.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/order_csv.h"
#include "core/timeline.h"

namespace {

using namespace shardlab;  // NOLINT: one program of one file

// abort() and not assert: the promise holds in release builds too.
void Require(bool holds) {
  if (!holds) std::abort();
}

class Given final : public Schedule {
 public:
  explicit Given(const PlacedOrder& order) : order_(order) {}
  int Stages(const ScheduleShape&) const override { return order_.stages; }
  int StageOf(const ScheduleShape& shape, int rank, int chunk) const override {
    return order_.stage_of[static_cast<std::size_t>(rank * shape.chunks + chunk)];
  }
  ScheduleOrder Order(const ScheduleShape&) const override { return order_.order; }
  std::string Refusal(const ScheduleShape&) const override { return ""; }
  std::string source() const override { return "the input"; }

 private:
  const PlacedOrder& order_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  const std::optional<PlacedOrder> read = ParseOrderCsv(text, "a.csv", &diagnostics);
  Require(read.has_value() == diagnostics.empty());
  if (!read) {
    for (const Diagnostic& diagnostic : diagnostics.all()) {
      Require(diagnostic.message.size() > 8 && diagnostic.place.file == "a.csv");
      Require((diagnostic.place.line > 0) == (diagnostic.place.column > 0));
    }
    return 0;
  }
  const std::string written = OrderToCsv(read->order, read->stage_of);
  const std::optional<PlacedOrder> again = ParseOrderCsv(written, "a.csv", &diagnostics);
  Require(again && again->shape == read->shape && again->stage_of == read->stage_of);
  Require(OrderToCsv(again->order, again->stage_of) == written);

  const absl::StatusOr<CompiledOrder> compiled = CompileOrder(Given(*read), read->shape);
  Require(compiled.ok());  // what reading found possible
  const Timeline timeline = PlayTimeline(*compiled, StageCosts(*compiled, {}), 0.25);
  double busy = 0;
  for (const RankTimeline& rank : timeline.ranks) {
    busy = std::max(busy, rank.busy);
    Require(rank.idle >= 0 && rank.own_bubble >= 0);
  }
  Require(std::isfinite(timeline.makespan) && timeline.makespan >= busy * (1 - 1e-12));
  return 0;
}
