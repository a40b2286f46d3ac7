#pragma once
// How the groups of a plan lie on the machine. Ranks are numbered mixed-radix in the mesh's rank
// order; a tier's domain is a run of neighbouring ranks.
//
//   SpanTable spans(mesh, tiers);
//   spans.Set(plan);                      // strides; no allocation
//   Span span = spans.Of(mask, pipeline_rank);
//
// Where groups of one pipeline rank differ (a group that starts in mid-server), the worst of them:
// the fewest ranks in a domain, the most domains.

#include <array>
#include <vector>

#include "domain/machine.h"
#include "domain/mesh.h"
#include "domain/plan.h"

namespace shardlab {

class SpanTable {
 public:
  SpanTable(const Mesh& mesh, const std::vector<Tier>& tiers);

  void Set(const Plan& plan);
  // True when every pipeline rank has the same spans, so that rank 0 stands for all.
  bool Uniform() const { return uniform_; }
  Span Of(AtomMask mask, int pipeline_rank) const;
  // A message between neighbouring pipeline ranks; the outermost tier that any of them crosses.
  Span PipelineHop() const;
  // The first rank of the group and how far apart its members are, for the report.
  int Stride(AtomMask mask) const;

 private:
  bool Aligned(AtomMask mask) const;
  Span Enumerate(AtomMask mask, int pipeline_rank) const;

  std::vector<int> order_;   // atom index, fastest first; -1 = the pipeline
  std::vector<int> domain_;  // devices of each tier's domain
  std::array<int, kMaxAtoms> size_{}, stride_{};
  int pipeline_ = 1, pipeline_stride_ = 1, world_ = 1;
  bool uniform_ = true;
};

}  // namespace shardlab
