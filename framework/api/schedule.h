#pragma once
// A pipeline schedule: for each pipeline rank the ordered list of its work. The framework does the
// rest: dependencies, transfers, bubbles, micro-batches in flight. It is not asked when there is
// one pipeline rank: that is gradient accumulation.
//
// Contract: each micro-batch passes each stage once, forward and backward on one of the ranks that
// hold the stage; played in list order the lists never deadlock; the same shape gives the same
// order.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/plugin.h"

namespace shardlab {

// The field's letters: F forward, I input gradient, W weight gradient, B = I and W together, F+B an
// overlapped pair: one F and one B in one slot, which starts when the inputs of both are there and
// delivers both at its end.
enum class WorkKind : std::uint8_t { kF, kI, kW, kB, kFB };
SHARDLAB_EXPORT const char* Name(WorkKind kind);  // "F", ..., "F+B"

struct Work {
  WorkKind kind = WorkKind::kF;
  std::int16_t chunk = 0;        // of this rank; of a pair its forward's
  std::int32_t micro_batch = 0;  // from 0
  // Of a pair: what its B is of.
  std::int16_t backward_chunk = -1;
  std::int32_t backward_micro_batch = -1;

  static Work Pair(Work forward, Work backward) {
    return {WorkKind::kFB, forward.chunk, forward.micro_batch, backward.chunk,
            backward.micro_batch};
  }
  Work Forward() const { return {WorkKind::kF, chunk, micro_batch}; }  // of a pair
  Work Backward() const { return {WorkKind::kB, backward_chunk, backward_micro_batch}; }  // of one
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
  // Chunks per rank where the user says nothing: 2 for schedules that need two.
  virtual int DefaultChunks() const;
  // Pieces of the model: ranks x chunks, fewer when several ranks hold a stage (and its weights).
  // Each of those then does an equal share of the micro-batches.
  virtual int Stages(const ScheduleShape& shape) const;
  // Which of these stages a rank's chunk is. Asked of shapes that are refused, too.
  virtual int StageOf(const ScheduleShape& shape, int rank, int chunk) const;
  // Slots (of one rank's forward plus backward of a micro-batch) that a step takes when all ranks
  // are equal and hops cost nothing; below 0 when there is no closed form. 1F1B: m + p - 1 (arXiv
  // 2104.04473, section 2.2).
  virtual double EqualSlots(const ScheduleShape& shape) const;
  // Whether some order holds overlapped pairs: a rank is then busy for less than the sum of its
  // passes.
  virtual bool Pairs() const;
  virtual std::string source() const = 0;
};

}  // namespace shardlab
