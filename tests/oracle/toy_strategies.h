#pragma once
// Strategies for the oracle's worlds, each as plain as it can be: the real plugins say more
// (requirements, prices, facts) and are run beside these. None knows another.
//
//   Choice data = DataParallel();                          // cuts the batch
//   Choice both = TensorParallel({.sequence_parallel = true});

#include <memory>
#include <string>
#include <vector>

#include "api/strategy.h"

namespace shardlab::oracle {

// A strategy under a name for messages.
struct Choice {
  std::string name;
  std::shared_ptr<const Strategy> strategy;
};

enum class ExpertTensor {
  kWhole,   // expert weights are not cut by tensor parallelism
  kSliced,  // every rank of the tensor axis holds a slice of each expert (expert-tp = tp)
  kSpread,  // the tensor axis holds different experts (expert-tp = 1 over the ranks of tp)
};
struct TensorOptions {
  bool sequence_parallel = false;
  ExpertTensor experts = ExpertTensor::kSliced;
};

Choice DataParallel();
Choice TensorParallel(TensorOptions options);
Choice ContextGather();
Choice ContextUlysses();
Choice ExpertParallel();
enum class OnHost { kNothing, kOptimizer, kAll };
Choice ZeroStage(int stage, bool keep_after_forward = false, OnHost host = OnHost::kNothing);
Choice HybridShard();  // ZeRO-3 over an axis that borrows from data
Choice RecomputeBlock(int segment);
Choice RecomputeSome(int every, int per_rank);  // some layers of a class alone
Choice RecomputeSelective();
Choice OpenCombine();        // the sum of sliced experts passes through combine
Choice KeepGathered();       // what was gathered stays gathered for the backward pass
Choice ScatterThenGather();  // an all-reduce goes as reduce-scatter and all-gather
Choice TwoLevel();           // ... over its first atom, all-reduce over the others in between

}  // namespace shardlab::oracle
