#include "oracle/worlds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/derive.h"

namespace shardlab::oracle {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kFailuresShown = 20;

// The degrees of an axis's own atoms, given the whole of its own degree. A dimension that caps
// atoms of several axes is what is left of it.
void SplitOverAtoms(const Edited& edited, AxisId id, int own, std::map<std::string, int>& taken,
                    std::vector<int>& degrees) {
  for (const AtomId atom : edited.mesh.axis(id).order) {
    const Atom& row = edited.mesh.atoms()[atom.index()];
    if (row.owner != id) continue;
    int size = own;
    if (!row.bound.empty()) {
      const DimensionId dim = edited.program.FindDimension(row.bound);
      int& used = taken.emplace(row.bound, 1).first->second;
      size = !dim.valid()
                 ? 1
                 : std::gcd(own, std::max(1, static_cast<int>(edited.program.dimension(dim).size) /
                                                 used));
      used *= size;
    }
    degrees[atom.index()] = size;
    own /= size;
  }
}

// The axes that multiply the world, and then the atoms that are borrowed from them.
struct Choosers {
  std::vector<AxisId> axes;
  std::vector<AtomId> atoms;
};

Choosers ChoosersOf(const Mesh& mesh) {
  Choosers all;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    if (!mesh.axes()[i].borrows) {
      all.axes.emplace_back(i);
      continue;
    }
    for (const AtomId atom : mesh.axes()[i].order) all.atoms.push_back(atom);
  }
  return all;
}

// The index in `axes` of the one that holds this atom.
std::size_t LenderOf(const Mesh& mesh, const Choosers& choosers, AtomId atom) {
  std::size_t lender = 0;
  while ((mesh.axis(choosers.axes[lender]).atoms & Bit(atom)) == 0) ++lender;
  return lender;
}

// A part of an atom that a dimension caps is capped by it too: what the parts before it have left,
// 0 without a cap.
int RoomFor(const Edited& edited, const Choosers& choosers, std::size_t borrowed,
            const std::vector<int>& degrees) {
  const auto bound_of = [&](std::size_t i) -> const std::string& {
    return edited.mesh.atoms()[choosers.atoms[i].index()].bound;
  };
  const DimensionId dim = edited.program.FindDimension(bound_of(borrowed));
  if (!dim.valid()) return 0;
  int used = 1;
  for (std::size_t i = 0; i < borrowed; ++i) {
    if (bound_of(i) == bound_of(borrowed)) used *= degrees[choosers.atoms[i].index()];
  }
  return std::max(1, static_cast<int>(edited.program.dimension(dim).size) / used);
}

// A degree for axis after axis; then a borrowed atom takes a divisor of what its lender has left.
void Enumerate(const Edited& edited, const Choosers& choosers, std::size_t at, int ranks,
               std::vector<int> left, std::vector<int> degrees,
               std::vector<std::vector<int>>& result) {
  if (at < choosers.axes.size()) {
    for (int degree = 1; degree <= ranks; ++degree) {
      left[at] = degree;
      Enumerate(edited, choosers, at + 1, ranks / degree, left, degrees, result);
    }
    return;
  }
  const std::size_t borrowed = at - choosers.axes.size();
  if (borrowed < choosers.atoms.size()) {
    const AtomId atom = choosers.atoms[borrowed];
    const std::size_t lender = LenderOf(edited.mesh, choosers, atom);
    const int room = RoomFor(edited, choosers, borrowed, degrees);
    for (int degree = 1; degree <= left[lender]; ++degree) {
      if (left[lender] % degree != 0 || (room > 0 && room % degree != 0)) continue;
      std::vector<int> next = left;
      next[lender] /= degree;
      degrees[atom.index()] = degree;
      Enumerate(edited, choosers, at + 1, ranks, std::move(next), degrees, result);
    }
    return;
  }
  std::map<std::string, int> taken;
  for (const AtomId atom : choosers.atoms) {
    const std::string& bound = edited.mesh.atoms()[atom.index()].bound;
    if (!bound.empty()) taken.emplace(bound, 1).first->second *= degrees[atom.index()];
  }
  for (std::size_t i = 0; i < choosers.axes.size(); ++i)
    SplitOverAtoms(edited, choosers.axes[i], left[i], taken, degrees);
  result.push_back(std::move(degrees));
}

}  // namespace

std::optional<Edited> Apply(const Program& program, const Choices& choices) {
  std::vector<StrategyUse> uses;
  for (const Choice& choice : choices) uses.push_back({choice.name, choice.strategy.get(), {}});
  Diagnostics diagnostics;
  std::optional<Edited> edited =
      ApplyStrategies(program, uses, AccountingRules{}, "", Place{}, &diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    ADD_FAILURE() << NameOf(choices) << ": " << diagnostic.message;
  }
  return edited;
}

std::optional<Edited> ApplyThenUnroll(const Program& rolled, const Choices& choices) {
  std::optional<Edited> edited = Apply(rolled, choices);
  if (!edited) return std::nullopt;
  edited->program = Unroll(edited->program);
  edited->derived = Derive(edited->program, edited->mesh);
  return edited;
}

std::vector<std::vector<int>> Meshes(const Edited& edited, int ranks) {
  std::vector<std::vector<int>> result;
  if (edited.mesh.axes().empty()) return {{}};
  const Choosers choosers = ChoosersOf(edited.mesh);
  Enumerate(edited, choosers, 0, ranks, std::vector<int>(choosers.axes.size(), 1),
            std::vector<int>(edited.mesh.atoms().size(), 1), result);
  return result;
}

std::string WhatIsWrong(const Setting& setting, const Edited& edited, const Derived& derived,
                        const std::vector<int>& degrees, Tally& tally) {
  ++tally.worlds;
  try {
    ToyMachine machine(edited.program, edited.mesh, derived, degrees, setting.job);
    const Agreement agreement = machine.Run(&setting.expected);
    tally.numbers += agreement.numbers;
    tally.worst = std::max(tally.worst, agreement.worst);
    if (agreement.worst > kTolerance)
      return absl::StrCat("off by ", agreement.worst, " in ", agreement.where);
    for (std::size_t t = 0; t < setting.program.tensors.size(); ++t) {
      const bool expected = !setting.expected.gradients[0][t].empty() ||
                            !setting.expected.parameter_gradients[t].empty();
      if (expected && agreement.gradients.count(TensorId(t)) == 0) {
        return absl::StrCat("never had the gradient of ", setting.program.tensors[t].name);
      }
    }
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

void RunEveryMesh(const Setting& setting, const Choices& choices, int ranks, Tally& tally,
                  const std::function<bool(int)>& take) {
  if (const std::optional<Edited> edited = Apply(setting.program, choices)) {
    RunEveryMesh(setting, choices, *edited, ranks, tally, take);
  }
}

void RunEveryMesh(const Setting& setting, const Choices& choices, const Edited& edited, int ranks,
                  Tally& tally, const std::function<bool(int)>& take) {
  ++tally.compositions;
  int number = 0;
  for (const std::vector<int>& degrees : Meshes(edited, ranks)) {
    if (take && !take(number++)) continue;
    if (kSanitized && ++tally.skipped % 20 != 0) continue;
    const std::string wrong = WhatIsWrong(setting, edited, edited.derived, degrees, tally);
    if (wrong.empty()) continue;
    if (++tally.failures <= kFailuresShown)
      ADD_FAILURE() << NameOf(choices) << NameOf(edited, degrees) << ": " << wrong;
  }
}

std::string NameOf(const Choices& choices) {
  std::string name;
  for (const Choice& choice : choices)
    absl::StrAppend(&name, name.empty() ? "" : ", ", choice.name);
  return "{" + name + "}";
}

std::string NameOf(const Edited& edited, const std::vector<int>& degrees) {
  std::string name;
  for (std::size_t a = 0; a < degrees.size(); ++a)
    absl::StrAppend(&name, " ", edited.mesh.atoms()[a].name, "=", degrees[a]);
  return name;
}

void Conclude(const Tally& tally, const char* what) {
  std::printf("%s: %d compositions, %d worlds, %zu numbers, worst difference %.1e, %d failures\n",
              what, tally.compositions, tally.worlds, tally.numbers, tally.worst, tally.failures);
  EXPECT_GT(tally.worlds, 0);
  EXPECT_EQ(tally.failures, 0);
}

std::vector<Choices> Product(const std::vector<std::vector<Choices>>& lists) {
  std::vector<Choices> result = {{}};
  for (const std::vector<Choices>& list : lists) {
    std::vector<Choices> longer;
    for (const Choices& start : result) {
      for (const Choices& end : list) {
        longer.push_back(start);
        longer.back().insert(longer.back().end(), end.begin(), end.end());
      }
    }
    result = std::move(longer);
  }
  return result;
}

}  // namespace shardlab::oracle
