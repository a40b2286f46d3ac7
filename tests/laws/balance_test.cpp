// Contiguous parts whose largest cost is least: against every way to cut.

#include "core/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "laws/random.h"

namespace shardlab {
namespace {

struct Best {
  double largest = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
};

template <class Cost>
void EachCut(int part, int parts, int begin, int items, double largest, double squares,
             const Cost& cost, Best* best) {
  if (part == parts) {
    if (begin < items || largest > best->largest * (1 + 1e-12)) return;
    if (largest < best->largest * (1 - 1e-12)) *best = {largest, squares};
    best->squares = std::min(best->squares, squares);
    return;
  }
  for (int end = begin; end <= items; ++end) {
    const double own = cost(part, begin, end);
    EachCut(part + 1, parts, end, items, std::max(largest, own), squares + own * own, cost, best);
  }
}

TEST(LeastLargest, IsTheBestOfAllCuts) {
  Random random(21);
  for (int round = 0; round < 300; ++round) {
    const int parts = random.Between(1, 5), items = random.Between(1, 9);
    std::vector<double> item, scale, base;
    for (int i = 0; i < items; ++i) item.push_back(random.Between(0.1, 2.0));
    for (int p = 0; p < parts; ++p) {
      scale.push_back(random.Between(0.5, 2.0));
      base.push_back(random.Chance(0.5) ? 0 : random.Between(0.0, 2.0));
    }
    const auto cost = [&](int part, int begin, int end) {
      const auto p = static_cast<std::size_t>(part);
      return base[p] + scale[p] * std::accumulate(item.begin() + begin, item.begin() + end, 0.0);
    };
    Best best;
    EachCut(0, parts, 0, items, 0, 0, cost, &best);
    const std::vector<int> sizes = LeastLargest(parts, items, cost);
    ASSERT_EQ(sizes.size(), static_cast<std::size_t>(parts));
    double largest = 0, squares = 0;
    int begin = 0;
    for (int p = 0; p < parts; ++p) {
      const int end = begin + sizes[static_cast<std::size_t>(p)];
      const double own = cost(p, begin, end);
      largest = std::max(largest, own);
      squares += own * own;
      begin = end;
    }
    EXPECT_EQ(begin, items);
    EXPECT_NEAR(largest, best.largest, 1e-12 * best.largest);
    EXPECT_NEAR(squares, best.squares, 1e-9 * best.squares);
  }
}

TEST(LeastLargest, EqualItemsAreSpreadEvenly) {
  const auto count = [](int, int begin, int end) { return static_cast<double>(end - begin); };
  EXPECT_EQ(LeastLargest(4, 8, count), (std::vector<int>{2, 2, 2, 2}));
  std::vector<int> sizes = LeastLargest(4, 10, count);
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, (std::vector<int>{2, 2, 3, 3}));
}

}  // namespace
}  // namespace shardlab
