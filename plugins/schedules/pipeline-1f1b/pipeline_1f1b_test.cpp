#include "pipeline_1f1b.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardlab::pipeline_1f1b {
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

TEST(OneForwardOneBackward, EachRankOwesEachForwardAndBackwardOnce) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 9; ++m) {
      const ScheduleOrder order = OneForwardOneBackward().Order({p, 1, m});
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

TEST(OneForwardOneBackward, MegatronsOrder) {
  const ScheduleOrder order = OneForwardOneBackward().Order({4, 1, 8});
  EXPECT_EQ(Text(order[0]), "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7 ");
  EXPECT_EQ(Text(order[2]), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7 ");
  EXPECT_EQ(Text(order[3]), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 ");
}

TEST(OneForwardOneBackward, AtMostTheRanksStillToCome) {
  for (int m : {2, 4, 9}) {
    const ScheduleOrder order = OneForwardOneBackward().Order({4, 1, m});
    for (int r = 0; r < 4; ++r)
      EXPECT_EQ(InFlight(order[static_cast<std::size_t>(r)]), std::min(4 - r, m));
  }
}

TEST(OneForwardOneBackward, OneChunkOnly) {
  EXPECT_EQ(OneForwardOneBackward().Refusal({4, 1, 8}), "");
  EXPECT_NE(OneForwardOneBackward().Refusal({4, 2, 8}), "");
  EXPECT_EQ(OneForwardOneBackward().EqualSlots({4, 1, 8}), 11);
  EXPECT_EQ(OneForwardOneBackward().StageOf({4, 1, 8}, 3, 0), 3);
}

}  // namespace
}  // namespace shardlab::pipeline_1f1b
