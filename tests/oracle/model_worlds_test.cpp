// The rows of the shipped models on tiny worlds: norms, biases, positions, tied heads, parallel
// blocks, latent attention and shared experts under the plain strategies of this folder.

#include <gtest/gtest.h>

#include "oracle/shipped_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

Choice Laid(bool sequence_parallel) {
  return TensorParallel({.sequence_parallel = sequence_parallel, .experts = ExpertTensor::kSliced});
}

void RunAll(const char* what, const Program& rolled, bool experts) {
  const Setting setting(Unroll(rolled), {});
  Tally tally;
  Choices data = {DataParallel()};
  if (experts) data.push_back(ExpertParallel());
  for (const Choices& choices : Product({
           {{}, data},
           {{}, {Laid(false)}, {Laid(true)}},
           {{}, {ContextGather()}},
           {{}, {RecomputeSelective()}, {RecomputeBlock(1)}},
       })) {
    const bool all = choices.size() <= 2;
    RunEveryMesh(setting, choices, 8, tally, [all](int number) { return all || number % 7 == 2; });
  }
  Choices state = data;
  state.push_back(ZeroStage(3));
  for (const Choices& choices : Product({{state}, {{}, {Laid(false)}, {Laid(true)}}}))
    RunEveryMesh(setting, choices, 8, tally, [](int number) { return number % 3 == 1; });
  Conclude(tally, what);
}

TEST(ModelWorldsTest, LayerNormsBiasesAndATiedHead) { RunAll("gpt", ShippedGpt(), false); }
TEST(ModelWorldsTest, ParallelBlocks) { RunAll("parallel blocks", ShippedParallel(), false); }
TEST(ModelWorldsTest, NormsOfWholeProjections) {
  RunAll("norms of whole projections", ShippedRelative(false), false);
}
TEST(ModelWorldsTest, NormsWithoutWeights) {
  RunAll("norms without weights", ShippedRelative(true), false);
}
TEST(ModelWorldsTest, SharedExperts) { RunAll("shared experts", ShippedExperts(false), true); }
TEST(ModelWorldsTest, RoutingWeightsInsideTheExperts) {
  RunAll("routing weights inside", ShippedWeightsInside(), true);
}
// The unsharded run is of the layers in their order; so are the worlds, also where every other
// layer is recomputed.
TEST(ModelWorldsTest, LayersWithAndWithoutExpertsTakeTurns) {
  const Program rolled = ShippedTurns();
  const Setting setting(Unroll(rolled), {});
  ASSERT_EQ(setting.program.classes.size(), 7u);
  const char* kinds[] = {"dense layer 0", "dense layer 1", "layer 0", "dense layer 2", "layer 1"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(setting.program.classes[i + 1].name, kinds[i]);
  Tally tally;
  for (const Choices& choices :
       Product({{{DataParallel(), ExpertParallel()}},
                {{}, {Laid(true)}},
                {{}, {RecomputeBlock(1)}, {RecomputeSome(2, 0)}, {RecomputeSome(1, 3)}}})) {
    const std::optional<Edited> edited = ApplyThenUnroll(rolled, choices);
    ASSERT_TRUE(edited.has_value());
    RunEveryMesh(setting, choices, *edited, 8, tally, [](int number) { return number % 3 == 1; });
  }
  Conclude(tally, "layers that take turns");
}

TEST(ModelWorldsTest, LatentAttention) { RunAll("latent attention", ShippedExperts(true), true); }

}  // namespace
}  // namespace shardlab::oracle
