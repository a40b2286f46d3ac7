#pragma once
// Seconds in words: each pass of each op, waits for the host, the optimizer. Internal to
// explain.cpp.

#include <string>
#include <vector>

#include "core/explain.h"
#include "core/explain_words.h"

namespace shardlab {

class ExplainTimes final : ExplainWords {
 public:
  explicit ExplainTimes(const ExplainInput& input) : ExplainWords(input) {}

  // Of a rank whose costs are in the workspace; `optimizer`: seconds of the step's evaluation.
  std::vector<TimeEntry> Of(int rank, double optimizer);

 private:
  static const char* Part(Bucket bucket);
  std::string CastName(const OpRow& row) const;
  void Waits(int rank, std::size_t layer_class, const char* part, double wait, double calls);

  std::vector<TimeEntry> times_;
};

}  // namespace shardlab
