#include "pipeline_dualpipe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_dualpipe {
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

TEST(DualPipe, BothDirectionsOnEachRank) {
  const ScheduleShape shape{2, 2, 4};
  const ScheduleOrder order = DualPipe().Order(shape);
  // Rank 0 begins with the direction that enters there, rank 1 with the other one.
  EXPECT_EQ(Text(order[0]), "0F0 1F2 0F1 1B2 1F3+0B0 1B3 0I1 0W1");
  EXPECT_EQ(Text(order[1]), "1F2 0F0 1F3 0B0 0F1+1B2 0B1 1I3 1W3");
  EXPECT_EQ(DualPipe().Stages(shape), 2);
  EXPECT_EQ(DualPipe().StageOf({4, 2, 8}, 3, 0), 3);
  EXPECT_EQ(DualPipe().StageOf({4, 2, 8}, 3, 1), 0);
}

TEST(DualPipe, EvenAndEnough) {
  EXPECT_EQ(DualPipe().Refusal({4, 2, 8}), "");
  EXPECT_EQ(DualPipe().Refusal({3, 2, 8}),
            "pipeline-dualpipe needs an even number of pipeline ranks, not 3");
  EXPECT_EQ(DualPipe().Refusal({4, 2, 9}),
            "pipeline-dualpipe needs an even number of micro-batches, half for each direction, "
            "not 9");
  EXPECT_EQ(DualPipe().Refusal({4, 2, 6}),
            "pipeline-dualpipe on 4 ranks needs at least 8 micro-batches, not 6");
  EXPECT_NE(DualPipe().Refusal({4, 1, 8}), "");
}

}  // namespace
}  // namespace shardlab::pipeline_dualpipe
