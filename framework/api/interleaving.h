#pragma once
// What interleaved schedules share: the table of virtual micro-batches and the size of its groups.
// For each group of g micro-batches, for chunk 0 .. v-1, for each micro-batch of the group; the
// backward runs through the same table with the chunks from the last to the first (Megatron-LM
// core/pipeline_parallel/schedules.py, get_schedule_table).
//
//   const std::vector<Work> forwards = InterleavedTable(shape, GroupSize(shape, 0), WorkKind::kF);
//   Work first = forwards[0];  // chunk 0, micro-batch 0

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/schedule.h"
#include "base/text.h"

namespace shardlab {

// A rank's forwards, or its backwards of this kind, in their order.
inline std::vector<Work> InterleavedTable(const ScheduleShape& shape, int group, WorkKind kind) {
  std::vector<Work> table;
  table.reserve(static_cast<std::size_t>(shape.micro_batches) *
                static_cast<std::size_t>(shape.chunks));
  const bool forward = kind == WorkKind::kF;
  for (int before = 0; before < shape.micro_batches; before += std::max(1, group)) {
    const int past = std::min(before + std::max(1, group), shape.micro_batches);
    for (int i = 0; i < shape.chunks; ++i) {
      const int chunk = forward ? i : shape.chunks - 1 - i;
      for (int m = before; m < past; ++m)
        table.push_back({kind, static_cast<std::int16_t>(chunk), m});
    }
  }
  return table;
}

// As stated, or PyTorch's: as many whole rounds of at least p micro-batches as there can be. 0 when
// those do not divide the micro-batches.
inline int GroupSize(const ScheduleShape& shape, int stated) {
  if (stated > 0) return stated;
  const int rounds = std::max(1, shape.micro_batches / shape.ranks);
  return shape.micro_batches % rounds == 0 ? shape.micro_batches / rounds : 0;
}

// Megatron's rule, without which the order can deadlock: p <= g <= m, and what is left of m is
// nothing or at least p.
inline bool LegalGroup(const ScheduleShape& shape, int group) {
  const int rest = shape.micro_batches % group;
  return group >= shape.ranks && group <= shape.micro_batches && (rest == 0 || rest >= shape.ranks);
}

// Empty when the groups are legal.
inline std::string GroupRefusal(const char* name, const ScheduleShape& shape, int stated) {
  if (stated > 0 ? LegalGroup(shape, stated) : GroupSize(shape, 0) > 0) return "";
  const int p = shape.ranks, m = shape.micro_batches;
  std::vector<int> legal;
  for (int g = p; g <= m && legal.size() < 8; ++g) {
    if (LegalGroup(shape, g)) legal.push_back(g);
  }
  const std::string groups =
      legal.empty() ? "leave group out" : absl::StrCat("write group = ", Enumerate(legal, "or"));
  if (stated > 0) {
    return absl::StrCat(name, " cannot do ", m, " micro-batches on ", p, " ranks in groups of ",
                        stated,
                        ": a group, and what is left at the end, "
                        "has at least ",
                        p, " micro-batches; ", groups);
  }
  const int rounds = m / p;
  return absl::StrCat(name, " does ", m, " micro-batches on ", p, " ranks in ", rounds,
                      " equal rounds, and ", rounds, " does not divide ", m, "; ", groups, ", or ",
                      m / rounds * rounds, " or ", (m / rounds + 1) * rounds, " micro-batches");
}

}  // namespace shardlab
