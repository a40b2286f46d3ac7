#include "pipeline_interleaved_zb.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_interleaved_zb {
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

TEST(InterleavedZeroBubble, InterleavedWithItsWeightGradientsPutOff) {
  const ScheduleOrder order = InterleavedZeroBubble().Order({2, 2, 2});
  EXPECT_EQ(Text(order[0]), "0F0 0F1 1F0 1F1 1I0 1W0 1I1 1W1 0I0 0W0 0I1 0W1");
  EXPECT_EQ(Text(order[1]), "0F0 0F1 1F0 1I0 1F1 1I1 1W0 0I0 1W1 0I1 0W0 0W1");
}

TEST(InterleavedZeroBubble, GroupsAreWholeRoundsByDefault) {
  EXPECT_EQ(InterleavedZeroBubble().Refusal({4, 2, 8}), "");
  EXPECT_NE(InterleavedZeroBubble().Refusal({4, 2, 11}), "");
}

}  // namespace
}  // namespace shardlab::pipeline_interleaved_zb
