// Every tiny world of the mixture of experts: expert parallelism that borrows from data, three ways
// to lay the experts over tensor parallelism, on all meshes of at most eight ranks (every third of
// them where many strategies meet).

#include <gtest/gtest.h>

#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

constexpr int kRanks = 8;

Choice Laid(ExpertTensor experts, bool sequence_parallel) {
  return TensorParallel({.sequence_parallel = sequence_parallel, .experts = experts});
}

const std::vector<Choices> kTensor = {
    {},
    {Laid(ExpertTensor::kSliced, false)},
    {Laid(ExpertTensor::kSliced, true)},
    {Laid(ExpertTensor::kWhole, false)},
    {Laid(ExpertTensor::kWhole, true)},
    {Laid(ExpertTensor::kSpread, false)},
    {Laid(ExpertTensor::kSpread, true)},
    {Laid(ExpertTensor::kSliced, false), OpenCombine()},
};
const std::vector<Choices> kContext = {{}, {ContextGather()}, {ContextUlysses()}};
const std::vector<Choices> kData = {{}, {DataParallel()}, {DataParallel(), ExpertParallel()}};
const std::vector<Choices> kState = {
    {DataParallel(), ExpertParallel(), ZeroStage(1)},
    {DataParallel(), ExpertParallel(), ZeroStage(2)},
    {DataParallel(), ExpertParallel(), ZeroStage(3)},
    {DataParallel(), ExpertParallel(), ZeroStage(3, true)},
    {DataParallel(), ExpertParallel(), HybridShard()},
};
const std::vector<Choices> kActivations = {
    {RecomputeSelective()}, {RecomputeBlock(1)}, {KeepGathered()}};
const std::vector<Choices> kRealised = {{ScatterThenGather()}, {TwoLevel()}};

// Few strategies: all meshes; more than `few` together: every third.
void RunAll(const char* what, const ToyModelOptions& model, Job job, std::size_t few,
            const std::vector<std::vector<Choices>>& lists) {
  const Setting setting(Unroll(ToyModel(model)), job);
  Tally tally;
  for (const Choices& choices : Product(lists)) {
    const bool all = choices.size() <= few;
    RunEveryMesh(setting, choices, kRanks, tally,
                 [all](int number) { return all || number % 3 == 1; });
  }
  Conclude(tally, what);
}

TEST(ExpertWorldsTest, Cuts) {
  RunAll("experts, cuts", {.experts = true}, {}, 9, {kData, kTensor, kContext});
}

TEST(ExpertWorldsTest, CutsThatDoNotDivide) {
  RunAll("experts, cuts that do not divide", {.experts = true, .layers = 1, .sizes = kUnevenSizes},
         {.batch = 5}, 3, {kData, kTensor, kContext});
}

TEST(ExpertWorldsTest, CutsAndState) {
  RunAll("experts, cuts and state", {.experts = true, .layers = 1}, {}, 4,
         {kTensor, kContext, kState});
}

TEST(ExpertWorldsTest, CutsAndActivations) {
  RunAll("experts, cuts and activations", {.experts = true, .layers = 1}, {}, 3,
         {kData, kTensor, kContext, kActivations});
}

TEST(ExpertWorldsTest, CutsAndRealisedTransfers) {
  RunAll("experts, cuts and realised transfers", {.experts = true, .layers = 1}, {}, 3,
         {kData, kTensor, kContext, kRealised});
}

}  // namespace
}  // namespace shardlab::oracle
