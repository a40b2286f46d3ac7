#include "pipeline_v_half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardlab::pipeline_v_half {
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

// Micro-batches; a chunk is half of a rank.
TEST(VHalf, HoldsNoMoreThanThePaperSays) {
  for (int p = 2; p <= 10; ++p) {
    int most = 0;
    for (const std::vector<Work>& list : VHalf().Order({p, 2, 3 * p})) {
      int now = 0;
      for (const Work& w : list) {
        now += w.kind == WorkKind::kF ? 1 : w.kind == WorkKind::kW ? -1 : 0;
        most = std::max(most, now);
      }
      EXPECT_EQ(now, 0) << Text(list);
    }
    EXPECT_EQ(most, 2 * ((p + 2) / 2)) << p << " ranks";
  }
}

TEST(VHalf, TwoChunksInAV) {
  EXPECT_EQ(VHalf().DefaultChunks(), 2);
  EXPECT_EQ(VHalf().StageOf({4, 2, 8}, 1, 1), 6);
  EXPECT_EQ(VHalf().Refusal({4, 1, 8}),
            "pipeline-v-half has two chunks per rank, not 1; write chunks = 2");
}

}  // namespace
}  // namespace shardlab::pipeline_v_half
