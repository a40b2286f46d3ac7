#pragma once
// What a plan takes at the least, from its block costs alone: no order is compiled or played.
//
//   ComputeCosts(composition, plan, 0, workspace);       // where all ranks lie alike
//   PlanBound bound = bounds.Of(composition, plan, workspace, hop, most_seconds);
//   if (bound.seconds > most_seconds || bound.bytes > workspace.most_bytes) drop the plan;
//
// The claim: a plan none of whose ranks holds more than the workspace's `most_bytes` takes at least
// `seconds`, and some rank holds at least `bytes`.
//
// Seconds: no pipeline is faster than the mean of what its ranks compute, nor than what
// fill_and_drain.h says where weight gradients may wait. Bytes: the mean of the ranks' parameters,
// gradients and optimizer state. And the less memory, the longer it takes: a micro-batch that
// enters stage s comes back after its forward and input-gradient passes through all stages from s
// on, L(s) seconds. So by Little's law (Operations Research 9:3, 1961) a rank that is done with m
// of them within T holds m x L(s) / T on average, and at some instant no fewer: 1F1B's p on the
// first rank, when T is near the best that it can do. Where the first rank has room for n of them,
// T is at least m x L(s) / n.

#include <vector>

#include "core/evaluate.h"

namespace shardlab {

struct PlanBound {
  double seconds = 0;  // infinite: no plan fits
  double bytes = 0;    // on some rank
};

// Of one thread and one composition: what it has summed over a split of layers is kept.
class Bounds {
 public:
  // `hop`: seconds of a message to another pipeline rank. Beyond `most_seconds` no more is asked.
  PlanBound Of(const Composition& composition, const Plan& plan, const Workspace& workspace,
               double hop, double most_seconds);

 private:
  const std::vector<double>& Layers(const Composition& composition, std::size_t split);
  void Stages(const Composition& composition, const Plan& plan, const Workspace& workspace);
  double Pipeline(const Composition& composition, const Plan& plan, double hop);
  double FirstRank(const Composition& composition, const Plan& plan, const Workspace& workspace);

  std::vector<std::vector<double>> layers_;  // [split][class], on all stages
  std::vector<PassSeconds> stage_;           // [stage]
  std::vector<std::int32_t> stage_of_;       // [rank x chunks + chunk]
  std::vector<double> before_;               // [stage] seconds there and back of those before it
  FillAndDrain fill_and_drain_;
};

}  // namespace shardlab
