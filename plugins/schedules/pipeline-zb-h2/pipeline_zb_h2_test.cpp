#include "pipeline_zb_h2.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_zb_h2 {
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

TEST(ZeroBubbleH2, TwiceTheForwardsFirst) {
  const ScheduleOrder order = ZeroBubbleH2().Order({2, 1, 4});
  EXPECT_EQ(Text(order[0]), "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3");
  EXPECT_EQ(Text(order[1]), "0F0 0I0 0F1 0I1 0F2 0I2 0W0 0F3 0I3 0W1 0W2 0W3");
}

TEST(ZeroBubbleH2, OneChunkAndMicroBatchesForBothWays) {
  EXPECT_EQ(ZeroBubbleH2().Refusal({4, 1, 7}), "");
  EXPECT_EQ(ZeroBubbleH2().Refusal({4, 1, 6}),
            "pipeline-zb-h2 on 4 ranks needs at least 7 micro-batches, not 6");
  EXPECT_NE(ZeroBubbleH2().Refusal({4, 2, 8}), "");
}

}  // namespace
}  // namespace shardlab::pipeline_zb_h2
