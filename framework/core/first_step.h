#pragma once
// What a pipeline rank holds before its optimizer has all of its state: when the model has just
// been made, and in the first step. Both are told beside the steady step's peak, and neither
// changes it.
//
//   const FirstPeaks first = FirstPeaksOf(composition, plan, workspace, memory, layers);
//   if (first.initialisation > memory.total) warn(...);

#include <functional>
#include <string>
#include <vector>

#include "core/evaluate.h"

namespace shardlab {

struct FirstEntry {
  bool initialisation = true;  // else of the first step
  std::string author, row, formula, source;
  double bytes = 0;
};

// Bytes, with what the allocator reserves and what lies outside of it. Entries add up to them.
struct FirstPeaks {
  double initialisation = 0, first_step = 0;
  std::vector<FirstEntry> entries;
};

// `memory`: of the steady step. `layers`: how many of a class the rank has. All blocks of the
// workspace are set.
FirstPeaks FirstPeaksOf(const Composition& composition, const Plan& plan,
                        const Workspace& workspace, const RankMemory& memory,
                        const std::function<double(std::size_t)>& layers);

}  // namespace shardlab
