// Every tiny world of the dense model: all combinations of strategies on all meshes of at most
// eight ranks (the triple products on every third of them).

#include <gtest/gtest.h>

#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

constexpr int kRanks = 8;

const std::vector<Choices> kTensor = {
    {}, {TensorParallel({})}, {TensorParallel({.sequence_parallel = true})}};
const std::vector<Choices> kContext = {{}, {ContextGather()}, {ContextUlysses()}};
const std::vector<Choices> kData = {{}, {DataParallel()}};
const std::vector<Choices> kState = {
    {ZeroStage(1)},
    {ZeroStage(2)},
    {ZeroStage(3)},
    {ZeroStage(3, true)},
    {DataParallel(), ZeroStage(1)},
    {DataParallel(), ZeroStage(2)},
    {DataParallel(), ZeroStage(3)},
    {DataParallel(), ZeroStage(3, true)},
    {DataParallel(), HybridShard()},
};
const std::vector<Choices> kActivations = {
    {RecomputeSelective()}, {RecomputeBlock(1)}, {KeepGathered()}};
const std::vector<Choices> kRealised = {{ScatterThenGather()}, {TwoLevel()}};

void RunAll(const char* what, const ToyModelOptions& model, Job job,
            const std::vector<std::vector<Choices>>& lists,
            const std::function<bool(int)>& take = {}) {
  const Setting setting(Unroll(ToyModel(model)), job);
  Tally tally;
  for (const Choices& choices : Product(lists)) RunEveryMesh(setting, choices, kRanks, tally, take);
  Conclude(tally, what);
}

TEST(DenseWorldsTest, Cuts) { RunAll("dense, cuts", {}, {}, {kData, kTensor, kContext}); }

TEST(DenseWorldsTest, CutsThatDoNotDivide) {
  RunAll("dense, cuts that do not divide", {.sizes = kUnevenSizes}, {.batch = 5},
         {kData, kTensor, kContext});
}

TEST(DenseWorldsTest, CutsAndState) {
  RunAll("dense, cuts and state", {.layers = 1}, {}, {kTensor, kContext, kState});
}

// Optimizer state, or all state, in the memory of each rank's host.
TEST(DenseWorldsTest, CutsAndStateOnTheHost) {
  RunAll("dense, cuts and state on the host", {.layers = 1}, {},
         {kTensor,
          kContext,
          {{ZeroStage(1, false, OnHost::kOptimizer)},
           {DataParallel(), ZeroStage(1, false, OnHost::kOptimizer)},
           {DataParallel(), ZeroStage(2, false, OnHost::kOptimizer)},
           {DataParallel(), ZeroStage(3, false, OnHost::kOptimizer)},
           {DataParallel(), ZeroStage(3, false, OnHost::kAll)},
           {DataParallel(), ZeroStage(3, true, OnHost::kAll)},
           {DataParallel(), ZeroStage(2, false, OnHost::kAll)}}});
}

TEST(DenseWorldsTest, CutsAndActivations) {
  RunAll("dense, cuts and activations", {}, {}, {kData, kTensor, kContext, kActivations});
}

// Two and one layers share a kept input: of three layers, of which the last segment has but one.
TEST(DenseWorldsTest, SegmentsOfRecomputedLayers) {
  const Program rolled = ToyModel({.layers = 3});
  const Setting setting(Unroll(rolled), {});
  Tally tally;
  for (const Choices& choices : Product({kData,
                                         kTensor,
                                         kContext,
                                         {{}, {ZeroStage(3)}, {ZeroStage(3, true)}},
                                         {{RecomputeBlock(2)}}})) {
    const std::optional<Edited> edited = ApplyThenUnroll(rolled, choices);
    ASSERT_TRUE(edited.has_value());
    ASSERT_EQ(edited->program.classes.size(), 4u);
    RunEveryMesh(setting, choices, *edited, kRanks, tally);
  }
  Conclude(tally, "dense, segments of layers");
}

// Of three layers the first and third, or the first two; the others keep all.
TEST(DenseWorldsTest, SomeLayersAreRecomputed) {
  const Program rolled = ToyModel({.layers = 3});
  const Setting setting(Unroll(rolled), {});
  Tally tally;
  for (const Choices& choices : Product({kData,
                                         kTensor,
                                         {{}, {ZeroStage(3)}, {ZeroStage(3, true)}},
                                         {{RecomputeSome(2, 0)}, {RecomputeSome(1, 2)}}})) {
    const std::optional<Edited> edited = ApplyThenUnroll(rolled, choices);
    ASSERT_TRUE(edited.has_value());
    ASSERT_EQ(edited->program.classes.size(), 5u);
    const bool stride = choices.back().name.find("every 2") != std::string::npos;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(edited->program.classes[1 + layer].whole_block_recompute,
                stride ? layer != 1 : layer < 2);
    }
    RunEveryMesh(setting, choices, *edited, kRanks, tally);
  }
  Conclude(tally, "dense, some layers recomputed");
}

TEST(DenseWorldsTest, CutsAndRealisedTransfers) {
  RunAll("dense, cuts and realised transfers", {.layers = 1}, {},
         {kData, kTensor, kContext, kRealised});
}

}  // namespace
}  // namespace shardlab::oracle
