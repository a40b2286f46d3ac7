// Does the oracle bite? Every step of a good set of derivations is dropped, done twice, sent over
// another group, by another collective, to another placement; every saved tensor is dropped. The
// machine must notice each one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "oracle/description.h"
#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

struct Mutation {
  std::string kind, what;
  Derived derived;
};
using Mutations = std::vector<Mutation>;

constexpr Collective kCollectives[] = {Collective::kSlice,     Collective::kAllReduce,
                                       Collective::kAllGather, Collective::kReduceScatter,
                                       Collective::kAllToAll,  Collective::kSendRecv};

Derived Replaced(const Derived& derived, std::size_t step, std::vector<Step> by) {
  Derived mutated = derived;
  const auto at = mutated.steps.erase(mutated.steps.begin() + static_cast<std::ptrdiff_t>(step));
  mutated.steps.insert(at, by.begin(), by.end());
  return mutated;
}

// The same move to another placement, group and collective to fit; false where no single collective
// does that.
bool Redirect(Step& step, std::size_t atom, Layout layout) {
  step.target.at.Set(atom, layout);
  step.group = 0;
  bool first = true;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    Collective collective;
    if (!MoveOf(step.source.at.at(a), step.target.at.at(a), &collective)) continue;
    if (!first && collective != step.collective) return false;
    first = false;
    step.collective = collective;
    step.group = static_cast<AtomMask>(step.group | 1u << a);
  }
  return !first;
}

void MutateMove(const Edited& edited, std::size_t index, Mutations& mutations) {
  const Step& step = edited.derived.steps[index];
  const std::string what = Describe(edited, step);
  const auto add = [&](const char* kind, const Step& mutated) {
    mutations.push_back({kind, what + " | " + Describe(edited, mutated),
                         Replaced(edited.derived, index, {mutated})});
  };
  for (const Collective collective : kCollectives) {
    Step mutated = step;
    mutated.collective = collective;
    if (collective != step.collective) add("collective", mutated);
  }
  for (std::size_t a = 0; a < edited.mesh.atoms().size(); ++a) {
    Step other_group = step;
    other_group.group = static_cast<AtomMask>(step.group ^ 1u << a);
    add("group", other_group);
    std::vector<Layout> layouts = {Layout::Whole(), Layout::Sum(), Layout::Flat()};
    for (const DimensionId dim : edited.program.tensor(step.source.tensor).dims)
      layouts.push_back(Layout::Cut(dim));
    for (const Layout layout : layouts) {
      Step elsewhere = step;
      if (layout != step.target.at.at(a) && Redirect(elsewhere, a, layout))
        add("placement", elsewhere);
    }
  }
}

Mutations MutationsOf(const Edited& edited) {
  Mutations mutations;
  for (std::size_t i = 0; i < edited.derived.steps.size(); ++i) {
    const Step& step = edited.derived.steps[i];
    const std::string what = Describe(edited, step);
    mutations.push_back({"dropped", what, Replaced(edited.derived, i, {})});
    mutations.push_back({"twice", what, Replaced(edited.derived, i, {step, step})});
    if (step.kind == StepKind::kMove) MutateMove(edited, i, mutations);
  }
  for (std::size_t i = 0; i < edited.derived.saved.size(); ++i) {
    Derived mutated = edited.derived;
    const std::string what = Describe(edited, mutated.saved[i]);
    mutated.saved.erase(mutated.saved.begin() + static_cast<std::ptrdiff_t>(i));
    mutations.push_back({"unsaved", what, std::move(mutated)});
  }
  return mutations;
}

// The mesh with the most atoms of more than one rank, and the fewest ranks among those.
std::vector<int> MostInteresting(const Edited& edited, int ranks) {
  std::vector<int> best;
  std::pair<std::ptrdiff_t, int> score = {-1, 0};
  for (const std::vector<int>& degrees : Meshes(edited, ranks)) {
    int product = 1;
    for (const int degree : degrees) product *= degree;
    const std::pair<std::ptrdiff_t, int> here = {
        std::count_if(degrees.begin(), degrees.end(), [](int d) { return d > 1; }), -product};
    if (best.empty() || here > score) std::tie(best, score) = std::tie(degrees, here);
  }
  return best;
}

struct Result {
  int mutations = 0;
  std::map<std::string, int> noticed;    // by kind
  std::map<std::string, int> unnoticed;  // by kind and words
};

void MutateEverything(const Setting& setting, const Choices& choices, const Edited& edited,
                      Result& result) {
  const std::vector<int> degrees = MostInteresting(edited, 16);
  Tally tally;
  ASSERT_EQ(WhatIsWrong(setting, edited, edited.derived, degrees, tally), "") << NameOf(choices);
  for (const Mutation& mutation : MutationsOf(edited)) {
    ++result.mutations;
    if (!WhatIsWrong(setting, edited, mutation.derived, degrees, tally).empty()) {
      ++result.noticed[mutation.kind];
    } else {
      ++result.unnoticed[NameOf(choices) + " " + mutation.kind + ": " + mutation.what];
    }
  }
}

void MutateEverything(const Setting& setting, const Choices& choices, Result& result) {
  const std::optional<Edited> edited = Apply(setting.program, choices);
  ASSERT_TRUE(edited.has_value());
  MutateEverything(setting, choices, *edited, result);
}

// Mutations that change nothing, to the letter:
// - A block that is replayed whole makes its output once more. The next layer kept it, and nothing
// reads the second
//   one; replaying it is about time, not about numbers.
// - The kept input of such a block is listed as replayed too, for the layers of a segment behind
// the first. The
//   first one reads the kept one.
void Conclude(const Result& result, const std::vector<std::string>& equivalent = {}) {
  std::printf("mutations: %d", result.mutations);
  for (const auto& [kind, count] : result.noticed) std::printf(", %s %d", kind.c_str(), count);
  std::printf(" noticed, %zu equivalent\n", equivalent.size());
  std::vector<std::string> unnoticed;
  for (const auto& [words, count] : result.unnoticed) unnoticed.push_back(words);
  EXPECT_THAT(unnoticed, testing::UnorderedElementsAreArray(equivalent));
}

const Job kJob = {.batch = 4, .micro_batches = 2, .nudge = {}};

TEST(MutationsTest, EveryFaultInADenseDerivationIsNoticed) {
  if (kSanitized) GTEST_SKIP() << "says nothing about memory that shared segments do not say";
  const Setting setting(Unroll(ToyModel({.layers = 1})), kJob);
  Result result;
  for (const Choices& choices : std::vector<Choices>{
           {DataParallel()},
           {TensorParallel({})},
           {TensorParallel({.sequence_parallel = true})},
           {ContextGather()},
           {ContextUlysses()},
           {DataParallel(), TensorParallel({.sequence_parallel = true}), ZeroStage(1)},
           {DataParallel(), ContextGather(), ZeroStage(2)},
           {DataParallel(), TensorParallel({}), ZeroStage(3)},
           {DataParallel(), ZeroStage(3, true), RecomputeBlock(1)},
           {DataParallel(), HybridShard(), TensorParallel({.sequence_parallel = true})},
           {TensorParallel({.sequence_parallel = true}), ContextUlysses(), RecomputeSelective()},
           {DataParallel(), TensorParallel({}), ScatterThenGather()},
           {DataParallel(), ContextGather(), TwoLevel()},
           {TensorParallel({.sequence_parallel = true}), KeepGathered()},
       }) {
    MutateEverything(setting, choices, result);
  }
  Conclude(result,
           {"{data, zero-3 kept, recompute block/1} dropped: recompute: compute add2",
            "{data, zero-3 kept, recompute block/1} unsaved: saved embedded[ data:batch ] 2"});
}

TEST(MutationsTest, EveryFaultInADerivationWithExpertsIsNoticed) {
  if (kSanitized) GTEST_SKIP() << "says nothing about memory that shared segments do not say";
  const Setting setting(Unroll(ToyModel({.experts = true, .layers = 1})), kJob);
  Result result;
  for (const Choices& choices : std::vector<Choices>{
           {DataParallel(), ExpertParallel()},
           {DataParallel(), ExpertParallel(), ZeroStage(3)},
           {DataParallel(), ExpertParallel(),
            TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kWhole})},
           {DataParallel(), ExpertParallel(), TensorParallel({.sequence_parallel = true}),
            RecomputeSelective()},
           {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kSpread})},
           {TensorParallel({}), OpenCombine()},
       }) {
    MutateEverything(setting, choices, result);
  }
  Conclude(result);
}

TEST(MutationsTest, EveryFaultInSharedSegmentsIsNoticed) {
  const Program rolled = ToyModel({.layers = 2, .tied_embedding = true});
  const Setting setting(Unroll(rolled), kJob);
  Result result;
  for (const Choices& choices :
       std::vector<Choices>{{DataParallel(), ZeroStage(3), RecomputeBlock(2)},
                            {TensorParallel({}), RecomputeBlock(2)}}) {
    const std::optional<Edited> edited = ApplyThenUnroll(rolled, choices);
    ASSERT_TRUE(edited.has_value());
    MutateEverything(setting, choices, *edited, result);
  }
  Conclude(result, {"{data, zero-3, recompute block/2} dropped: recompute: compute add2",
                    "{data, zero-3, recompute block/2} unsaved: saved embedded[ data:batch ] 2",
                    "{tensor, recompute block/2} dropped: recompute: compute add2",
                    "{tensor, recompute block/2} unsaved: saved embedded[ ] 2"});
}

}  // namespace
}  // namespace shardlab::oracle
