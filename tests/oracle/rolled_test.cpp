// A class of layers is derived once and repeated. Written out layer by layer, every layer has the
// same steps: what is derived for the class.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "oracle/description.h"
#include "oracle/toy_models.h"
#include "oracle/worlds.h"

namespace shardlab::oracle {
namespace {

using Steps = std::multiset<std::string>;

Steps StepsOf(const Edited& edited, ClassId layer) {
  Steps steps;
  for (const Step& step : edited.derived.steps) {
    if (step.layer_class == layer) steps.insert(Describe(edited, step));
  }
  return steps;
}

void ExpectLayersAlike(const Program& program, const Choices& choices, int* layers) {
  const std::optional<Edited> rolled = Apply(program, choices),
                              written_out = Apply(Unroll(program), choices);
  ASSERT_TRUE(rolled.has_value() && written_out.has_value());
  std::size_t next = 0;
  for (std::size_t c = 0; c < program.classes.size(); ++c) {
    const Steps expected = StepsOf(*rolled, ClassId(c));
    for (int layer = 0; layer < program.classes[c].repeat; ++layer, ++next, ++*layers) {
      const Steps actual = StepsOf(*written_out, ClassId(next));
      std::vector<std::string> lost, extra;
      std::set_difference(expected.begin(), expected.end(), actual.begin(), actual.end(),
                          std::back_inserter(lost));
      std::set_difference(actual.begin(), actual.end(), expected.begin(), expected.end(),
                          std::back_inserter(extra));
      EXPECT_TRUE(lost.empty()) << NameOf(choices) << " layer " << next << " lacks "
                                << lost.front();
      EXPECT_TRUE(extra.empty()) << NameOf(choices) << " layer " << next << " has also "
                                 << extra.front();
    }
  }
}

TEST(RolledTest, EveryLayerHasTheStepsOfItsClass) {
  int layers = 0;
  for (const bool experts : {false, true}) {
    const Program program = ToyModel({.experts = experts, .layers = 3});
    for (const Choices& choices : Product({
             {{DataParallel()}},
             {{}, {TensorParallel({})}, {TensorParallel({.sequence_parallel = true})}},
             {{}, {ContextGather()}, {ContextUlysses()}},
             {{},
              {ZeroStage(1)},
              {ZeroStage(2)},
              {ZeroStage(3)},
              {ZeroStage(3, true)},
              {HybridShard()}},
             {{}, {RecomputeSelective()}, {RecomputeBlock(1)}, {KeepGathered()}},
         })) {
      ExpectLayersAlike(program, choices, &layers);
    }
  }
  std::printf("rolled: %d layers compared\n", layers);
}

}  // namespace
}  // namespace shardlab::oracle
