#pragma once
// From the axes that strategies declare to atoms: bounds split an axis, borrowers carve theirs out
// of others.
//
//   MeshBuilder builder;  builder.Add(spec, "tensor", place);  ...  Mesh mesh =
//   builder.Build("tp-cp-ep-dp-pp", ...);

#include <string>
#include <vector>

#include "api/strategy.h"
#include "domain/mesh.h"

namespace shardlab {

struct DeclaredAxis {
  AxisSpec spec;
  std::string author;
  Place place;
};

// Diagnoses two axes of one name, a borrower with nobody to borrow from, too many atoms, and an
// order that is not a permutation of the five roles.
Mesh BuildMesh(const std::vector<DeclaredAxis>& axes, const std::string& order,
               const Place& order_place, Diagnostics* diagnostics);

// The atoms of a part: one of the axis's own with what others have borrowed of it, or all of its
// atoms. 0 when there is no such axis.
AtomMask AtomsOf(const Mesh& mesh, const AxisPart& part);

}  // namespace shardlab
