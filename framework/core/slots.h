#pragma once
// Where each hot row of a form adds to, as an index into the costs of all classes taken as one
// array of numbers: worked out once, so that Evaluate's loops only add.
//
//   Slots slots(composition);     // part of a Workspace

#include <array>
#include <cstdint>
#include <vector>

#include "core/composition.h"

namespace shardlab {

// Per layer class: what one layer costs on one rank. Numbers only.
struct ClassCosts {
  std::array<double, kMemorySlots>
      bytes{};  // [Account], then activations of a micro-batch by residency
  std::array<double, kBuckets> seconds{};  // of compute, [Bucket]
  // Seconds of collectives per micro-batch that block, by role, in the forward and in the backward
  // pass.
  std::array<double, kAxisRoles> blocking_forward{}, blocking_backward{};
  std::array<double, kAxisRoles> hidden{};  // and those that never show
  double update = 0;                        // seconds of the optimizer's work on whole matrices
  double pieces = 0;  // calls for the reductions of one layer, where they go in buckets
  double gather_forward = 0, gather_backward = 0, scatter = 0;  // prefetched and trailing
  double calls_forward = 0, calls_backward = 0;  // that the host makes: kernels, collectives
  // Of compute: for the host that starts the kernels; input gradients and weight gradients apart.
  double wait_forward = 0, wait_backward = 0, wait_weight = 0;
  // Once a step: blocking, hidden behind the last backward as far as it reaches, not counted.
  std::array<double, kAxisRoles> step_blocking{}, step_trailing{}, step_ignored{};

  // Sums of the above.
  double slot_forward = 0, slot_backward = 0, step_now = 0, step_late = 0;
};

struct MemorySlot {
  std::uint16_t at = 0, block = 0;
  std::uint8_t when = 0;  // as MemoryTerm
};
struct OpSlot {
  std::uint16_t at = 0, price = 0;
  double count = 1;
};
// So many neighbours that add to the same number.
struct SlotRun {
  std::uint16_t at = 0, count = 0;
};
// Adds scale x seconds at `at`, the rest of them at `rest`, and so many calls of the host.
struct TransferSlot {
  std::uint16_t price = 0, at = 0, rest = 0, calls_at = 0;
  std::int16_t ring = -1;  // instead, to this ring
  bool each_pass = false;  // times the micro-batches of a rank
  double count = 1, scale = 1, rest_scale = 0, calls = 0;
};

struct Slots {
  explicit Slots(const Composition& composition);
  std::vector<MemorySlot> memory;  // by `at`
  std::vector<OpSlot> ops;         // by `at`
  std::vector<SlotRun> memory_runs, op_runs;
  std::vector<TransferSlot> transfers;
  // What is added to: all else stays 0 or is set.
  std::vector<std::uint16_t> added;
};

}  // namespace shardlab
