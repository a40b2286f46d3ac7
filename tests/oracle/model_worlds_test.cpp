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
TEST(ModelWorldsTest, LatentAttention) { RunAll("latent attention", ShippedExperts(true), true); }

}  // namespace
}  // namespace shardlab::oracle
