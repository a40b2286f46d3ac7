#include "pipeline_gpipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardlab::pipeline_gpipe {
namespace {

std::string Text(const std::vector<Work>& list) {
  std::string text;
  for (const Work& work : list)
    text += (work.kind == WorkKind::kF ? "F" : "B") + std::to_string(work.micro_batch) + " ";
  return text;
}

int InFlight(const std::vector<Work>& list) {
  int now = 0, peak = 0;
  for (const Work& work : list) peak = std::max(peak, now += work.kind == WorkKind::kF ? 1 : -1);
  return peak;
}

TEST(Gpipe, EachRankOwesEachForwardAndBackwardOnce) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 9; ++m) {
      const ScheduleOrder order = Gpipe().Order({p, 1, m});
      ASSERT_EQ(order.size(), static_cast<std::size_t>(p));
      for (const std::vector<Work>& list : order) {
        EXPECT_EQ(list.size(), static_cast<std::size_t>(2 * m));
        for (int i = 0; i < m; ++i) {
          const auto f = std::find(list.begin(), list.end(), Work{WorkKind::kF, 0, i});
          const auto b = std::find(list.begin(), list.end(), Work{WorkKind::kB, 0, i});
          ASSERT_TRUE(f != list.end() && b != list.end());
          EXPECT_LT(f - list.begin(), b - list.begin());
        }
      }
    }
  }
}

TEST(Gpipe, AllForwardsThenAllBackwards) {
  const ScheduleOrder order = Gpipe().Order({2, 1, 3});
  for (const std::vector<Work>& list : order) {
    EXPECT_EQ(Text(list), "F0 F1 F2 B0 B1 B2 ");
    EXPECT_EQ(InFlight(list), 3);
  }
}

TEST(Gpipe, OneChunkOnly) {
  EXPECT_EQ(Gpipe().Refusal({4, 1, 8}), "");
  EXPECT_NE(Gpipe().Refusal({4, 2, 8}), "");
  EXPECT_EQ(Gpipe().EqualSlots({4, 1, 8}), 11);
  EXPECT_EQ(Gpipe().StageOf({4, 1, 8}, 3, 0), 3);
}

}  // namespace
}  // namespace shardlab::pipeline_gpipe
