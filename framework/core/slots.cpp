#include "core/slots.h"

#include <algorithm>
#include <type_traits>

namespace shardlab {
namespace {

static_assert(std::is_standard_layout_v<ClassCosts> && std::is_trivially_copyable_v<ClassCosts> &&
              sizeof(ClassCosts) % sizeof(double) == 0);

// Index of a member of the costs of one class.
std::uint16_t SlotOf(std::size_t layer_class, const ClassCosts& of, const double& member) {
  const auto inside = static_cast<std::size_t>(&member - reinterpret_cast<const double*>(&of));
  return static_cast<std::uint16_t>(layer_class * (sizeof(ClassCosts) / sizeof(double)) + inside);
}

TransferSlot SlotOf(const Composition& c, const TransferTerm& term) {
  static const ClassCosts cost;
  const TransferRow& row = term.row;
  const std::size_t layer_class = row.per_layer ? row.layer_class : c.form.classes.size();
  const auto role = static_cast<std::size_t>(row.role);
  TransferSlot slot;
  slot.price = row.price;
  slot.ring = row.ring;
  slot.count = term.count;
  const auto to = [&](const double& member) {
    slot.at = SlotOf(layer_class, cost, member);
    if (slot.rest_scale == 0) slot.rest = slot.at;
    if (slot.calls == 0) slot.calls_at = slot.at;
    return slot;
  };
  const bool blocks = row.hide == HideBehind::kNothing && row.phase == Phase::kReduce;
  if (c.rules.reductions_after_pipeline && blocks && row.when == When::kMicroBatch) {
    // Counted after the pipeline, once for each micro-batch, and not stretched by its bubble.
    slot.each_pass = true;
    return to(cost.step_blocking[role]);
  }
  if (row.when == When::kStep) {
    return to(row.hide == HideBehind::kLastBackward ? cost.step_trailing[role]
              : row.hide == HideBehind::kIgnored    ? cost.step_ignored[role]
                                                    : cost.step_blocking[role]);
  }
  const bool forward = row.phase == Phase::kForward;
  switch (row.hide) {
    case HideBehind::kPrefetch:
      return to(forward                       ? cost.gather_forward
                : row.phase == Phase::kReduce ? cost.scatter
                                              : cost.gather_backward);
    case HideBehind::kIgnored:
      return to(cost.hidden[role]);
    // A reduction of each micro-batch trails behind that micro-batch's backward pass as the last
    // one does.
    case HideBehind::kLastBackward:
      return to(cost.scatter);
    case HideBehind::kShare:
      slot.rest = SlotOf(layer_class, cost, cost.hidden[role]);
      slot.rest_scale = row.share;
      slot.scale = 1 - row.share;
      break;
    case HideBehind::kNothing:
    case HideBehind::kOp:  // kept apart
      break;
  }
  slot.calls = term.count;
  slot.calls_at = SlotOf(layer_class, cost, forward ? cost.calls_forward : cost.calls_backward);
  return to((forward ? cost.blocking_forward : cost.blocking_backward)[role]);
}

// Sorts by what is added to, and counts what is added to each.
template <typename Slot>
std::vector<SlotRun> RunsOf(std::vector<Slot>& slots) {
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.at < b.at; });
  std::vector<SlotRun> runs;
  for (const Slot& slot : slots) {
    if (runs.empty() || runs.back().at != slot.at) runs.push_back({slot.at, 0});
    ++runs.back().count;
  }
  return runs;
}

}  // namespace

Slots::Slots(const Composition& c) {
  const ClassCosts cost;
  for (const MemoryTerm& term : c.form.memory_terms)
    memory.push_back(
        {SlotOf(term.layer_class, cost, cost.bytes[term.slot]), term.block, term.when});
  for (const OpTerm& term : c.form.op_terms) {
    const auto bucket = static_cast<std::size_t>(term.bucket);
    ops.push_back({SlotOf(term.layer_class, cost, cost.seconds[bucket]), term.price, term.count});
  }
  memory_runs = RunsOf(memory);
  op_runs = RunsOf(ops);
  for (const TransferTerm& term : c.form.transfer_terms) transfers.push_back(SlotOf(c, term));

  const auto add = [&](std::size_t layer_class, const double& member) {
    added.push_back(SlotOf(layer_class, cost, member));
  };
  for (std::size_t k = 0; k < c.form.classes.size(); ++k) {
    for (const double& seconds : cost.seconds) add(k, seconds);
    for (const double* member :
         {&cost.calls_forward, &cost.calls_backward, &cost.update, &cost.bytes[kBufferSlot]})
      add(k, *member);
  }
  for (const Ring& ring : c.form.rings) {
    const auto role = static_cast<std::size_t>(ring.role);
    add(ring.layer_class, (ring.forward ? cost.blocking_forward : cost.blocking_backward)[role]);
    add(ring.layer_class, cost.hidden[role]);
  }
  for (const MemorySlot& slot : memory) added.push_back(slot.at);
  for (const TransferSlot& slot : transfers)
    added.insert(added.end(), {slot.at, slot.rest, slot.calls_at});
  std::sort(added.begin(), added.end());
  added.erase(std::unique(added.begin(), added.end()), added.end());
}

}  // namespace shardlab
