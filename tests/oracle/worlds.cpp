#include "oracle/worlds.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/derive.h"

namespace shardlab::oracle {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kFailuresShown = 20;

// The degrees of an axis's own atoms, given the whole of its own degree.
void SplitOverAtoms(const Edited& edited, AxisId id, int own, std::vector<int>& degrees) {
  for (const AtomId atom : edited.mesh.axis(id).order) {
    const Atom& row = edited.mesh.atoms()[atom.index()];
    if (row.owner != id) continue;
    int size = own;
    if (!row.bound.empty()) {
      const DimensionId dim = edited.program.FindDimension(row.bound);
      if (dim.valid()) size = std::gcd(own, static_cast<int>(edited.program.dimension(dim).size));
    }
    degrees[atom.index()] = size;
    own /= size;
  }
}

bool Lends(const Mesh& mesh, const Axis& lender, AxisId borrower) {
  return !lender.borrows && (lender.atoms & mesh.axis(borrower).atoms) != 0;
}

// Degrees for axis after axis; a borrower takes a divisor of what its lender has left.
void Enumerate(const Edited& edited, std::size_t axis, int ranks, std::vector<int> left,
               std::vector<std::vector<int>>& result) {
  const std::vector<Axis>& axes = edited.mesh.axes();
  if (axis == 2 * axes.size()) {
    std::vector<int> degrees(edited.mesh.atoms().size(), 1);
    for (std::size_t i = 0; i < axes.size(); ++i)
      SplitOverAtoms(edited, AxisId(i), left[i], degrees);
    result.push_back(std::move(degrees));
    return;
  }
  const bool borrowers = axis >= axes.size();  // lenders first
  const std::size_t i = axis % axes.size();
  if (axes[i].borrows != borrowers)
    return Enumerate(edited, axis + 1, ranks, std::move(left), result);
  std::size_t lender = 0;
  while (borrowers && !Lends(edited.mesh, axes[lender], AxisId(i))) ++lender;
  const int most = borrowers ? left[lender] : ranks;
  for (int degree = 1; degree <= most; ++degree) {
    if (borrowers && left[lender] % degree != 0) continue;
    std::vector<int> next = left;
    next[i] = degree;
    if (borrowers) next[lender] /= degree;
    Enumerate(edited, axis + 1, borrowers ? ranks : ranks / degree, std::move(next), result);
  }
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
  Enumerate(edited, 0, ranks, std::vector<int>(edited.mesh.axes().size(), 1), result);
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
