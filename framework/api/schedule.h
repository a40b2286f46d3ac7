#pragma once
// A pipeline schedule: for each pipeline rank the ordered list of its work. The framework does the
// rest: dependencies, transfers, bubbles, micro-batches in flight. It is not asked when there is
// one pipeline rank: that is gradient accumulation.
//
// Contract: every rank holds each (kind, chunk, micro-batch) it owes exactly once; played in list
// order the lists never deadlock; the same shape gives the same order.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/plugin.h"

namespace shardlab {

// The field's letters: F forward, I input gradient, W weight gradient, B = I and W together.
enum class WorkKind : std::uint8_t { kF, kI, kW, kB };

struct Work {
  WorkKind kind = WorkKind::kF;
  std::int16_t chunk = 0;        // of this rank
  std::int32_t micro_batch = 0;  // from 0

  friend bool operator==(const Work&, const Work&) = default;
};

struct ScheduleShape {
  int ranks = 1;
  int chunks = 1;  // per rank
  int micro_batches = 1;

  friend bool operator==(const ScheduleShape&, const ScheduleShape&) = default;
};

using ScheduleOrder = std::vector<std::vector<Work>>;  // [rank]

class SHARDLAB_EXPORT Schedule : public Plugin {
 public:
  static constexpr const char* kKind = "schedule";
  static constexpr int kInterfaceVersion = 1;
  ~Schedule() override;
  // An empty text when the shape is legal, else why not and what would be: "1f1b has one chunk per
  // rank, not 2".
  virtual std::string Refusal(const ScheduleShape& shape) const = 0;
  virtual ScheduleOrder Order(const ScheduleShape& shape) const = 0;
  // Which of the S = ranks x chunks stages a rank's chunk is.
  virtual int StageOf(const ScheduleShape& shape, int rank, int chunk) const;
  // Slots (of one rank's forward plus backward of a micro-batch) that a step takes when all ranks
  // are equal and hops cost nothing; below 0 when there is no closed form. 1F1B: m + p - 1 (arXiv
  // 2104.04473, section 2.2).
  virtual double EqualSlots(const ScheduleShape& shape) const;
  virtual std::string source() const = 0;
};

}  // namespace shardlab
