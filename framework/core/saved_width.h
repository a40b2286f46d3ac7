#pragma once
// Bytes of an element of what is kept for the backward pass. A recipe may keep the inputs of some
// ops in a narrower type than they were computed in: numbers of its file,
//
//   "saved.linear.bytes" = { value = 1, source = "..." }      inputs of products with a weight
//   "saved.gated-silu.bytes" = ...                            of an op's other kinds, by their
//   names
//
// A tensor is kept once: one such reader narrows it for all.

#include "domain/accounting.h"
#include "domain/derived.h"
#include "domain/precision.h"
#include "domain/program.h"

namespace shardlab {

struct SavedWidth {
  double bytes = 0;
  const SoftwareNumber* number = nullptr;  // why it is narrower; null: it is as it was computed
};

SavedWidth SavedWidthOf(const Program& program, const Precision& precision,
                        const AccountingRules& rules, const Saved& saved);

}  // namespace shardlab
