#include "core/span.h"

#include <algorithm>
#include <bit>

namespace shardlab {

namespace {

constexpr bool PowerOfTwo(int n) { return (n & (n - 1)) == 0; }

// Of `size` ranks that lie `stride` apart, how many a domain holds.
int Inside(int domain, int stride, int size) {
  if (stride * size <= domain) return size;
  return 2 * stride > domain ? 1 : domain / stride;
}

}  // namespace

SpanTable::SpanTable(const Mesh& mesh, const std::vector<Tier>& tiers) {
  for (const AtomId atom : mesh.rank_order())
    order_.push_back(atom.valid() ? static_cast<int>(atom.index()) : -1);
  for (const Tier& tier : tiers) domain_.push_back(tier.devices);
  size_.fill(1);
  stride_.fill(1);
}

void SpanTable::Set(const Plan& plan) {
  int stride = 1;
  for (const int atom : order_) {
    const int size = atom < 0 ? plan.pipeline : plan.atom[static_cast<std::size_t>(atom)];
    if (atom < 0) {
      pipeline_stride_ = stride;
      pipeline_ = size;
    } else {
      stride_[static_cast<std::size_t>(atom)] = stride;
      size_[static_cast<std::size_t>(atom)] = size;
    }
    stride *= size;
  }
  world_ = stride;
  uniform_ = Aligned(static_cast<AtomMask>((1u << kMaxAtoms) - 1));
}

// Every atom of the mask fills whole domains or whole parts of one: then all groups lie alike.
bool SpanTable::Aligned(AtomMask mask) const {
  for (const int domain : domain_) {
    if (domain >= world_) continue;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const auto a = static_cast<std::size_t>(std::countr_zero(rest));
      if (size_[a] == 1) continue;
      const int reach = stride_[a] * size_[a];
      // Powers of two always nest: no division, which is most of what a span costs.
      if (PowerOfTwo(domain) && PowerOfTwo(stride_[a]) && PowerOfTwo(size_[a])) continue;
      const bool inside = domain % reach == 0;
      const bool fills = stride_[a] <= domain ? domain % stride_[a] == 0 && reach % domain == 0
                                              : stride_[a] % domain == 0;
      if (!inside && !fills) return false;
    }
  }
  return true;
}

Span SpanTable::Of(AtomMask mask, int pipeline_rank) const {
  if (!uniform_ && !Aligned(mask)) return Enumerate(mask, pipeline_rank);
  Span span;
  span.size = 1;
  for (unsigned rest = mask; rest != 0; rest &= rest - 1)
    span.size *= size_[static_cast<std::size_t>(std::countr_zero(rest))];
  span.outermost = static_cast<int>(domain_.size()) - 1;
  for (std::size_t tier = 0; tier < domain_.size(); ++tier) {
    int ranks = 1;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const auto a = static_cast<std::size_t>(std::countr_zero(rest));
      ranks *= Inside(domain_[tier], stride_[a], size_[a]);
    }
    span.ranks[tier] = ranks;
    span.domains[tier] = ranks == 1 ? span.size : ranks == span.size ? 1 : span.size / ranks;
    if (ranks == span.size) span.outermost = std::min(span.outermost, static_cast<int>(tier));
  }
  return span;
}

Span SpanTable::Enumerate(AtomMask mask, int pipeline_rank) const {
  // Members of a group differ from its base rank by the mask's coordinates; bases are all other
  // coordinates of this pipeline rank.
  Span worst;
  worst.size = 1;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if (mask >> a & 1) worst.size *= size_[a];
  }
  worst.ranks.fill(worst.size);
  worst.domains.fill(1);
  for (int base = 0; base < world_; ++base) {
    bool is_base = base / pipeline_stride_ % pipeline_ == pipeline_rank;
    for (std::size_t a = 0; a < kMaxAtoms && is_base; ++a) {
      if ((mask >> a & 1) && base / stride_[a] % size_[a] != 0) is_base = false;
    }
    if (!is_base) continue;
    for (std::size_t tier = 0; tier < domain_.size(); ++tier) {
      int domains = 0, fewest = worst.size, run = 0, last = -1;
      for (int member = 0; member < worst.size; ++member) {
        int rank = base, rest = member;
        for (const int atom : order_) {  // fastest first, so ranks come in ascending order
          if (atom < 0 || !(mask >> atom & 1)) continue;
          const auto a = static_cast<std::size_t>(atom);
          rank += rest % size_[a] * stride_[a];
          rest /= size_[a];
        }
        const int domain = rank / domain_[tier];
        if (domain != last) {
          if (last >= 0) fewest = std::min(fewest, run);
          ++domains;
          run = 0;
          last = domain;
        }
        ++run;
      }
      fewest = std::min(fewest, run);
      worst.ranks[tier] = std::min(worst.ranks[tier], fewest);
      worst.domains[tier] = std::max(worst.domains[tier], domains);
    }
  }
  worst.outermost = static_cast<int>(domain_.size()) - 1;
  for (std::size_t tier = domain_.size(); tier-- > 0;) {
    if (worst.domains[tier] == 1) worst.outermost = static_cast<int>(tier);
  }
  return worst;
}

Span SpanTable::PipelineHop() const {
  Span span;
  span.size = 2;
  span.outermost = static_cast<int>(domain_.size()) - 1;
  const int reach = pipeline_stride_ * pipeline_;
  for (std::size_t tier = domain_.size(); tier-- > 0;) {
    const bool inside = reach <= domain_[tier] && domain_[tier] % reach == 0;
    const bool all = domain_[tier] >= world_;
    span.ranks[tier] = inside || all ? 2 : 1;
    span.domains[tier] = inside || all ? 1 : 2;
    if (inside || all) span.outermost = static_cast<int>(tier);
  }
  return span;
}

int SpanTable::Stride(AtomMask mask) const {
  int stride = world_;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if ((mask >> a & 1) && size_[a] > 1) stride = std::min(stride, stride_[a]);
  }
  return stride;
}

}  // namespace shardlab
