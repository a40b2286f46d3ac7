#pragma once
// PyTorch's schedule CSV (torch.distributed.pipelining.schedules, _dump_csv and _load_csv): a row
// for each pipeline rank, a cell for each op: stage, op, micro-batch. "2F0", "1I3", "1W3", "0B2", a
// pair "(2F4;5B1)OVERLAP_F_B". An empty cell is an idle step. The second dialect (compute_comms)
// has communication too: "3SEND_F1", "1UNSHARD"; it is read over, since it follows from the rest.
//
//   std::optional<PlacedOrder> read = ParseOrderCsv("0F0,0B0\n1F0,1B0\n", "a.csv", &diagnostics);
//   OrderToCsv(read->order, read->stage_of);  // the same text

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schedule.h"
#include "base/diagnostic.h"

namespace shardlab {

// An order with the stage of each rank's chunks: [rank x chunks + chunk], ascending on a rank.
struct PlacedOrder {
  ScheduleShape shape;
  int stages = 1;
  std::vector<int> stage_of;
  ScheduleOrder order;
};

// An order that can be played, or nothing and at least one error, each with the line and column of
// its cell in `file`: every cell that is no op, else the first that is impossible (deadlock,
// missing or doubled work, a stage of another rank: api/order_fault.h).
SHARDLAB_EXPORT std::optional<PlacedOrder> ParseOrderCsv(std::string_view text,
                                                         const std::string& file,
                                                         Diagnostics* diagnostics);

// Compute ops alone, no idle cells: durations differ, so that steps would not line up.
SHARDLAB_EXPORT std::string OrderToCsv(const ScheduleOrder& order,
                                       const std::vector<int>& stage_of);

}  // namespace shardlab
