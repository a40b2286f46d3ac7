#include "core/mesh_builder.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"

namespace shardlab {
namespace {

constexpr const char* kDefaultOrder = "tp-cp-ep-dp-pp";

bool IsBorrower(const AxisSpec& spec) { return !spec.borrow_from.empty() || !spec.spans.empty(); }

struct OrderWord {
  const char* word;
  AxisRole role;
};
constexpr std::array<OrderWord, kMeshRoles> kOrderWords = {{{"tp", AxisRole::kTensor},
                                                            {"cp", AxisRole::kContext},
                                                            {"ep", AxisRole::kExpert},
                                                            {"dp", AxisRole::kData},
                                                            {"pp", AxisRole::kPipeline}}};

std::vector<AxisRole> ParseOrder(const std::string& text, const Place& place,
                                 Diagnostics* diagnostics) {
  std::vector<AxisRole> roles;
  for (const absl::string_view word : absl::StrSplit(text, '-')) {
    for (const OrderWord& known : kOrderWords) {
      if (word == known.word && std::find(roles.begin(), roles.end(), known.role) == roles.end()) {
        roles.push_back(known.role);
      }
    }
  }
  const std::size_t words = static_cast<std::size_t>(std::count(text.begin(), text.end(), '-')) + 1;
  if (roles.size() == kMeshRoles && words == kMeshRoles) return roles;
  diagnostics->Error(
      "mesh.order", place,
      absl::StrCat("mesh order \"", text, "\" does not name each of the five axes once"),
      "write tp, cp, ep, dp and pp in some order, fastest first: \"tp-cp-ep-dp-pp\"");
  return ParseOrder(kDefaultOrder, place, diagnostics);
}

std::string AtomName(const AxisSpec& spec, std::size_t index) {
  if (spec.bounds.empty()) return spec.name;
  if (index < spec.bounds.size()) return absl::StrCat(spec.name, ".", spec.bounds[index]);
  return absl::StrCat(spec.name, ".rest");
}

// Of each role from which this axis borrows, the axis that somebody declares.
std::vector<const AxisSpec*> LendersOf(const AxisSpec& spec,
                                       const std::vector<DeclaredAxis>& axes) {
  std::vector<const AxisSpec*> lenders;
  for (const AxisRole role : spec.borrow_from) {
    const auto found = std::find_if(axes.begin(), axes.end(), [role](const DeclaredAxis& other) {
      return other.spec.role == role && !IsBorrower(other.spec);
    });
    if (found != axes.end()) lenders.push_back(&found->spec);
  }
  return lenders;
}

// One of each atom of a lender.
std::size_t AtomsNeeded(const AxisSpec& spec, const std::vector<DeclaredAxis>& axes) {
  if (!IsBorrower(spec)) return spec.bounds.size() + 1;
  std::size_t atoms = 0;
  for (const AxisSpec* lender : LendersOf(spec, axes)) atoms += lender->bounds.size() + 1;
  return atoms;
}

// The atoms of this axis that belong to it as a whole: not those that an axis of its own role has
// borrowed, which stands for a part of the same task.
AtomMask Spanned(const Mesh& mesh, const Axis& whole) {
  AtomMask atoms = whole.atoms;
  for (const AtomId atom : whole.order) {
    const Axis& owner = mesh.axis(mesh.atoms()[atom.index()].owner);
    if (owner.borrows && owner.role == whole.role)
      atoms = static_cast<AtomMask>(atoms & ~Bit(atom));
  }
  return atoms;
}

void Borrow(const DeclaredAxis& declared, const std::vector<DeclaredAxis>& axes, Mesh& mesh,
            Diagnostics* diagnostics) {
  const AxisId borrower = mesh.Find(declared.spec.name);
  if (!borrower.valid() || mesh.axis(borrower).atoms != 0) return;  // declared twice: said
  const std::vector<const AxisSpec*> lenders = LendersOf(declared.spec, axes);
  for (const AxisSpec* lender : lenders) {
    for (std::size_t slot = 0; slot <= lender->bounds.size(); ++slot) {
      std::string name = declared.spec.name;
      if (lenders.size() > 1) absl::StrAppend(&name, ".", Name(lender->role));
      const bool rest = slot == lender->bounds.size();
      if (!lender->bounds.empty())
        absl::StrAppend(&name, ".", rest ? "rest" : lender->bounds[slot]);
      const AtomId atom =
          mesh.AddAtom({name, borrower, rest ? "" : lender->bounds[slot], static_cast<int>(slot)});
      Axis& host = mesh.axis(mesh.Find(lender->role));
      host.order.push_back(atom);
      host.atoms = static_cast<AtomMask>(host.atoms | Bit(atom));
      Axis& own = mesh.axis(borrower);
      own.order.push_back(atom);
      own.atoms = static_cast<AtomMask>(own.atoms | Bit(atom));
    }
  }
  for (const AxisRole role : declared.spec.spans) {
    const AxisId whole = mesh.Find(role);
    if (!whole.valid() || mesh.axis(whole).borrows) continue;
    Axis& own = mesh.axis(borrower);
    own.spans = static_cast<AtomMask>(own.spans | Spanned(mesh, mesh.axis(whole)));
    own.atoms = static_cast<AtomMask>(own.atoms | own.spans);
  }
  if (lenders.empty() && !declared.spec.borrow_from.empty()) {
    std::vector<std::string> names;
    for (const AxisRole role : declared.spec.borrow_from) names.push_back(Name(role));
    diagnostics->Error("axis.lender", declared.place,
                       absl::StrCat("\"", declared.author,
                                    "\" borrows its ranks from an axis that nobody declares"),
                       absl::StrCat("use a strategy that has ranks of ", Enumerate(names, "or"),
                                    ", or leave the degree out"));
  }
}

}  // namespace

Mesh BuildMesh(const std::vector<DeclaredAxis>& axes, const std::string& order,
               const Place& order_place, Diagnostics* diagnostics) {
  Mesh mesh;
  for (const DeclaredAxis& declared : axes) {
    const AxisId same = mesh.Find(declared.spec.name);
    if (same.valid()) {
      Diagnostic clash{Severity::kError,
                       "axis.twice",
                       absl::StrCat("\"", declared.author, "\" and \"", mesh.axis(same).author,
                                    "\" both declare the axis \"", declared.spec.name, "\""),
                       declared.place,
                       "use one of the two",
                       {mesh.axis(same).place}};
      diagnostics->Add(std::move(clash));
      continue;
    }
    std::size_t atoms = 0;
    for (const DeclaredAxis& other : axes) atoms += AtomsNeeded(other.spec, axes);
    if (atoms > kMaxAtoms) {
      diagnostics->Error("mesh.atoms", declared.place,
                         absl::StrCat("the strategies factor the ranks into ", atoms, " atoms, ",
                                      kMaxAtoms, " are possible"));
      return mesh;
    }
    Axis axis;
    axis.name = declared.spec.name;
    axis.role = declared.spec.role;
    axis.author = declared.author;
    axis.place = declared.place;
    axis.degree = declared.spec.degree;
    axis.borrows = IsBorrower(declared.spec);
    const AxisId id = mesh.AddAxis(std::move(axis));
    if (mesh.axis(id).borrows) continue;
    for (std::size_t i = 0; i <= declared.spec.bounds.size(); ++i) {
      const std::string bound = i < declared.spec.bounds.size() ? declared.spec.bounds[i] : "";
      const AtomId atom = mesh.AddAtom({AtomName(declared.spec, i), id, bound, 0});
      mesh.axis(id).order.push_back(atom);
      mesh.axis(id).atoms = static_cast<AtomMask>(mesh.axis(id).atoms | Bit(atom));
    }
  }
  // A borrower's atoms join the lending axes as their innermost ones, so that they are neighbouring
  // ranks. Those of expert role come last: tokens must find all of their batch inside the group
  // that exchanges them.
  for (const bool experts : {false, true}) {
    for (const DeclaredAxis& declared : axes) {
      if (IsBorrower(declared.spec) && (declared.spec.role == AxisRole::kExpert) == experts)
        Borrow(declared, axes, mesh, diagnostics);
    }
  }
  std::vector<AtomId> ranks;
  const auto append = [&ranks](const Axis& axis) {
    for (auto atom = axis.order.rbegin(); atom != axis.order.rend(); ++atom) {
      if (std::find(ranks.begin(), ranks.end(), *atom) == ranks.end()) ranks.push_back(*atom);
    }
  };
  for (const AxisRole role :
       ParseOrder(order.empty() ? kDefaultOrder : order, order_place, diagnostics)) {
    if (role == AxisRole::kPipeline) ranks.push_back(AtomId());
    for (const Axis& axis : mesh.axes()) {
      if (axis.role == role) append(axis);
    }
  }
  mesh.SetRankOrder(std::move(ranks));
  return mesh;
}

AtomMask AtomsOf(const Mesh& mesh, const AxisPart& part) {
  if (part.role) {
    AtomMask mask = 0;
    for (const Axis& axis : mesh.axes()) {
      if (!axis.borrows && axis.role == *part.role) mask = static_cast<AtomMask>(mask | axis.atoms);
    }
    return mask;
  }
  const AxisId id = mesh.Find(part.axis);
  if (!id.valid()) return 0;
  if (part.atom < 0) return mesh.axis(id).atoms;
  int own = 0;
  AtomMask mask = 0;
  for (const AtomId atom : mesh.axis(id).order) {
    const Atom& row = mesh.atoms()[atom.index()];
    const int index = row.owner == id ? own++ : row.slot;
    if (index == part.atom) mask = static_cast<AtomMask>(mask | Bit(atom));
  }
  return mask;
}

}  // namespace shardlab
