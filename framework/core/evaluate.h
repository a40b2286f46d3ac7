#pragma once
// Evaluate: one plan in tenths of a microsecond. Arithmetic on flat rows: no allocation, no
// strings. Explain shows the same rows with their names; Simulate reaches the same answer another
// way.
//
//   Workspace workspace(composition);           // once per thread
//   Evaluation e = Evaluate(composition, plan, order, workspace);
//   if (e.fits) use(e.step);

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/composition.h"
#include "core/fill_and_drain.h"
#include "core/order.h"
#include "core/slots.h"
#include "core/span.h"

namespace shardlab {

struct TimeParts {
  double forward = 0, backward = 0, recompute = 0, optimizer = 0, bubble = 0;
  std::array<double, kAxisRoles> exposed{}, hidden{};
};

struct RankMemory {
  std::array<double, kAccounts> bytes{};
  double total = 0;
  double in_flight = 1;  // micro-batches, at most
  // Where weight gradients wait: of CompiledOrder's states the one with most activations.
  int state = -1;
  double updated = 0;  // parameters that the optimizer updates, where Form::state_width is 0
  double update = 0;   // seconds of the optimizer's work on whole matrices
  // In the memory of the host: all bytes, optimizer state, and as `updated`.
  double host = 0, host_state = 0, host_updated = 0;
};

// Why a plan was not evaluated to the end: it takes more than the workspace allows.
enum class Stopped : std::uint8_t { kNot, kMemory, kTime, kUnplayed };

struct Evaluation {
  double step = 0;      // seconds; where `stopped` says so 0, or what it takes at least
  double pipeline = 0;  // makespan of the pipeline alone
  bool fits = false;
  int worst_rank = 0;  // most memory
  double peak = 0;     // bytes on it
  double capacity = 0;
  double host_peak = 0;      // bytes in the memory of the host, a device's share, at most
  double host_capacity = 0;  // 0: not stated
  int time_rank = 0;         // ends last
  TimeParts time;            // of that rank; partition the step
  bool approximate = false;
  Stopped stopped = Stopped::kNot;
};

// A pass of a stage under which weights and gradients travel, in seconds.
struct PassCost {
  double lead = 0;   // the first gather, before the first block
  double body = 0;   // from there to the end of the last block
  double tail = 0;   // reductions that go on after that
  double slack = 0;  // of the first block's compute nothing travels under this
};

// A rank while such passes are played: seconds; `busy` since the step began.
struct PlayingRank {
  double free = 0, tail_end = 0, busy = 0;
  double free_before = 0, busy_before = 0;  // a period ago
};

// Scratch space of one thread; sized for a composition and the largest plan that it has seen.
class Workspace {
 public:
  explicit Workspace(const Composition& composition);
  // Makes room for a plan; the only call that allocates, and only when a plan is larger than all
  // before.
  void Reserve(const Plan& plan, const CompiledOrder* order);

  Slots slots;
  SpanTable spans;
  std::vector<double> degrees, locals, products, blocks;  // [Form::masks], [Form::locals], ...
  std::vector<OpShape> shapes;                            // [Form::op_prices]
  std::vector<double> op_seconds, transfer_seconds;  // [Form::op_prices], [Form::transfer_prices]
  std::vector<double> ring_seconds;                  // [Form::rings]
  std::vector<Span> span_of;                         // [Form::masks]
  std::vector<ClassCosts> costs;                     // [class]
  std::vector<double> stage_cost;                    // as CompiledOrder's costs
  std::vector<double> ends;                          // [event]
  std::vector<RankMemory> memory;                    // [pipeline rank]
  std::vector<double> finish, slot, step_end;        // [pipeline rank]
  std::vector<double> update;                        // [pipeline rank] the optimizer's seconds
  // Of what trails the last backward pass, seconds behind that: of all chunks together in closed
  // form, and where one of them may end long before, as it is played.
  std::vector<double> trailing, behind;    // [pipeline rank]
  std::vector<double> chunk_late, bucket;  // [pipeline rank x chunks + chunk], [pipeline rank]
  std::vector<PassCost> passes;      // [stage x 4 + WorkKind], where traffic travels under passes
  std::vector<PlayingRank> playing;  // [pipeline rank], the same
  // Where pairs overlap (core/overlapped_pairs.h): seconds of collectives of a stage's forward and
  // backward pass; what hides of each kind of pair, and of a rank's pairs over the step.
  std::vector<double> pair_traffic, pair_hidden, hidden_in_pairs;
  // Bytes of activations of one micro-batch, where weight gradients wait: as CompiledOrder's
  // states.
  std::vector<double> chunk_bytes;
  FillAndDrain fill_and_drain;
  int copies = 1;           // ranks that hold each stage
  double bucket_bytes = 0;  // of the largest bucket into which gradients are copied

  // For searches. The costs are those of the plan before: only the order of work, the chunks and
  // the split of layers are others, and as many ranks hold each stage.
  bool keeps_costs = false;
  // Nor is anything else another than whether messages take time: what each rank does and holds is
  // known. Not where an accounting makes passes equal.
  bool keeps_ranks = false;
  // A plan with a rank above these is told so and not played.
  double most_bytes = std::numeric_limits<double>::infinity();
  double most_seconds = std::numeric_limits<double>::infinity();
  bool plays = true;  // false: an outline of an order is enough, and what is left is not played
};

// `order` of (plan.pipeline, chunks, micro_batches); may be null for one pipeline rank. Reserve
// must have been called for the plan. `hops` false: as if messages between pipeline ranks took no
// time.
Evaluation Evaluate(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                    Workspace& workspace, bool hops = true) noexcept;

// Sums in another order differ by rounding; a bound stays below by more than that.
inline constexpr double kRounding = 1 - 1e-9;

// Layers of class `layer_class` on stage `stage` of the plan (1 for an end on its stage, a share
// for kSpread).
inline double LayersOn(const Composition& composition, const Plan& plan, int stage,
                       std::size_t layer_class) {
  const LayerSplit& split = composition.splits[static_cast<std::size_t>(plan.split)];
  return split
      .counts[static_cast<std::size_t>(stage) * composition.form.classes.size() + layer_class];
}

// The block costs of one pipeline rank: fills degrees to costs of the workspace, for Explain all
// blocks. Ranks differ only where groups lie differently on the machine.
void ComputeCosts(const Composition& composition, const Plan& plan, int pipeline_rank,
                  Workspace& workspace, bool all_blocks = false) noexcept;

// What one layer's transfer moves.
double Payload(const TransferPrice& price, const Workspace& workspace) noexcept;
// What one call of it moves: that, or a bucket, which holds no more than all that goes the same way
// on an average pipeline rank.
double CallBytes(const Composition& composition, const Plan& plan, const TransferPrice& price,
                 const Workspace& workspace) noexcept;
// Seconds for the stream to reach the next pipeline rank.
double HopSeconds(const Composition& composition, const Workspace& workspace) noexcept;
// Where several ranks hold each stage: how they lie, and the gradients that such a rank sums with
// the others.
Span CopiesSpan(const CompiledOrder& order, const Workspace& workspace) noexcept;
double CopiedBytes(const Composition& composition, const Plan& plan, int rank,
                   const CompiledOrder& order, const Workspace& workspace) noexcept;
// Optimizer step of a rank that holds these bytes.
double OptimizerSeconds(const Composition& composition, const RankMemory& memory) noexcept;
// The part of it that the host does: bytes over the host's memory bandwidth.
double HostOptimizerSeconds(const Composition& composition, const RankMemory& memory) noexcept;
// One layer's matrices of this row on one rank.
double UpdateSeconds(const Composition& composition, const UpdateRow& row,
                     const Workspace& workspace) noexcept;
OpShape ShapeOf(const Composition& composition, const OpPrice& price,
                const Workspace& workspace) noexcept;

}  // namespace shardlab
