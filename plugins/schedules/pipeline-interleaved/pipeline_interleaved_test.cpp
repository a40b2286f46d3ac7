#include "pipeline_interleaved.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_interleaved {
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

TEST(Interleaved, EachChunkDoesAGroupInTurn) {
  const ScheduleOrder order = Interleaved().Order({2, 2, 4});
  EXPECT_EQ(Text(order[1]), "0F0 0F1 1F0 1B0 1F1 1B1 0F2 0B0 0F3 0B1 1F2 1B2 1F3 1B3 0B2 0B3");
  EXPECT_EQ(Interleaved().StageOf({2, 2, 4}, 1, 1), 3);
}

TEST(Interleaved, GroupsAreWholeRoundsByDefault) {
  EXPECT_EQ(Interleaved().Refusal({4, 2, 8}), "");
  EXPECT_EQ(Interleaved().Refusal({4, 2, 3}), "");
  EXPECT_EQ(Interleaved().Refusal({4, 2, 11}),
            "pipeline-interleaved does 11 micro-batches on 4 ranks in 2 equal rounds, and 2 does "
            "not divide 11; write group = 6, 7 or 11, or 10 or 12 micro-batches");
}

TEST(Interleaved, TheClosedFormIsLeftToPlayingWhereGroupsAreTooSmall) {
  EXPECT_EQ(Interleaved().EqualSlots({4, 2, 8}), 9.5);
  EXPECT_LT(Interleaved().EqualSlots({4, 2, 3}), 0);
}

}  // namespace
}  // namespace shardlab::pipeline_interleaved
