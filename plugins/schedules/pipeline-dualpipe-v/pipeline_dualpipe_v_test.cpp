#include "pipeline_dualpipe_v.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_dualpipe_v {
namespace {

// "0F1": chunk, op, micro-batch; a pair "0F1+1B0".
std::string Text(const std::vector<Work>& list) {
  std::string text;
  const auto one = [](const Work& w) {
    return std::to_string(w.chunk) + Name(w.kind) + std::to_string(w.micro_batch);
  };
  for (const Work& w : list) {
    text += text.empty() ? "" : " ";
    text += w.kind == WorkKind::kFB ? one(w.Forward()) + "+" + one(w.Backward()) : one(w);
  }
  return text;
}

TEST(DualPipeV, AForwardOfOneWayUnderABackwardOfTheOther) {
  const ScheduleOrder order = DualPipeV().Order({1, 2, 2});
  EXPECT_EQ(Text(order[0]), "0F0 1F0 0F1 1B0 1F1+0B0 1B1 0I1 0W1");
  EXPECT_EQ(DualPipeV().StageOf({4, 2, 8}, 1, 1), 6);
}

TEST(DualPipeV, TwoChunksAndEnoughMicroBatches) {
  EXPECT_EQ(DualPipeV().DefaultChunks(), 2);
  EXPECT_EQ(DualPipeV().Refusal({4, 2, 8}), "");
  EXPECT_EQ(DualPipeV().Refusal({4, 2, 7}),
            "pipeline-dualpipe-v on 4 ranks needs at least 8 micro-batches, not 7");
}

}  // namespace
}  // namespace shardlab::pipeline_dualpipe_v
