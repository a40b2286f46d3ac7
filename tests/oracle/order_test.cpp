// The order of the strategies in the file means nothing: every permutation gives the same steps in
// the same order, the same saved tensors and the same authors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "oracle/description.h"
#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

// All permutations of five or fewer strategies; of more, every 23rd.
void ExpectOneResult(const Program& program, const Choices& choices, int* permutations) {
  std::vector<std::size_t> order(choices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t stride = choices.size() > 5 ? 23 : 1;
  std::vector<std::string> first;
  std::size_t number = 0;
  do {
    if (number++ % stride != 0) continue;
    Choices shuffled;
    for (const std::size_t i : order) shuffled.push_back(choices[i]);
    const std::optional<Edited> edited = Apply(program, shuffled);
    ASSERT_TRUE(edited.has_value());
    const std::vector<std::string> all = DescribeAll(*edited);
    ++*permutations;
    if (first.empty()) first = all;
    ASSERT_EQ(all.size(), first.size()) << NameOf(shuffled) << " against " << NameOf(choices);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], first[i]) << NameOf(shuffled) << " against " << NameOf(choices) << ", step "
                                  << i;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(OrderTest, AnyOrderOfTheStrategiesGivesTheSameSteps) {
  const Program dense = Unroll(ToyModel({}));
  const Program experts = Unroll(ToyModel({.experts = true}));
  int permutations = 0;
  for (const Choice& tensor : {TensorParallel({}), TensorParallel({.sequence_parallel = true})}) {
    for (const Choice& context : {ContextGather(), ContextUlysses()}) {
      for (const Choice& state : {ZeroStage(1), ZeroStage(3), HybridShard()}) {
        ExpectOneResult(dense, {tensor, context, DataParallel(), state, RecomputeSelective()},
                        &permutations);
        ExpectOneResult(dense, {tensor, context, DataParallel(), state, ScatterThenGather()},
                        &permutations);
      }
    }
  }
  for (const ExpertTensor layout :
       {ExpertTensor::kWhole, ExpertTensor::kSliced, ExpertTensor::kSpread}) {
    const Choice tensor = TensorParallel({.sequence_parallel = true, .experts = layout});
    ExpectOneResult(experts,
                    {ContextGather(), tensor, DataParallel(), ExpertParallel(), ZeroStage(3)},
                    &permutations);
    ExpectOneResult(experts,
                    {ExpertParallel(), tensor, DataParallel(), HybridShard(), RecomputeBlock(1)},
                    &permutations);
    ExpectOneResult(experts,
                    {ContextUlysses(), tensor, DataParallel(), ExpertParallel(), ZeroStage(2),
                     RecomputeBlock(2), KeepGathered()},
                    &permutations);
  }
  ExpectOneResult(
      experts,
      {OpenCombine(), TensorParallel({}), DataParallel(), ExpertParallel(), ContextGather()},
      &permutations);
  std::printf("order: %d permutations\n", permutations);
}

}  // namespace
}  // namespace shardlab::oracle
