// Simulate against Evaluate, over plans of every kind: two programs that share the rows and nothing
// else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "core/evaluate.h"
#include "core/simulate.h"
#include "io/trace.h"
#include "laws/plans.h"

namespace shardlab {
namespace {

using Json = nlohmann::json;

Simulation Played(const LawPlan& plan, const SimulateOptions& options = {}) {
  return Simulate(plan.composition(), plan.plan(), plan.order(), options);
}

template <class F>
void ForEachPlan(F check) {
  for (const LawPlan& plan : LegalPlans()) {
    SCOPED_TRACE(plan.text);
    check(plan);
    if (::testing::Test::HasFailure()) return;
  }
}

// A file and what it includes of its own floor, as text.
std::string WithIncludes(const std::string& file, std::map<std::string, bool>* seen) {
  if (!seen->emplace(file, true).second) return "";
  std::ifstream in(std::string(SHARDLAB_SOURCE_DIR) + "/framework/" + file);
  std::stringstream text;
  text << in.rdbuf();
  std::string all = text.str();
  const std::string own = all;
  const std::regex include("#include \"(core/[^\"]+)\"");
  for (std::sregex_iterator i(own.begin(), own.end(), include), end; i != end; ++i)
    all += WithIncludes((*i)[1], seen);
  return all;
}

TEST(SimulationLaws, SimulateDoesNotIncludeEvaluate) {
  for (const char* file : {"core/simulate.cpp", "core/simulate_pass.cpp",
                           "core/simulate_memory.cpp", "core/simulate_prices.cpp"}) {
    std::map<std::string, bool> seen;
    const std::string text = WithIncludes(file, &seen);
    EXPECT_FALSE(text.empty()) << file;
    for (const char* other : {"core/evaluate.h", "core/explain.h", "core/slots.h", "core/travel.h"})
      EXPECT_EQ(seen.count(other), 0u) << file << " includes " << other;
  }
}

TEST(SimulationLaws, WhereNothingHidesTheStepIsEvaluates) {
  int checked = 0;
  ForEachPlan([&](const LawPlan& plan) {
    const Simulation s = Played(plan);
    if (s.hides) return;
    const double step = plan.planned.explanation.evaluation.step;
    EXPECT_NEAR(s.makespan, step, 1e-9 * step);
    ++checked;
  });
  EXPECT_GT(checked, 50);
}

// A sum per pass against blocks one after another: the pass's closed form is exact. What is left in
// dispute is what trails the last backward passes, bucket by bucket.
TEST(SimulationLaws, WhereTrafficHidesTheyAreWithinTwoPercent) {
  int all = 0, exact = 0;
  ForEachPlan([&](const LawPlan& plan) {
    const Simulation s = Played(plan);
    if (!s.hides) return;
    const Evaluation& e = plan.planned.explanation.evaluation;
    ++all;
    const double off = std::abs(s.makespan - e.step) / e.step;
    EXPECT_LE(off, 0.02) << s.makespan << " played, " << e.step << " evaluated";
    if (off <= 1e-9) {
      ++exact;
    } else {
      EXPECT_TRUE(e.approximate);
    }
  });
  EXPECT_GT(all, 100);
  EXPECT_GT(2 * exact, all) << exact << " of " << all;
}

TEST(SimulationLaws, ThePeakIsEvaluates) {
  ForEachPlan([&](const LawPlan& plan) {
    const Simulation s = Played(plan);
    const std::vector<RankExplanation>& ranks = plan.planned.explanation.ranks;
    ASSERT_EQ(ranks.size(), s.ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double evaluated = ranks[r].memory.total;
      EXPECT_NEAR(s.ranks[r].peak, evaluated, 1e-9 * evaluated) << r;
      EXPECT_LE(s.ranks[r].peak_at, s.ranks[r].finish);
      if (plan.order() == nullptr) continue;
      int chunks = 0;
      for (int c = 0; c < plan.plan().chunks; ++c)
        chunks += plan.order()->in_flight[r * static_cast<std::size_t>(plan.plan().chunks) +
                                          static_cast<std::size_t>(c)];
      EXPECT_EQ(s.ranks[r].peak_in_flight, chunks);
      EXPECT_EQ(s.ranks[r].peak_in_flight_until_i, plan.order()->in_flight_until_i[r]);
    }
  });
}

TEST(SimulationLaws, WhatIsNotBusyIsIdleAndNothingIsHeldAtTheEnd) {
  ForEachPlan([&](const LawPlan& plan) {
    const Simulation s = Played(plan);
    for (const SimulatedRank& rank : s.ranks) {
      EXPECT_NEAR(rank.busy + rank.idle, s.makespan, 1e-9 * s.makespan);
      EXPECT_LE(rank.own_bubble, rank.idle + 1e-9 * s.makespan);
      EXPECT_EQ(rank.samples.back().activations, 0);
      for (std::size_t i = 1; i < rank.samples.size(); ++i)
        EXPECT_GE(rank.samples[i].at, rank.samples[i - 1].at);
    }
    for (const SimulatedMessage& message : s.messages) {
      const auto at = [&](std::int32_t i) { return s.passes[static_cast<std::size_t>(i)]; };
      EXPECT_GE(message.start, at(message.from).end);
      EXPECT_LE(message.end, at(message.to).start);
    }
  });
}

TEST(SimulationLaws, ASeedGivesOneStepAndAnotherSeedAnother) {
  int noticed = 0;
  ForEachPlan([&](const LawPlan& plan) {
    SimulateOptions options;
    options.jitter = 0.1;
    const double once = Played(plan, options).makespan;
    EXPECT_EQ(once, Played(plan, options).makespan);
    options.seed = 2;
    noticed += Played(plan, options).makespan != once;
    options.jitter = 0;
    EXPECT_EQ(Played(plan, options).makespan, Played(plan).makespan);
  });
  EXPECT_GT(noticed, 250);
}

TEST(SimulationLaws, ContentionStragglersAndBlockingSendsNeverHelp) {
  int noticed = 0;
  ForEachPlan([&](const LawPlan& plan) {
    const double step = Played(plan).makespan;
    SimulateOptions contention, blocking, straggler;
    contention.contention = true;
    blocking.blocking_sends = true;
    straggler.factors.assign(static_cast<std::size_t>(plan.plan().pipeline), 1);
    straggler.factors.back() = 1.25;
    const double slack = 1e-12 * step;
    EXPECT_GE(Played(plan, contention).makespan, step - slack);
    EXPECT_GE(Played(plan, blocking).makespan, step - slack);
    const double late = Played(plan, straggler).makespan;
    EXPECT_GE(late, step - slack);
    noticed += late > step;
  });
  EXPECT_GT(noticed, 250);
}

// Slices of a track, begun earlier or containing.
void ExpectNested(const Json& trace) {
  struct Slice {
    long long start, end;
  };
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  std::map<std::string, int> arrows;
  const auto ns = [](const Json& us) { return std::llround(us.get<double>() * 1000); };
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X")
      tracks[{event["pid"], event["tid"]}].push_back(
          {ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])});
    if (event["ph"] == "s") ++arrows[event["id"]];
    if (event["ph"] == "f") --arrows[event["id"]];
  }
  for (auto& [track, slices] : tracks) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    std::vector<long long> open;
    for (const Slice& slice : slices) {
      while (!open.empty() && open.back() <= slice.start) open.pop_back();
      if (!open.empty()) {
        ASSERT_LE(slice.end, open.back())
            << "device " << track.first << ", track " << track.second << " at " << slice.start;
      }
      open.push_back(slice.end);
    }
  }
  for (const auto& [id, open] : arrows) ASSERT_EQ(open, 0) << "arrow " << id;
}

TEST(SimulationLaws, SlicesOfATraceNestAndNeverOverlap) {
  const std::vector<LawPlan>& plans = LegalPlans();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const LawPlan& plan = plans[i];
    const bool detail = i % 10 == 0;
    if (detail && plan.plan().micro_batches > 16) continue;
    SCOPED_TRACE(plan.text);
    SimulateOptions options;
    options.contention = i % 2 == 1;
    options.jitter = i % 3 == 1 ? 0.1 : 0;
    const Simulation s = Played(plan, options);
    const SimulationReport report{plan.planned, options, s};
    const std::string text =
        TraceJson(report, {detail, DevicesShown(plan.composition(), plan.plan(), 0)});
    const Json trace = Json::parse(text, nullptr, false);
    ASSERT_FALSE(trace.is_discarded());
    ExpectNested(trace);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shardlab
