#pragma once
// The ranks of a machine, factored into atoms. A named axis (tensor, data, expert, ...) is a set of
// atoms, so that "experts borrow their ranks from data parallelism" is ordinary: the data axis is
// {expert atom, rest} and the expert axis is {expert atom}. Rows mention atoms, never degrees; a
// Plan puts the numbers in.
//
//   Mesh mesh = ...;                            // made by compose from what the strategies declare
//   AtomMask mask = mesh.axis("data").atoms;    // which atoms a collective runs over

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/export.h"
#include "base/ids.h"

namespace shardlab {

using AtomId = Id<struct AtomTag>;
using AxisId = Id<struct AxisTag>;
using AtomMask = std::uint16_t;

inline constexpr int kMaxAtoms = 12;
inline constexpr int kMaxTiers = 4;

// What an axis is for; exposed and hidden communication is reported by role.
enum class AxisRole : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kData,
  kHost,  // of no axis: copies between a device and its host
};
inline constexpr int kAxisRoles = 6;
inline constexpr int kMeshRoles = 5;  // those that ranks may have
SHARDLAB_EXPORT const char* Name(
    AxisRole role);  // "tensor", "context", "expert", "pipeline", "data", "host"

struct Atom {
  std::string name;   // "tensor.kv_heads"
  AxisId owner;       // the axis whose degree it is a factor of
  std::string bound;  // dimension whose size caps the atom: it takes gcd(rest of the degree, size);
                      // "" = the rest
  int slot = 0;       // of a borrower's: which atom of the lender it is a part of

  friend bool operator==(const Atom&, const Atom&) = default;
};

struct Axis {
  std::string name;
  AxisRole role = AxisRole::kData;
  std::string author;  // the strategy that declared it
  Place place;         // of its degree in the scenario
  int degree = 0;      // the scenario's value; 0 = what is left of the machine
  AtomMask atoms = 0;
  std::vector<AtomId> order;  // its atoms, major first: cuts along this axis nest in this order
  bool borrows = false;       // its ranks are those of other axes; it does not multiply the world
  AtomMask spans = 0;         // of `atoms`: those of axes that belong to it as a whole

  friend bool operator==(const Axis&, const Axis&) = default;
};

class SHARDLAB_EXPORT Mesh final {
 public:
  AtomId AddAtom(Atom atom);
  AxisId AddAxis(Axis axis);

  const std::vector<Atom>& atoms() const { return atoms_; }
  const std::vector<Axis>& axes() const { return axes_; }
  const Axis& axis(AxisId id) const { return axes_[id.index()]; }
  Axis& axis(AxisId id) { return axes_[id.index()]; }
  AxisId Find(std::string_view name) const;  // invalid when there is none
  // The first axis with that role, or invalid. One that borrows only where there is no other.
  AxisId Find(AxisRole role) const;
  // The axis to which a transfer over these atoms is put down: that of its last (slowest) role.
  AxisRole RoleOf(AtomMask mask) const;
  // "tensor", "data", "data.context"; by whole axes where possible. `absent`: atoms of axes of one
  // rank; an axis is whole without them.
  std::string NameOf(AtomMask mask, AtomMask absent = 0) const;

  // Rank order, fastest first: atoms in the order in which neighbouring ranks differ. An invalid id
  // stands for the pipeline ranks, which no tensor is cut along.
  const std::vector<AtomId>& rank_order() const { return rank_order_; }
  void SetRankOrder(std::vector<AtomId> order) { rank_order_ = std::move(order); }

  // In which order cuts of one dimension nest, major first; the same for every tensor, so that each
  // transfer is possible inside its group. Batch and sequence: data, context, then tensor; which
  // tokens a rank has along one axis does not depend on the others (of every piece of an outer cut
  // its own share), so that each may move alone. All others the other way round: an inner cut is of
  // what the outer ones leave. Cuts of a flattened tensor nest as `others`.
  std::vector<AtomId> Nesting(bool batch_or_sequence) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;

 private:
  std::vector<Atom> atoms_;
  std::vector<Axis> axes_;
  std::vector<AtomId> rank_order_;
};

constexpr AtomMask Bit(AtomId atom) { return static_cast<AtomMask>(1u << atom.index()); }

// How a group of ranks lies over the machine's tiers (scale-up domain, servers, pods; innermost
// first). Where groups differ (a group that starts in mid-server), the worst: fewest ranks per
// domain.
struct Span {
  int size = 1;                          // ranks in the group
  std::array<int, kMaxTiers> ranks{};    // ranks of the group in one domain of this tier
  std::array<int, kMaxTiers> domains{};  // domains of this tier that the group touches
  int outermost = 0;  // index of the first tier whose domain holds the whole group

  friend bool operator==(const Span&, const Span&) = default;
};

}  // namespace shardlab
