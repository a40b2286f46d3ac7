#include "pipeline_zb_v.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_zb_v {
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

TEST(ZeroBubbleV, DownAndBack) {
  const ScheduleShape shape{2, 2, 3};
  const ScheduleOrder order = ZeroBubbleV().Order(shape);
  EXPECT_EQ(Text(order[0]),
            "0F0 0F1 0F2 1F0 1I0 1W0 1F1 1I1 1W1 0I0 0W0 1F2 1I2 1W2 0I1 0W1 0I2 0W2");
  EXPECT_EQ(ZeroBubbleV().StageOf(shape, 0, 1), 3);
  EXPECT_EQ(ZeroBubbleV().StageOf(shape, 1, 1), 2);
}

// Fewer micro-batches than the pattern has: the others are left out.
TEST(ZeroBubbleV, AnyNumberOfMicroBatches) {
  for (const std::vector<Work>& list : ZeroBubbleV().Order({4, 2, 1}))
    EXPECT_EQ(list.size(), 6u) << Text(list);
}

TEST(ZeroBubbleV, TwoChunks) {
  EXPECT_EQ(ZeroBubbleV().DefaultChunks(), 2);
  EXPECT_EQ(ZeroBubbleV().Refusal({4, 1, 8}),
            "pipeline-zb-v has two chunks per rank, not 1; write chunks = 2");
}

}  // namespace
}  // namespace shardlab::pipeline_zb_v
