#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kScheduleTemplate = {
    R"TEXT(// @NAME@: every rank runs the forwards of all micro-batches, then all backwards, as GPipe does.
//
//   [schedule]
//   plugin = "@NAME@"
//   degree = 2

#include <string>
#include <vector>

#include "api/schedule.h"

namespace {

using shardlab::ScheduleOrder;
using shardlab::ScheduleShape;
using shardlab::Work;
using shardlab::WorkKind;

class @CLASS@ final : public shardlab::Schedule {
 public:
  std::string Refusal(const ScheduleShape& shape) const override {
    if (shape.chunks == 1) return "";
    return "@NAME@ has one chunk per rank, not " + std::to_string(shape.chunks) + "; write chunks = 1";
  }

  // For each rank the list of its work. Dependencies, transfers, bubbles and memory follow from it.
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    std::vector<Work> list;
    for (const WorkKind kind : {WorkKind::kF, WorkKind::kB}) {
      for (int m = 0; m < shape.micro_batches; ++m) list.push_back({kind, 0, m});
    }
    return ScheduleOrder(static_cast<std::size_t>(shape.ranks), list);
  }

  // Leave this out where there is no closed form.
  double EqualSlots(const ScheduleShape& shape) const override {
    return shape.micro_batches + shape.ranks - 1;
  }

  std::string source() const override { return "Huang et al., GPipe, arXiv 1811.06965"; }
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "all forwards, then all backwards")
)TEXT",
    "Every rank runs the forwards of all micro-batches, then all backwards.",
    "With equal ranks and free hops a step takes m + p - 1 slots of one rank's forward plus "
    "backward.",
    "All m micro-batches are in flight. One chunk per rank.",
    R"TEXT(name = "@NAME@: an 8B model on 2 pipeline ranks"
accounting = "textbook"

[model]
plugin = "llama"
preset = "llama3.1-8b"

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 1024
micro_batch_size = 1
global_batch_size = 16

[strategy.tensor]
degree = 4

[schedule]
plugin = "@NAME@"
degree = 2
transfers = "ignore"

[expect]
"plan.schedule" = "@NAME@"
"memory.ranks[0].in_flight_micro_batches" = 16
)TEXT",
    "",
};

}  // namespace shardlab
