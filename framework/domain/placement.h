#pragma once
// Where the pieces of a tensor are: for each atom of the mesh whole copies, a cut of one dimension,
// a cut of the flattened tensor (state between uses), or a partial sum or maximum that is still to
// be reduced.
//
//   Placement p;                                  // whole everywhere
//   p.Set(tensor_atom, Layout::Cut(heads));       // cut along heads over the tensor atom

#include <array>
#include <compare>
#include <cstdint>

#include "base/ids.h"
#include "domain/mesh.h"

namespace shardlab {

using DimensionId = Id<struct DimensionTag>;

class Layout {
 public:
  constexpr Layout() = default;  // whole
  static constexpr Layout Whole() { return Layout(-1); }
  static constexpr Layout Sum() {
    return Layout(-2);
  }  // partial sum: add over the atom to get the value
  static constexpr Layout Max() { return Layout(-3); }   // partial maximum
  static constexpr Layout Flat() { return Layout(-4); }  // cut of the flattened local tensor
  static constexpr Layout Cut(DimensionId dim) {
    return Layout(static_cast<std::int8_t>(dim.value()));
  }

  constexpr bool whole() const { return code_ == -1; }
  constexpr bool sum() const { return code_ == -2; }
  constexpr bool max() const { return code_ == -3; }
  constexpr bool flat() const { return code_ == -4; }
  constexpr bool partial() const { return sum() || max(); }
  constexpr bool cut() const { return code_ >= 0; }  // of a dimension
  constexpr DimensionId dim() const { return DimensionId(static_cast<std::size_t>(code_)); }

  friend constexpr bool operator==(Layout, Layout) = default;
  friend constexpr auto operator<=>(Layout, Layout) = default;

 private:
  constexpr explicit Layout(std::int8_t code) : code_(code) {}
  std::int8_t code_ = -1;
};

class Placement {
 public:
  constexpr Layout at(AtomId atom) const { return layout_[atom.index()]; }
  constexpr Layout at(std::size_t atom) const { return layout_[atom]; }
  constexpr void Set(AtomId atom, Layout layout) { layout_[atom.index()] = layout; }
  constexpr void Set(std::size_t atom, Layout layout) { layout_[atom] = layout; }

  // The atoms along which this dimension is cut; along which the layout is partial; ...
  constexpr AtomMask CutOf(DimensionId dim) const {
    return Where([dim](Layout l) { return l == Layout::Cut(dim); });
  }
  constexpr AtomMask Partial() const {
    return Where([](Layout l) { return l.partial(); });
  }
  constexpr AtomMask Flat() const {
    return Where([](Layout l) { return l.flat(); });
  }
  constexpr AtomMask AnyCut() const {
    return Where([](Layout l) { return l.cut() || l.flat(); });
  }

  template <class Predicate>
  constexpr AtomMask Where(Predicate predicate) const {
    AtomMask mask = 0;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if (predicate(layout_[a])) mask = static_cast<AtomMask>(mask | (1u << a));
    }
    return mask;
  }

  friend constexpr bool operator==(const Placement&, const Placement&) = default;
  friend constexpr auto operator<=>(const Placement&, const Placement&) = default;

 private:
  std::array<Layout, kMaxAtoms> layout_{};
};

}  // namespace shardlab
