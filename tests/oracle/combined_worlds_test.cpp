// Every strategy with every other: cuts, state, activations and realised transfers at once, on the
// meshes of eight ranks (numbered through, a deterministic share of them), and models that share a
// table between both ends.

#include <gtest/gtest.h>

#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

const std::vector<Choices> kTensor = {
    {}, {TensorParallel({})}, {TensorParallel({.sequence_parallel = true})}};
const std::vector<Choices> kContext = {{}, {ContextGather()}, {ContextUlysses()}};
const std::vector<Choices> kState = {
    {ZeroStage(1)}, {ZeroStage(2)}, {ZeroStage(3)}, {ZeroStage(3, true)}};
const std::vector<Choices> kActivations = {
    {}, {RecomputeSelective()}, {RecomputeBlock(1)}, {KeepGathered()}};
const std::vector<Choices> kRealised = {{}, {ScatterThenGather()}, {TwoLevel()}};

// Each composition on one mesh in `every`, a different one each time.
class Share final {
 public:
  explicit Share(int every) : every_(every) {}
  bool operator()(int) { return next_++ % every_ == 0; }

 private:
  int every_, next_ = 0;
};

void RunShare(const char* what, const ToyModelOptions& model,
              const std::vector<std::vector<Choices>>& lists, int every) {
  const Setting setting(Unroll(ToyModel(model)), {});
  Tally tally;
  Share share(every);
  for (const Choices& choices : Product(lists))
    RunEveryMesh(setting, choices, 8, tally, std::ref(share));
  Conclude(tally, what);
}

TEST(CombinedWorldsTest, Dense) {
  RunShare("dense, everything", {.layers = 3},
           {{{DataParallel()}}, kTensor, kContext, kState, kActivations, kRealised}, 17);
}

TEST(CombinedWorldsTest, DenseInHybridShards) {
  RunShare("dense, hybrid shards", {.layers = 3},
           {{{DataParallel(), HybridShard()}}, kTensor, kContext, kActivations, kRealised}, 13);
}

TEST(CombinedWorldsTest, Experts) {
  const std::vector<Choices> tensor = {
      {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kWhole})},
      {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kSliced})},
      {TensorParallel({.sequence_parallel = true, .experts = ExpertTensor::kSpread})},
      {TensorParallel({}), OpenCombine()}};
  RunShare(
      "experts, everything", {.experts = true},
      {{{DataParallel(), ExpertParallel()}}, tensor, kContext, kState, kActivations, kRealised},
      47);
}

TEST(CombinedWorldsTest, TiedEmbedding) {
  std::vector<Choices> state = kState;
  state.push_back({});
  RunShare("tied embedding", {.layers = 1, .tied_embedding = true},
           {{{DataParallel()}}, kTensor, kContext, state, {{}, {ScatterThenGather()}}}, 3);
}

}  // namespace
}  // namespace shardlab::oracle
