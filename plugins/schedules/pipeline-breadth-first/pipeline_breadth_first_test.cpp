#include "pipeline_breadth_first.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_breadth_first {
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

TEST(BreadthFirst, ChunkAfterChunkAndBack) {
  const ScheduleOrder order = BreadthFirst().Order({2, 2, 2});
  EXPECT_EQ(Text(order[0]), "0F0 0F1 1F0 1F1 1B1 1B0 0B1 0B0");
  EXPECT_EQ(order[0], order[1]);
}

TEST(BreadthFirst, AnyShapeAndItsClosedForm) {
  EXPECT_EQ(BreadthFirst().Refusal({4, 3, 1}), "");
  EXPECT_EQ(BreadthFirst().EqualSlots({4, 2, 8}), 9.5);
  EXPECT_EQ(BreadthFirst().EqualSlots({4, 2, 2}), 2 + 1.5 + 1);
}

}  // namespace
}  // namespace shardlab::pipeline_breadth_first
