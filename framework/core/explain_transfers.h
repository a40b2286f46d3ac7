#pragma once
// Traffic in words: one entry for each transfer of a rank, and those between pipeline ranks.
// Internal to explain.cpp.

#include <string>
#include <vector>

#include "core/explain.h"
#include "core/explain_words.h"

namespace shardlab {

class ExplainTransfers final : ExplainWords {
 public:
  explicit ExplainTransfers(const ExplainInput& input) : ExplainWords(input) {}

  // All of it exposed; `layers` of the rank that have it.
  TransferEntry Transfer(const TransferRow& row, double layers) const;
  // Takes from what is exposed in a pass what overlapped pairs hide. [transfer] whether it blocks.
  void HideInPairs(int rank, const std::vector<bool>& in_pass,
                   std::vector<TransferEntry>& transfers) const;
  // Messages between pipeline ranks, and the sum of gradients of stages held twice, behind the
  // others in `transfers`. `exposed`: seconds that all messages cost.
  void Pipeline(int rank, double exposed, std::vector<TransferEntry>& transfers) const;

 private:
  std::string AxisName(AtomMask mask) const;
  TransferEntry Copies(int rank) const;
};

}  // namespace shardlab
