#pragma once
// The least that a pipeline takes, in whatever order its work is done.
//
//   const double drained = LeastFinish(pipeline, [&](int stage) { return seconds; }, &scratch);
//   // scratch.finish[rank]: no rank ends before; drained: nor does the backward pass of stage 0
//
// A rank begins when a micro-batch has come to one of its stages through the forward passes of all
// stages before, and then has all of its own work to do. Its last backward pass is followed by
// those of all stages before. Of 1F1B and its interleaved form with equal stages this is the closed
// form, (m + (p - 1) / v) slots (arXiv 2104.04473, section 2.2).

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardlab {

// Seconds of a stage's passes for one micro-batch.
struct PassSeconds {
  double forward = 0, input = 0, weight = 0;
};

struct PipelineOutline {
  int ranks = 1, chunks = 1, stages = 1;
  const std::int32_t* stage_of = nullptr;  // [rank x chunks + chunk]
  double passes = 1;                       // micro-batches that each chunk sees
  bool splits_backward = false;            // weight gradients may wait
  double hop = 0;                          // seconds of a message to another rank
};

struct FillAndDrain {
  std::vector<double> fill, drain, finish;  // [stage], [stage], [rank]: seconds
  std::vector<std::int32_t> rank_of;        // [stage]
  void Reserve(std::size_t ranks, std::size_t stages) {
    if (finish.size() < ranks) finish.resize(ranks);
    if (fill.size() >= stages) return;
    fill.resize(stages);
    drain.resize(stages);
    rank_of.resize(stages);
  }
};

// `seconds(stage)` gives PassSeconds. `scratch` has room for the ranks and stages.
template <class Seconds>
double LeastFinish(const PipelineOutline& p, Seconds seconds, FillAndDrain* scratch) {
  FillAndDrain& s = *scratch;
  for (int slot = 0; slot < p.ranks * p.chunks; ++slot)
    s.rank_of[static_cast<std::size_t>(p.stage_of[slot])] = slot / p.chunks;
  // Which of several holders of a stage is a micro-batch's own is not known.
  const bool alone = p.stages == p.ranks * p.chunks;
  double fill = 0, drain = 0;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(p.stages); ++stage) {
    if (stage > 0 && alone && s.rank_of[stage] != s.rank_of[stage - 1]) {
      fill += p.hop;
      drain += p.hop;
    }
    s.fill[stage] = fill;
    s.drain[stage] = drain;
    const PassSeconds pass = seconds(static_cast<int>(stage));
    fill += pass.forward;
    drain += pass.input + (p.splits_backward ? 0 : pass.weight);
  }
  double drained = 0;
  for (int rank = 0; rank < p.ranks; ++rank) {
    double begin = std::numeric_limits<double>::infinity(), behind = begin;
    double all = 0, until_drain = 0;
    for (int chunk = 0; chunk < p.chunks; ++chunk) {
      const std::int32_t stage = p.stage_of[rank * p.chunks + chunk];
      const PassSeconds pass = seconds(stage);
      begin = std::min(begin, s.fill[static_cast<std::size_t>(stage)]);
      behind = std::min(behind, s.drain[static_cast<std::size_t>(stage)]);
      all += pass.forward + pass.input + pass.weight;
      until_drain += pass.forward + pass.input + (p.splits_backward ? 0 : pass.weight);
    }
    s.finish[static_cast<std::size_t>(rank)] = begin + p.passes * all;
    drained = std::max(drained, begin + p.passes * until_drain + behind);
  }
  return drained;
}

}  // namespace shardlab
