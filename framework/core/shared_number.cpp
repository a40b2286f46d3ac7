#include "core/shared_number.h"

#include <algorithm>

namespace shardlab {
namespace {

bool SameRefusals(const Edited& a, const Edited& b) {
  const auto same = [](const Requirement& x, const Requirement& y) {
    return x.atoms == y.atoms && x.dimensions == y.dimensions &&
           x.message.empty() == y.message.empty();
  };
  return std::equal(a.requirements.begin(), a.requirements.end(), b.requirements.begin(),
                    b.requirements.end(), same) &&
         std::equal(a.program.limits.begin(), a.program.limits.end(), b.program.limits.begin(),
                    b.program.limits.end(),
                    [](const Limit& x, const Limit& y) { return x.role == y.role; });
}

}  // namespace

std::optional<std::vector<std::size_t>> ClassesThatFollow(const Edited& a, int layers_a,
                                                          const Edited& b, int layers_b) {
  const Program &p = a.program, &q = b.program;
  std::vector<std::size_t> follow;
  std::vector<LayerClass> classes = q.classes;
  if (p.classes.size() != classes.size()) return std::nullopt;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (p.classes[c].per_rank != layers_a || classes[c].per_rank != layers_b) continue;
    follow.push_back(c);
    classes[c].per_rank = layers_a;
  }
  const bool same = p.classes == classes && p.dimensions == q.dimensions && p.order == q.order &&
                    p.tensors == q.tensors && p.ops == q.ops && a.mesh == b.mesh &&
                    a.derived == b.derived && a.plan_degrees == b.plan_degrees &&
                    SameRefusals(a, b);
  if (!same || follow.empty()) return std::nullopt;
  return follow;
}

}  // namespace shardlab
