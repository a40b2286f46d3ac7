// Every tiny world of the mixture of experts: expert parallelism that borrows from data, three ways to lay the
// experts over tensor parallelism, on all meshes of at most eight ranks (a third of them where the numbers are
// many: running numbers, so that all degrees occur).

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
    {RecomputeSelective()}, {RecomputeBlock(1)}, {RecomputeBlock(2)}, {KeepGathered()}};
const std::vector<Choices> kRealised = {{ScatterThenGather()}, {TwoLevel()}};

bool EveryThird(int number) { return number % 3 == 1; }

void RunAll(const char* what, const ToyModelOptions& model, Job job, const std::vector<std::vector<Choices>>& lists,
            const std::function<bool(int)>& take = {}) {
  const Setting setting(Unroll(ToyModel(model)), job);
  Tally tally;
  for (const Choices& choices : Product(lists)) RunEveryMesh(setting, choices, kRanks, tally, take);
  Conclude(tally, what);
}

TEST(ExpertWorldsTest, Cuts) { RunAll("experts, cuts", {.experts = true}, {}, {kData, kTensor, kContext}); }

TEST(ExpertWorldsTest, CutsThatDoNotDivide) {
  RunAll("experts, cuts that do not divide", {.experts = true, .layers = 1, .sizes = kUnevenSizes}, {.batch = 5},
         {kData, kTensor, kContext});
}

TEST(ExpertWorldsTest, CutsAndState) {
  RunAll("experts, cuts and state", {.experts = true, .layers = 1}, {}, {kTensor, kContext, kState});
}

TEST(ExpertWorldsTest, CutsAndActivations) {
  RunAll("experts, cuts and activations", {.experts = true}, {}, {kData, kTensor, kContext, kActivations},
         EveryThird);
}

TEST(ExpertWorldsTest, CutsAndRealisedTransfers) {
  RunAll("experts, cuts and realised transfers", {.experts = true, .layers = 1}, {}, {kData, kTensor, kContext, kRealised});
}

}  // namespace
}  // namespace shardlab::oracle
