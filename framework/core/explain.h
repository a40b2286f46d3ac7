#pragma once
// Explain: the rows behind an Evaluation, with names. Each account of each rank is the sum of
// signed entries: who put the row there, the formula with its values, and the source.
//
//   Explanation x = Explain(composition, plan, order);
//   for (const MemoryEntry& e : x.ranks[0].entries) print(e.account, e.author, e.formula, e.bytes);

#include <string>
#include <vector>

#include "core/composition.h"
#include "core/evaluate.h"
#include "core/first_step.h"
#include "core/order.h"

namespace shardlab {

struct MemoryEntry {
  Account account = Account::kParameters;
  std::string author;   // the model, a strategy, the optimizer, the machine
  std::string row;      // "mlp.up weights"
  std::string formula;  // "40 layers x hidden 8192 x ffn 28672/8 x 2 B"
  std::string source;
  double bytes = 0;
};

// One collective of the step on one rank.
struct TransferEntry {
  std::string axis;
  AxisRole role = AxisRole::kData;
  std::string collective, tensor, phase, author;
  double count = 0;           // calls per step
  double bytes_per_call = 0;  // sent by one device
  double bytes = 0;           // sent per step
  int group_size = 1;
  Span span;
  std::string tier, algorithm;
  bool declared = false, realised = false;
  std::string why;     // of a declared one
  double seconds = 0;  // all calls
  double exposed_seconds = 0;
};

struct TimeEntry {
  std::string part;  // "forward", "backward", "recompute", "optimizer"
  std::string author, row, formula;
  double seconds = 0;  // per step on the rank
};

struct RankExplanation {
  RankMemory memory;
  std::vector<int> stages;
  std::vector<MemoryEntry> entries;
  FirstPeaks first;
};

struct Explanation {
  Evaluation evaluation;
  double exposed_pipeline = 0;  // of the bubble: what messages between ranks cost
  double hidden_pipeline = 0;   // of the time rank's messages what does not show
  double own_bubble = 0;        // idle between the time rank's first and last op
  double mean_bubble_fraction = 0;
  double recompute_flops_share = 0;  // replayed FLOPs over those of forward and backward
  std::vector<RankExplanation> ranks;
  std::vector<TransferEntry> transfers;  // of `transfer_rank`
  std::vector<TimeEntry> times;          // of evaluation.time_rank
  int transfer_rank = 0;
};

// `transfer_rank` < 0: the rank with most memory.
Explanation Explain(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                    int transfer_rank = -1);

}  // namespace shardlab
