#pragma once
// What derivation makes of an edited Program: an ordered list of steps that a machine could execute
// as it stands, for one micro-batch and for the end of the step. The toy machine of the tests
// executes it; the fast evaluation prices it; the report lists it.
//
//   for (const Step& step : derived.steps) if (step.kind == StepKind::kMove) ...

#include <cstdint>
#include <string>
#include <vector>

#include "base/export.h"
#include "domain/program.h"

namespace shardlab {

enum class Collective : std::uint8_t {
  kSlice,  // nothing travels: a rank drops what it need not have; whole -> sum: all but the first
           // rank hold zeros
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendRecv,
  kHostCopy,  // between a rank and its own host: no layout changes
};
SHARDLAB_EXPORT const char* Name(Collective collective);  // "all-reduce", ...

enum class Phase : std::uint8_t {
  kForward,
  kReplay,          // recomputation inside the backward pass
  kInputGradient,   // I, and what the backward pass fetches for both
  kWeightGradient,  // W, and what it alone fetches
  kReduce,          // gradients to where they are kept or updated
  kUpdate,          // the optimizer
  kRestore,         // updated weights back to where they live
};
SHARDLAB_EXPORT const char* Name(Phase phase);

enum class When : std::uint8_t { kMicroBatch, kStep };

// One thing in one placement: a tensor's value or its gradient.
struct Version {
  TensorId tensor;
  bool gradient = false;
  Placement at;
  bool host = false;  // in the memory of each rank's host

  friend bool operator==(const Version&, const Version&) = default;
  friend auto operator<=>(const Version&, const Version&) = default;
};

enum class HideBehind : std::uint8_t {
  kNothing,       // blocking
  kShare,         // a share of it hides (the classroom's overlap)
  kPrefetch,      // gathered ahead and scattered behind, under the neighbouring blocks' compute
  kLastBackward,  // under the backward pass of the last micro-batch
  kIgnored,       // not counted in the step
  kOp,            // piece by piece under one op of the same layer: all but the first piece's share
};

enum class StepKind : std::uint8_t {
  kMove,  // `source` -> `target`: the same thing in another placement, by one collective over
          // `group`. With `add` it is summed into the target if that exists already, and the source
          // is gone.
  kCompute,   // forward or replay of `op`: needs operands at op.need, writes output at op.made
  kGradient,  // backward of `op` for the operands in `operands`: needs the output's gradient at
              // made (partials whole), the reads at need; adds to (or makes) each operand's
              // gradient contribution at Produced()
  kUpdate,    // optimizer step of a parameter: weight and gradient at `target`
};

struct Step {
  StepKind kind = StepKind::kMove;
  Phase phase = Phase::kForward;
  When when = When::kMicroBatch;
  ClassId layer_class;

  OpId op;                    // what is computed; of a move: the op under which it hides
  std::uint8_t operands = 0;  // bit mask

  Version source, target;  // target.tensor == source.tensor
  bool add = false;
  Collective collective = Collective::kSlice;
  AtomMask group = 0;

  // How it is priced, set by the strategies' edits.
  HideBehind hide = HideBehind::kNothing;
  double share = 0;                       // kShare: 0 = all exposed, 1 = all hidden
  DtypeSlot dtype = DtypeSlot::kCompute;  // of what travels
  std::int16_t author = -1;               // the strategy whose placement caused it
  bool realised = false;                  // replaced by a strategy's own sequence

  friend bool operator==(const Step&, const Step&) = default;
};

// A transfer that no layout yields: stated by a strategy, not derived and not checked by the
// oracle.
struct Declared {
  std::string name;
  std::string why;
  Collective collective = Collective::kAllReduce;
  AtomMask group = 0;
  AxisRole role = AxisRole::kData;
  ClassId layer_class;  // invalid: once, not per layer
  std::vector<DimensionId> dims;
  double bytes = 0;  // payload = bytes x product of the (local) dims
  Phase phase = Phase::kReduce;
  When when = When::kStep;
  HideBehind hide = HideBehind::kNothing;
  std::int16_t author = -1;

  friend bool operator==(const Declared&, const Declared&) = default;
};

enum class Residency : std::uint8_t {
  kKept,      // from its forward to its backward: counted for every micro-batch in flight
  kBoundary,  // kept, one for each segment of recomputed layers
  kReplayed,  // alive only while its segment is replayed and differentiated
};

// A tensor that must survive from the forward pass to the backward pass, as liveness finds it.
struct Saved {
  TensorId tensor;
  Placement at;
  Residency residency = Residency::kKept;
  OpId reader;  // one op whose gradient reads it

  friend bool operator==(const Saved&, const Saved&) = default;
};

struct Derived {
  std::vector<Step> steps;
  std::vector<Declared> declared;
  std::vector<Saved> saved;

  friend bool operator==(const Derived&, const Derived&) = default;
};

// Placement in which the gradient of operand `index` leaves the backward of `op`: partial on every
// atom along which the op worked on a factor that the operand lacks.
SHARDLAB_EXPORT Placement Produced(const Op& op, std::size_t index);
// The placement of a gradient: cut stays cut, partial becomes whole.
SHARDLAB_EXPORT Placement Dual(const Placement& placement);
// The collective that moves one atom's layout; false in `moves` where nothing has to happen.
SHARDLAB_EXPORT bool MoveOf(Layout from, Layout to, Collective* collective);

}  // namespace shardlab
