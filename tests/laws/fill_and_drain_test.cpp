// Does any order of a pipeline's work end before the least that is claimed? Every schedule, played
// event by event.

#include "core/fill_and_drain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/schedule.h"
#include "core/order.h"
#include "laws/made.h"
#include "laws/random.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

double Least(const CompiledOrder& order, const std::vector<double>& costs, bool splits, double hop,
             FillAndDrain* scratch) {
  const ScheduleShape& s = order.shape;
  scratch->Reserve(Size(s.ranks), Size(order.stages));
  return LeastFinish(
      {s.ranks, s.chunks, order.stages, order.stage_of.data(),
       static_cast<double>(s.micro_batches) / order.copies, splits, hop},
      [&](int stage) {
        const double* const cost = &costs[Size(stage) * 4];
        return PassSeconds{cost[0], cost[1], cost[2]};
      },
      scratch);
}

TEST(FillAndDrain, NoOrderEndsBeforeTheLeast) {
  Random random(21);
  int orders = 0;
  for (const std::string& name : BuiltPlugins().Names(Schedule::kKind)) {
    const auto schedule = Made<Schedule>(name);
    for (const int p : {2, 3, 4, 8}) {
      for (const int v : {1, 2, 3}) {
        for (const int m : {1, p, 2 * p, 2 * p + 1, 24}) {
          const ScheduleShape shape{p, v, m};
          if (!schedule->Refusal(shape).empty()) continue;
          SCOPED_TRACE(absl::StrCat(name, " p ", p, ", v ", v, ", m ", m));
          const auto order = CompileOrder(*schedule, shape);
          ASSERT_TRUE(order.ok());
          ++orders;
          for (const double hop : {0.0, 0.3}) {
            std::vector<double> costs(order->CostCount());
            for (std::size_t s = 0; s < Size(order->stages); ++s) {
              for (std::size_t k = 0; k < 3; ++k) costs[s * 4 + k] = random.Between(0.5, 2.0);
              costs[s * 4 + 3] = costs[s * 4 + 1] + costs[s * 4 + 2];
            }
            AddPairCosts(*order, absl::MakeSpan(costs));
            std::vector<double> ends(order->events.size());
            PlayOrder(*order, costs, hop, absl::MakeSpan(ends));
            const auto end = [&](int rank) { return ends[Size(order->last[Size(rank)])]; };
            double makespan = 0;
            for (int r = 0; r < p; ++r) makespan = std::max(makespan, end(r));
            FillAndDrain least;
            // Where it is known whether weight gradients wait, and where not.
            for (const bool splits : {order->splits_backward, true}) {
              const double drained = Least(*order, costs, splits, hop, &least);
              for (int r = 0; r < p; ++r)
                EXPECT_LE(least.finish[Size(r)], (1 + 1e-12) * end(r)) << "rank " << r;
              EXPECT_LE(drained, (1 + 1e-12) * makespan);
              if (order->copies == 1) {
                EXPECT_LE(drained, (1 + 1e-12) * end(least.rank_of[0]));
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(orders, 100);
}

// (m + (p - 1) / v) slots of a forward and a backward pass of all of a rank's chunks: arXiv
// 2104.04473, section 2.2.
TEST(FillAndDrain, IsTheClosedFormOf1F1BAndItsInterleavedForm) {
  for (const char* name : {"pipeline-1f1b", "pipeline-interleaved"}) {
    const auto schedule = Made<Schedule>(name);
    for (const int p : {2, 4, 8}) {
      const int v = std::string(name) == "pipeline-1f1b" ? 1 : 3, m = 4 * p;
      const auto order = CompileOrder(*schedule, {p, v, m});
      ASSERT_TRUE(order.ok());
      std::vector<double> costs;
      for (int stage = 0; stage < order->stages; ++stage)
        costs.insert(costs.end(), {1.0, 1.0, 1.0, 2.0});
      FillAndDrain least;
      EXPECT_NEAR(Least(*order, costs, false, 0, &least), (m + (p - 1.0) / v) * 3 * v, 1e-9)
          << name << " p " << p;
    }
  }
}

}  // namespace
}  // namespace shardlab
