#pragma once
// Why an order of work cannot be played: its first impossible cell, and what that clashes with or
// waits for. An order that can be played has none.
//
//   const std::optional<OrderFault> fault = FindOrderFault(order, {});
//   if (fault) ... fault->message, order[fault->at.rank][fault->at.index] ...

#include <optional>
#include <string>
#include <vector>

#include "api/schedule.h"

namespace shardlab {

// A cell of PyTorch's schedule CSV: "2F0" is stage 2, forward, micro-batch 0.
struct OrderCell {
  int stage = 0;
  WorkKind kind = WorkKind::kF;  // F, I, W or B
  int micro_batch = 0;
  bool with_next = false;  // the forward of a pair: starts with the next cell, its backward
};

// Where in an order: index from 0, the length of the rank's list for what is missing at its end.
struct OrderPosition {
  int rank = 0;
  int index = 0;
};

struct OrderFault {
  std::string message;  // "rank 0 cannot do 0B0: it waits for 1B0, which ..."
  OrderPosition at;
  std::optional<OrderPosition> other;  // the cell that `at` clashes with, or waits for
  std::string hint;                    // "leave one of the two out"
};

// Each cell is done once; a stage's micro-batch is done on one rank, F and either B, or I and W;
// every stage does every micro-batch; ranks hold equally many stages and stages lie on equally many
// ranks; played in list order nothing waits for ever. Checked in this order, each from the first
// rank to the last. `stages` and `micro_batches` are what the order must have, 0: as many as it
// names. Takes n log n for n cells.
SHARDLAB_EXPORT std::optional<OrderFault> FindOrderFault(
    const std::vector<std::vector<OrderCell>>& order, int stages = 0, int micro_batches = 0);

// "2F0".
SHARDLAB_EXPORT std::string CellText(const OrderCell& cell);

}  // namespace shardlab
