#include "pipeline_v_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardlab::pipeline_v_min {
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
TEST(VMin, HoldsNoMoreThanThePaperSays) {
  for (int p = 2; p <= 10; ++p) {
    int most = 0;
    for (const std::vector<Work>& list : VMin().Order({p, 2, 3 * p})) {
      int now = 0;
      for (const Work& w : list) {
        now += w.kind == WorkKind::kF ? 1 : w.kind == WorkKind::kW ? -1 : 0;
        most = std::max(most, now);
      }
      EXPECT_EQ(now, 0) << Text(list);
    }
    EXPECT_EQ(most, 2 * ((p + 4) / 3)) << p << " ranks";
  }
}

TEST(VMin, TwoChunksInAV) {
  EXPECT_EQ(VMin().DefaultChunks(), 2);
  EXPECT_EQ(VMin().StageOf({4, 2, 8}, 1, 1), 6);
  EXPECT_EQ(VMin().Refusal({4, 1, 8}),
            "pipeline-v-min has two chunks per rank, not 1; write chunks = 2");
}

}  // namespace
}  // namespace shardlab::pipeline_v_min
