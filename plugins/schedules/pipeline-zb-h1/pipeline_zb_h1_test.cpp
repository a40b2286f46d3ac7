#include "pipeline_zb_h1.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_zb_h1 {
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

TEST(ZeroBubbleH1, RankRPutsOffRWeightGradients) {
  const ScheduleOrder order = ZeroBubbleH1().Order({2, 1, 3});
  EXPECT_EQ(Text(order[0]), "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(Text(order[1]), "0F0 0I0 0F1 0I1 0W0 0F2 0I2 0W1 0W2");
}

TEST(ZeroBubbleH1, OneChunkAndAsManyMicroBatchesAsRanks) {
  EXPECT_EQ(ZeroBubbleH1().Refusal({4, 1, 4}), "");
  EXPECT_EQ(ZeroBubbleH1().Refusal({4, 1, 3}),
            "pipeline-zb-h1 on 4 ranks needs at least 4 micro-batches, not 3");
  EXPECT_EQ(ZeroBubbleH1().Refusal({4, 2, 8}),
            "pipeline-zb-h1 has one chunk per rank, not 2; write chunks = 1");
}

}  // namespace
}  // namespace shardlab::pipeline_zb_h1
