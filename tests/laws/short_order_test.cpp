// What a search leaves out of an order: does anybody who plays the rest, or counts what is in
// flight, see a difference? Every schedule, against its whole order.

#include "core/short_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "laws/made.h"
#include "laws/random.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

std::vector<double> RandomCosts(Random& random, const CompiledOrder& order, bool equal) {
  std::vector<double> costs(order.CostCount());
  for (std::size_t s = 0; s < Size(order.stages); ++s) {
    double* const cost = &costs[s * 4];
    for (std::size_t k = 0; k < 3; ++k)
      cost[k] = equal && s > 0 ? costs[k] : random.Between(0.5, 2.0);
    cost[3] = cost[1] + cost[2];
  }
  AddPairCosts(order, absl::MakeSpan(costs));
  return costs;
}

// Of each rank.
std::vector<double> Ends(const CompiledOrder& order, const std::vector<double>& costs, double hop) {
  std::vector<double> all(order.events.size()), ends;
  PlayToEnd(order, costs, hop, absl::MakeSpan(all));
  for (const std::int32_t last : order.last) ends.push_back(all[Size(last)]);
  return ends;
}

// Every event played, none skipped.
std::vector<double> EndsInFull(const CompiledOrder& order, const std::vector<double>& costs,
                               double hop) {
  std::vector<double> all(order.events.size()), ends;
  PlayOrder(order, costs, hop, absl::MakeSpan(all));
  for (const std::int32_t last : order.last) ends.push_back(all[Size(last)]);
  return ends;
}

std::set<std::vector<std::int32_t>> States(const CompiledOrder& order, int rank) {
  const std::size_t width = 3 * Size(order.shape.chunks);
  std::set<std::vector<std::int32_t>> states;
  if (order.states.empty()) return states;
  const std::vector<std::int32_t>& all = order.states[Size(rank)];
  for (std::size_t at = 0; at < all.size(); at += width) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(at);
    states.emplace(from, from + static_cast<std::ptrdiff_t>(width));
  }
  return states;
}

// How often each rank does each pair.
std::map<std::pair<int, int>, std::vector<int>> Pairs(const CompiledOrder& order) {
  std::map<std::pair<int, int>, std::vector<int>> pairs;
  for (std::size_t i = 0; i < order.pair_counts.size(); ++i)
    pairs[order.pairs[i % order.pairs.size()]].push_back(order.pair_counts[i]);
  return pairs;
}

TEST(ShortOrder, PlaysAndHoldsWhatTheWholeOrderDoes) {
  Random random(11);
  int shortened = 0;
  for (const std::string& name : BuiltPlugins().Names(Schedule::kKind)) {
    const auto schedule = Made<Schedule>(name);
    for (const int p : {2, 3, 4, 8, 12}) {
      for (const int v : {1, 2, 3}) {
        for (const int m : {p, 2 * p + 1, 24, 96, 97, 240}) {
          const ScheduleShape shape{p, v, m};
          if (!schedule->Refusal(shape).empty()) continue;
          SCOPED_TRACE(absl::StrCat(name, " p ", p, ", v ", v, ", m ", m));
          const auto whole = CompileOrder(*schedule, shape),
                     part = CompileShortOrder(*schedule, shape);
          ASSERT_TRUE(whole.ok() && part.ok());
          shortened += part->period.more > 0 ? 1 : 0;
          EXPECT_EQ(part->shape, shape);
          EXPECT_EQ(part->stage_of, whole->stage_of);
          EXPECT_EQ(part->in_flight, whole->in_flight);
          EXPECT_EQ(part->pinned, whole->pinned);
          EXPECT_EQ(part->in_flight_until_i, whole->in_flight_until_i);
          EXPECT_EQ(part->sends, whole->sends);
          EXPECT_EQ(part->splits_backward, whole->splits_backward);
          for (int r = 0; r < p; ++r) EXPECT_EQ(States(*part, r), States(*whole, r));
          // Equal stages repeat at once; uneven ones after a while, or never.
          for (const bool equal : {true, false}) {
            const std::vector<double> costs = RandomCosts(random, *whole, equal);
            const double hop = equal ? 0 : random.Between(0.0, 1.0);
            const std::vector<double> expected = EndsInFull(*whole, costs, hop);
            const std::vector<double> ends = Ends(*part, costs, hop);
            for (std::size_t r = 0; r < ends.size(); ++r)
              EXPECT_NEAR(ends[r], expected[r], 1e-9 * expected[r]) << "rank " << r;
          }
        }
      }
    }
  }
  EXPECT_GT(shortened, 100);
}

// What is said of an order before it is made is what is found once it is; and an order that is told
// what its ranks hold is the order that counts it.
TEST(ShortOrder, OutlinesHoldWhatTheOrderDoes) {
  for (const std::string& name : BuiltPlugins().Names(Schedule::kKind)) {
    const auto schedule = Made<Schedule>(name);
    for (const int p : {2, 3, 8}) {
      for (const int v : {1, 2, 3}) {
        for (const int m : {1, p, 2 * p + 1, 96, 240}) {
          const ScheduleShape shape{p, v, m};
          if (!schedule->Refusal(shape).empty()) continue;
          SCOPED_TRACE(absl::StrCat(name, " p ", p, ", v ", v, ", m ", m));
          const auto whole = CompileOrder(*schedule, shape),
                     outline = OutlineOrder(*schedule, shape);
          ASSERT_TRUE(whole.ok() && outline.ok());
          EXPECT_EQ(outline->stages, whole->stages);
          EXPECT_EQ(outline->copies, whole->copies);
          EXPECT_EQ(outline->stage_of, whole->stage_of);
          EXPECT_EQ(outline->splits_backward, whole->splits_backward);
          EXPECT_EQ(outline->in_flight, whole->in_flight);
          EXPECT_EQ(outline->pinned, whole->pinned);
          EXPECT_EQ(outline->in_flight_until_i, whole->in_flight_until_i);
          EXPECT_EQ(outline->states, whole->states);
          EXPECT_EQ(Pairs(*outline), Pairs(*whole));
          EXPECT_TRUE(outline->events.empty());
          const auto told = CompileShortOrder(*schedule, shape, &*outline);
          ASSERT_TRUE(told.ok());
          EXPECT_EQ(told->states, whole->states);
          EXPECT_EQ(told->in_flight, whole->in_flight);
          EXPECT_EQ(told->sends, whole->sends);
        }
      }
    }
  }
}

// What a rank does a thousand times is not compiled a thousand times: events of the schedules that
// a search tries do not grow with the step.
TEST(ShortOrder, DoesNotGrowWithTheStep) {
  for (const char* name : {"pipeline-1f1b", "pipeline-interleaved", "pipeline-zb-h1"}) {
    const auto schedule = Made<Schedule>(name);
    const int v = std::string(name) == "pipeline-interleaved" ? 3 : 1;
    const auto some = CompileShortOrder(*schedule, {8, v, 512}),
               more = CompileShortOrder(*schedule, {8, v, 4096});
    ASSERT_TRUE(some.ok() && more.ok());
    EXPECT_EQ(some->events.size(), more->events.size()) << name;
    EXPECT_GT(more->period.more, some->period.more) << name;
  }
}

// A schedule that breaks its rhythm in one place only.
class Stumbling final : public Schedule {
 public:
  void Visit(ParameterVisitor&) override {}
  std::string Refusal(const ScheduleShape&) const override { return ""; }
  ScheduleOrder Order(const ScheduleShape& shape) const override {
    ScheduleOrder order(Size(shape.ranks));
    for (std::vector<Work>& list : order) {
      for (int i = 0; i < shape.micro_batches; ++i) {
        const bool stumbles = i == 3 * shape.micro_batches / 4;
        if (stumbles) {
          list.push_back({WorkKind::kF, 0, i});
          list.push_back({WorkKind::kF, 0, i + 1});
          list.push_back({WorkKind::kB, 0, i});
          list.push_back({WorkKind::kB, 0, ++i});
          continue;
        }
        list.push_back({WorkKind::kF, 0, i});
        list.push_back({WorkKind::kB, 0, i});
      }
    }
    return order;
  }
  std::string source() const override { return "made up"; }
};

TEST(ShortOrder, AnOrderThatStumblesIsPlayedAsItStands) {
  const Stumbling schedule;
  const ScheduleShape shape{2, 1, 400};
  const auto whole = CompileOrder(schedule, shape), part = CompileShortOrder(schedule, shape);
  ASSERT_TRUE(whole.ok() && part.ok());
  EXPECT_EQ(part->in_flight, whole->in_flight);
  Random random(12);
  const std::vector<double> costs = RandomCosts(random, *whole, false);
  const std::vector<double> expected = EndsInFull(*whole, costs, 0.3),
                            ends = Ends(*part, costs, 0.3);
  for (std::size_t r = 0; r < ends.size(); ++r)
    EXPECT_NEAR(ends[r], expected[r], 1e-9 * expected[r]);
}

}  // namespace
}  // namespace shardlab
