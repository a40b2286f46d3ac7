#include "domain/mesh.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardlab {

const char* Name(AxisRole role) {
  switch (role) {
    case AxisRole::kTensor:
      return "tensor";
    case AxisRole::kContext:
      return "context";
    case AxisRole::kExpert:
      return "expert";
    case AxisRole::kPipeline:
      return "pipeline";
    case AxisRole::kData:
      return "data";
    case AxisRole::kHost:
      return "host";
  }
  return "data";
}

AtomId Mesh::AddAtom(Atom atom) {
  atoms_.push_back(std::move(atom));
  return AtomId(atoms_.size() - 1);
}

AxisId Mesh::AddAxis(Axis axis) {
  axes_.push_back(std::move(axis));
  return AxisId(axes_.size() - 1);
}

AxisId Mesh::Find(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return AxisId(i);
  }
  return AxisId();
}

AxisId Mesh::Find(AxisRole role) const {
  AxisId found;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].role != role) continue;
    if (!axes_[i].borrows) return AxisId(i);
    if (!found.valid()) found = AxisId(i);
  }
  return found;
}

AxisRole Mesh::RoleOf(AtomMask mask) const {
  // An axis that borrows explains the traffic over exactly its own ranks (an all-to-all between
  // experts); a group that also spans ranks of the lending axis belongs to that one (gradients over
  // expert x rest).
  for (const Axis& axis : axes_) {
    if (axis.borrows && (mask & axis.atoms & ~axis.spans) != 0 && (mask & ~axis.atoms) == 0)
      return axis.role;
  }
  AxisRole role = AxisRole::kTensor;
  for (const Axis& axis : axes_) {
    if (!axis.borrows && (axis.atoms & mask) != 0) role = std::max(role, axis.role);
  }
  return role;
}

std::string Mesh::NameOf(AtomMask mask, AtomMask absent) const {
  std::string out;
  const auto append = [&out](const std::string& name) { out += (out.empty() ? "" : ".") + name; };
  for (const Axis& axis : axes_) {
    if (axis.borrows && axis.atoms == mask && axis.atoms != axis.spans) return axis.name;
  }
  std::vector<std::string> parts;
  for (const bool borrows : {false, true}) {
    for (const Axis& axis : axes_) {
      if (axis.borrows != borrows || (axis.atoms & mask) == 0 ||
          (axis.atoms & ~mask & ~absent) != 0)
        continue;
      if (borrows) {
        parts.push_back(axis.name);
      } else {
        append(axis.name);
      }
      mask = static_cast<AtomMask>(mask & ~axis.atoms);
    }
  }
  // Borrowers and parts of axes, by the alphabet. The one part of a borrower that is there needs no
  // lender's name: how many lenders there are does not matter, nor who came first.
  for (std::size_t a = 0; a < atoms_.size(); ++a) {
    if (!(mask >> a & 1)) continue;
    const Axis& owner = axis(atoms_[a].owner);
    const bool alone =
        owner.borrows &&
        std::has_single_bit(static_cast<AtomMask>(mask & owner.atoms & ~owner.spans));
    parts.push_back(alone ? owner.name : atoms_[a].name);
  }
  std::sort(parts.begin(), parts.end());
  for (const std::string& part : parts) append(part);
  return out;
}

std::vector<AtomId> Mesh::Nesting(bool batch_or_sequence) const {
  constexpr std::array<AxisRole, 3> kRoles = {AxisRole::kData, AxisRole::kContext,
                                              AxisRole::kTensor};
  std::vector<AtomId> order;
  for (const AxisRole role : kRoles) {
    for (const Axis& axis : axes_) {
      if (axis.borrows || axis.role != role) continue;
      order.insert(order.end(), axis.order.begin(), axis.order.end());
    }
  }
  if (batch_or_sequence) return order;
  // Tensor first, its own atoms in their order: kv heads outside, queries of a kv head inside. Then
  // what is borrowed from the replicas (experts, a server's share of a shard), context, and the
  // replicas that are left.
  std::vector<AtomId> others;
  const auto append = [&](AxisRole role, auto&& wanted, bool outermost_first) {
    for (const Axis& axis : axes_) {
      if (axis.borrows || axis.role != role) continue;
      std::vector<AtomId> atoms = axis.order;
      if (!outermost_first) std::reverse(atoms.begin(), atoms.end());
      for (const AtomId atom : atoms) {
        if (wanted(atom)) others.push_back(atom);
      }
    }
  };
  const auto all = [](AtomId) { return true; };
  const auto lent = [this](AtomId atom) { return axis(atoms_[atom.index()].owner).borrows; };
  append(AxisRole::kTensor, all, true);
  append(AxisRole::kData, lent, false);
  append(AxisRole::kContext, all, false);
  append(
      AxisRole::kData, [&](AtomId atom) { return !lent(atom); }, false);
  return others;
}

}  // namespace shardlab
