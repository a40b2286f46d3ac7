#pragma once
// What a weight gradient that waits keeps alive of one layer: the inputs of its products with
// weights, and the gradients of their outputs (Qi et al. 2023, arXiv 2401.10241, section 2). All
// else that was saved is given back by the input gradient.
//
//   for (const Waiting& row : WaitingOf(program, derived, precision, rules, layer)) add(row);

#include <vector>

#include "domain/accounting.h"
#include "domain/derived.h"
#include "domain/precision.h"
#include "domain/program.h"

namespace shardlab {

struct Waiting {
  TensorId tensor;
  bool gradient = false;
  Placement at;
  double bytes = 0;         // per element
  std::int32_t saved = -1;  // an input: into Derived::saved
};

// Empty where that is no more than what was saved, all of which is counted until the weight
// gradient: so it is for every product whose output is kept as another's input.
std::vector<Waiting> WaitingOf(const Program& program, const Derived& derived,
                               const Precision& precision, const AccountingRules& rules,
                               ClassId layer);

}  // namespace shardlab
