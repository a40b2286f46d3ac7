// Every schedule: each work once, no deadlock, and numbers that a slow player written from the
// definition confirms.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/order.h"
#include "laws/made.h"
#include "laws/random.h"
#include "laws/slow_player.h"

namespace shardlab {
namespace {

constexpr int kMostRanks = 16, kMostMicroBatches = 40;
const std::vector<int> kChunks = {1, 2, 3, 4};

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

std::string Text(const ScheduleShape& s) {
  return absl::StrCat("p ", s.ranks, ", v ", s.chunks, ", m ", s.micro_batches);
}

// The schedules with their defaults, and with each of their words.
struct Candidate {
  std::string name, parameters;
};

std::vector<Candidate> Schedules() {
  std::vector<Candidate> all;
  for (const std::string& name : BuiltPlugins().Names(Schedule::kKind)) {
    all.push_back({name, ""});
    for (const ParameterDoc& doc : DocsOf(Schedule::kKind, name)) {
      for (const std::string& choice : doc.choices)
        all.push_back({name, absl::StrCat(doc.name, " = \"", choice, "\"\n")});
    }
  }
  return all;
}

template <class F>
void EachLegalShape(const Schedule& schedule, F check) {
  int legal = 0;
  for (int p = 1; p <= kMostRanks; ++p) {
    for (const int v : kChunks) {
      for (int m = 1; m <= kMostMicroBatches; ++m) {
        const ScheduleShape shape{p, v, m};
        const std::string refusal = schedule.Refusal(shape);
        if (!refusal.empty()) {
          EXPECT_EQ(refusal.find('\n'), std::string::npos);
          EXPECT_EQ(refusal, schedule.Refusal(shape));
          continue;
        }
        ++legal;
        check(shape);
        if (::testing::Test::HasFailure()) return;  // one shape tells enough
      }
    }
  }
  // None at all: the order is of a file.
  EXPECT_TRUE(legal == 0 || legal > 50) << "hardly any shape is legal";
}

std::vector<double> RandomCosts(Random& random, const ScheduleShape& shape, bool equal) {
  std::vector<double> costs(Size(shape.ranks * shape.chunks) * 4);  // more than enough
  double f = 0, i = 0, w = 0;
  for (int s = 0; s < shape.ranks * shape.chunks; ++s) {
    if (s == 0 || !equal) {
      f = random.Between(0.1, 2.0);
      i = random.Between(0.1, 2.0);
      w = random.Between(0.1, 2.0);
    }
    costs[Size(s) * 4] = f;
    costs[Size(s) * 4 + 1] = i;
    costs[Size(s) * 4 + 2] = w;
    costs[Size(s) * 4 + 3] = i + w;
  }
  return costs;
}

double Makespan(const CompiledOrder& order, const std::vector<double>& costs, double hop,
                std::vector<double>* ends) {
  ends->assign(order.events.size(), 0);
  std::vector<double> with_pairs(costs.begin(),
                                 costs.begin() + static_cast<std::ptrdiff_t>(order.ZeroCost()));
  with_pairs.resize(order.CostCount());
  AddPairCosts(order, absl::MakeSpan(with_pairs));
  PlayOrder(order, with_pairs, hop, absl::MakeSpan(*ends));
  double makespan = 0;
  for (const std::int32_t last : order.last) makespan = std::max(makespan, (*ends)[Size(last)]);
  return makespan;
}

TEST(ScheduleLaws, ARankHoldsEachWorkOnceAndNeverDeadlocks) {
  for (const Candidate& candidate : Schedules()) {
    SCOPED_TRACE(candidate.name + " " + candidate.parameters);
    const auto schedule = Made<Schedule>(candidate.name, {candidate.parameters});
    EXPECT_FALSE(schedule->source().empty());
    EachLegalShape(*schedule, [&](const ScheduleShape& shape) {
      SCOPED_TRACE(Text(shape));
      const ScheduleOrder order = schedule->Order(shape);
      EXPECT_EQ(order, schedule->Order(shape)) << "the same shape gives the same order";
      ASSERT_EQ(order.size(), Size(shape.ranks));
      std::set<int> stages;
      for (int r = 0; r < shape.ranks; ++r) {
        for (int c = 0; c < shape.chunks; ++c) stages.insert(schedule->StageOf(shape, r, c));
        std::map<std::pair<int, int>, std::string> done;
        for (const Work& w : order[Size(r)]) {
          if (w.kind != WorkKind::kFB) {
            done[{w.chunk, w.micro_batch}] += Name(w.kind);
            continue;
          }
          EXPECT_TRUE(schedule->Pairs()) << "a bound on a rank's time must know";
          done[{w.chunk, w.micro_batch}] += "F";
          done[{w.backward_chunk, w.backward_micro_batch}] += "B";
        }
        // A stage that two ranks hold is done half by each.
        EXPECT_EQ(done.size(), Size(schedule->Stages(shape) * shape.micro_batches / shape.ranks));
        for (const auto& [which, kinds] : done)
          EXPECT_TRUE(kinds == "FB" || kinds == "FIW") << kinds;
      }
      EXPECT_EQ(stages.size(), Size(schedule->Stages(shape)));
      EXPECT_EQ(*stages.begin(), 0);
      EXPECT_EQ(*stages.rbegin(), schedule->Stages(shape) - 1);
      const auto compiled = CompileOrder(*schedule, shape);
      EXPECT_TRUE(compiled.ok()) << compiled.status();
    });
  }
}

TEST(ScheduleLaws, TheClosedFormIsWhatIsPlayed) {
  Random random(1);
  for (const Candidate& candidate : Schedules()) {
    SCOPED_TRACE(candidate.name + " " + candidate.parameters);
    const auto schedule = Made<Schedule>(candidate.name, {candidate.parameters});
    EachLegalShape(*schedule, [&](const ScheduleShape& shape) {
      const double slots = schedule->EqualSlots(shape);
      if (slots < 0) return;
      SCOPED_TRACE(Text(shape));
      const auto compiled = CompileOrder(*schedule, shape);
      ASSERT_TRUE(compiled.ok());
      const std::vector<double> costs = RandomCosts(random, shape, true);
      std::vector<double> ends;
      const double slot = shape.chunks * (costs[0] + costs[3]);
      EXPECT_NEAR(Makespan(*compiled, costs, 0, &ends) / slot, slots, 1e-9 * slots);
    });
  }
}

TEST(ScheduleLaws, ASlowPlayerAgrees) {
  Random random(2);
  for (const Candidate& candidate : Schedules()) {
    SCOPED_TRACE(candidate.name + " " + candidate.parameters);
    const auto schedule = Made<Schedule>(candidate.name, {candidate.parameters});
    int shapes = 0;
    EachLegalShape(*schedule, [&](const ScheduleShape& shape) {
      if (++shapes % 5 != 0 && shape.micro_batches > 8) return;
      SCOPED_TRACE(Text(shape));
      const auto compiled = CompileOrder(*schedule, shape);
      ASSERT_TRUE(compiled.ok());
      const std::vector<double> costs = RandomCosts(random, shape, random.Chance(0.3));
      const double hop = random.Chance(0.5) ? 0 : random.Between(0.0, 1.5);
      const Played slow = PlaySlowly(*schedule, shape, schedule->Order(shape), costs, hop);
      ASSERT_TRUE(slow.done);
      std::vector<double> ends;
      EXPECT_NEAR(Makespan(*compiled, costs, hop, &ends), slow.makespan, 1e-9 * slow.makespan);
      for (int r = 0; r < shape.ranks; ++r) {
        EXPECT_NEAR(ends[Size(compiled->last[Size(r)])], slow.end[Size(r)], 1e-9 * slow.makespan);
        int held = 0;
        for (int c = 0; c < shape.chunks; ++c)
          held += compiled->in_flight[Size(r * shape.chunks + c)];
        EXPECT_EQ(held, slow.in_flight[Size(r)]) << "rank " << r;
        EXPECT_EQ(compiled->in_flight_until_i[Size(r)], slow.in_flight_until_i[Size(r)])
            << "rank " << r;
      }
    });
  }
}

// More of anything is never faster, and no rank ends before its own work is done.
TEST(ScheduleLaws, NoShorterThanTheBusiestRankAndMonotone) {
  Random random(3);
  for (const Candidate& candidate : Schedules()) {
    SCOPED_TRACE(candidate.name + " " + candidate.parameters);
    const auto schedule = Made<Schedule>(candidate.name, {candidate.parameters});
    int shapes = 0;
    EachLegalShape(*schedule, [&](const ScheduleShape& shape) {
      if (++shapes % 7 != 0) return;
      SCOPED_TRACE(Text(shape));
      const auto compiled = CompileOrder(*schedule, shape);
      ASSERT_TRUE(compiled.ok());
      const ScheduleOrder order = schedule->Order(shape);
      std::vector<double> costs = RandomCosts(random, shape, false), ends;
      const double before = Makespan(*compiled, costs, 0.1, &ends);
      for (int r = 0; r < shape.ranks; ++r) {
        double busy = 0;
        const auto cost = [&](const Work& w) {
          return costs[Size(schedule->StageOf(shape, r, w.chunk)) * 4 +
                       static_cast<std::size_t>(w.kind)];
        };
        for (const Work& w : order[Size(r)]) {
          busy += w.kind == WorkKind::kFB ? cost(w.Forward()) + cost(w.Backward()) : cost(w);
        }
        EXPECT_GE(before * (1 + 1e-12), busy);
      }
      EXPECT_GE(Makespan(*compiled, costs, 0.2, &ends), before);
      costs[random.Next() % compiled->ZeroCost()] *= 1.5;
      EXPECT_GE(Makespan(*compiled, costs, 0.1, &ends), before);
    });
  }
}

// 1F1B: makespan (m + p - 1)(F + B), rank r holds min(m, p - r) (arXiv 2104.04473, section 2.2).
TEST(OneForwardOneBackward, TheClosedFormByASlowPlayer) {
  const auto schedule = Made<Schedule>("pipeline-1f1b");
  Random random(4);
  for (int p = 1; p <= kMostRanks; ++p) {
    for (int m = 1; m <= kMostMicroBatches; ++m) {
      const ScheduleShape shape{p, 1, m};
      SCOPED_TRACE(Text(shape));
      const std::vector<double> costs = RandomCosts(random, shape, true);
      const Played played = PlaySlowly(*schedule, shape, schedule->Order(shape), costs, 0);
      ASSERT_TRUE(played.done);
      const double expected = (m + p - 1) * (costs[0] + costs[3]);
      EXPECT_NEAR(played.makespan, expected, 1e-12 * expected * (m + p));
      for (int r = 0; r < p; ++r)
        EXPECT_EQ(played.in_flight[Size(r)], std::min(m, p - r)) << "rank " << r;
      const auto compiled = CompileOrder(*schedule, shape);
      ASSERT_TRUE(compiled.ok());
      for (int r = 0; r < p; ++r)
        EXPECT_EQ(compiled->in_flight[Size(r)], std::min(m, p - r)) << "rank " << r;
    }
  }
}

}  // namespace
}  // namespace shardlab
