// The orders of tests/golden/orders, cell by cell, and what they come to: published values and
// formulas, by a slow player written from the definition alone and by the compiled order.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "api/order_csv.h"
#include "core/order.h"
#include "laws/made.h"
#include "laws/random.h"
#include "laws/slow_player.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// Of a chunk, on every stage.
struct Times {
  double f = 1, i = 1, w = 1;
  double pair = -1;  // as long as its parts
};

struct Result {
  double makespan = 0;
  std::vector<double> idle, own;
  std::vector<int> until_w, until_i;
  double MostIdle() const { return *std::max_element(idle.begin(), idle.end()); }
  double MostOwn() const { return *std::max_element(own.begin(), own.end()); }
};

std::string Text(const std::string& name, const ScheduleShape& s) {
  return absl::StrCat(name, ", p ", s.ranks, ", v ", s.chunks, ", m ", s.micro_batches);
}

// Played slowly; the compiled order must say the same. Times are of a chunk.
Result Play(const Schedule& schedule, const ScheduleShape& shape, const Times& t, double hop = 0) {
  EXPECT_EQ(schedule.Refusal(shape), "");
  std::vector<double> costs;
  for (int stage = 0; stage < schedule.Stages(shape); ++stage)
    costs.insert(costs.end(), {t.f, t.i, t.w, t.i + t.w});
  const Played slow = PlaySlowly(schedule, shape, schedule.Order(shape), costs, hop, t.pair);
  EXPECT_TRUE(slow.done);
  Result result;
  result.makespan = slow.makespan;
  result.until_w = slow.in_flight;
  result.until_i = slow.in_flight_until_i;
  for (std::size_t r = 0; r < slow.end.size(); ++r) {
    result.idle.push_back(slow.makespan - slow.busy[r]);
    result.own.push_back(slow.end[r] - slow.start[r] - slow.busy[r]);
  }
  const auto compiled = CompileOrder(schedule, shape);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  if (!compiled.ok()) return result;
  costs.resize(compiled->CostCount());
  AddPairCosts(*compiled, absl::MakeSpan(costs));
  for (std::size_t i = 0; i < compiled->pairs.size() && t.pair >= 0; ++i)
    costs[compiled->ZeroCost() + 1 + i] = t.pair;
  std::vector<double> ends(compiled->events.size());
  PlayToEnd(*compiled, costs, hop, absl::MakeSpan(ends));
  double makespan = 0;
  for (const std::int32_t last : compiled->last) makespan = std::max(makespan, ends[Size(last)]);
  EXPECT_NEAR(makespan, slow.makespan, 1e-12 * slow.makespan);
  return result;
}

std::string Group(int group) { return group == 0 ? "" : absl::StrCat("group = ", group, "\n"); }

// Whole-rank times, as the golden values are.
Times PerChunk(Times t, int chunks) {
  return {t.f / chunks, t.i / chunks, t.w / chunks, t.pair < 0 ? -1 : t.pair / chunks};
}

std::vector<int> OnAll(int ranks, int value) { return std::vector<int>(Size(ranks), value); }

TEST(ScheduleGolden, OrdersCellByCell) {
  const std::vector<std::array<std::string, 2>> all = {
      {"pipeline-gpipe", "gpipe"},
      {"pipeline-1f1b", "1f1b"},
      {"pipeline-interleaved", "interleaved-v2"},
      {"pipeline-breadth-first", "breadth-first-v2"},
      {"pipeline-zb-h1", "zb-h1"},
      {"pipeline-zb-h2", "zb-h2"},
      {"pipeline-interleaved-zb", "interleaved-zb-v2"},
      {"pipeline-zb-v", "zb-v"},
      {"pipeline-v-half", "v-half"},
      {"pipeline-v-min", "v-min"},
      {"pipeline-dualpipe-v", "dualpipe-v"}};
  for (const auto& [plugin, file] : all) {
    SCOPED_TRACE(plugin);
    std::ifstream in(absl::StrCat(SHARDLAB_SOURCE_DIR "/tests/golden/orders/", file, "-p4m8.csv"));
    const std::string golden{std::istreambuf_iterator<char>(in), {}};
    ASSERT_FALSE(golden.empty());
    const auto schedule = Made<Schedule>(plugin);
    const bool two = file.find("-v") != std::string::npos;
    const ScheduleShape shape{4, std::max(two ? 2 : 1, schedule->DefaultChunks()), 8};
    ASSERT_EQ(schedule->Refusal(shape), "");
    std::vector<int> stage_of;
    for (int r = 0; r < shape.ranks; ++r) {
      for (int c = 0; c < shape.chunks; ++c) stage_of.push_back(schedule->StageOf(shape, r, c));
    }
    EXPECT_EQ(OrderToCsv(schedule->Order(shape), stage_of), golden);
    // And read again it is the same.
    Diagnostics diagnostics;
    const auto read = ParseOrderCsv(golden, "golden.csv", &diagnostics);
    ASSERT_TRUE(read.has_value()) << diagnostics.all().at(0).message;
    EXPECT_EQ(read->shape, shape);
    EXPECT_EQ(OrderToCsv(read->order, read->stage_of), golden);
  }
}

struct Golden {
  int ranks, micro_batches;
  const char* name;
  int chunks, group;
  double makespan, idle, own;
  std::vector<int> until_w, until_i;
};

TEST(ScheduleGolden, MakespanIdleOwnBubbleAndMemoryAtUnitTimes) {
  const std::vector<Golden> all = {
      {4, 8, "gpipe", 1, 0, 33, 9, 9, {8, 8, 8, 8}, {}},
      {4, 8, "1f1b", 1, 0, 33, 9, 9, {4, 3, 2, 1}, {}},
      {4, 8, "interleaved", 2, 4, 28.5, 4.5, 4.5, {11, 9, 7, 5}, {}},
      {4, 8, "interleaved", 2, 8, 28.5, 4.5, 4.5, {15, 13, 11, 9}, {}},
      {4, 8, "interleaved", 4, 4, 26.25, 2.25, 2.25, {19, 17, 15, 13}, {}},
      {4, 8, "breadth-first", 2, 0, 28.5, 4.5, 4.5, {16, 16, 16, 16}, {}},
      {4, 8, "zb-h1", 1, 0, 27, 3, 3, {4, 4, 4, 4}, {4, 3, 2, 1}},
      {4, 8, "zb-h2", 1, 0, 27, 3, 0, {7, 7, 7, 7}, {7, 5, 3, 1}},
      {4, 8, "interleaved-zb", 2, 4, 25.5, 1.5, 1.5, {8, 8, 8, 8}, {8, 7, 6, 5}},
      {4, 8, "zb-v", 2, 0, 25.5, 1.5, 0, {8, 8, 8, 8}, {}},
      {4, 8, "v-half", 2, 0, 26.5, 2.5, 2.5, {6, 6, 6, 6}, {}},
      {4, 8, "v-min", 2, 0, 29.5, 5.5, 5.5, {4, 4, 4, 4}, {}},
      {8, 16, "1f1b", 1, 0, 69, 21, 21, {8, 7, 6, 5, 4, 3, 2, 1}, {}},
      {8, 16, "interleaved", 2, 8, 58.5, 10.5, 10.5, {23, 21, 19, 17, 15, 13, 11, 9}, {}},
      {8, 16, "zb-h1", 1, 0, 55, 7, 7, OnAll(8, 8), {}},
      {8, 16, "zb-h2", 1, 0, 55, 7, 0, OnAll(8, 15), {}},
      {8, 16, "zb-v", 2, 0, 51.5, 3.5, 0, OnAll(8, 16), {}},
      {8, 16, "v-half", 2, 0, 56.5, 8.5, 8.5, OnAll(8, 10), {}},
      {8, 16, "v-min", 2, 0, 61.5, 13.5, 13.5, {7, 8, 8, 8, 8, 8, 8, 8}, {}},
  };
  for (const Golden& g : all) {
    const ScheduleShape shape{g.ranks, g.chunks, g.micro_batches};
    SCOPED_TRACE(Text(g.name, shape));
    const auto schedule =
        Made<Schedule>(absl::StrCat("pipeline-", g.name), {Group(g.group), {}, {}});
    const Result x = Play(*schedule, shape, PerChunk({}, g.chunks));
    EXPECT_DOUBLE_EQ(x.makespan, g.makespan);
    EXPECT_DOUBLE_EQ(x.MostIdle(), g.idle);
    EXPECT_NEAR(x.MostOwn(), g.own, 1e-12);
    EXPECT_EQ(x.until_w, g.until_w);
    if (!g.until_i.empty()) {
      EXPECT_EQ(x.until_i, g.until_i);
    }
  }
}

// Per-chunk times.
TEST(ScheduleGolden, DualPipe) {
  const auto dual = Made<Schedule>("pipeline-dualpipe");
  const auto v = Made<Schedule>("pipeline-dualpipe-v");
  Result x = Play(*dual, {4, 2, 8}, {1, 1, 1, 3});
  EXPECT_EQ(x.makespan, 26);
  EXPECT_EQ(x.idle, std::vector<double>(4, 2));
  EXPECT_EQ(x.until_w, OnAll(4, 5));
  x = Play(*dual, {8, 2, 20}, {1, 1, 1, 3});
  EXPECT_EQ(x.makespan, 66);
  EXPECT_EQ(x.idle, std::vector<double>(8, 6));
  EXPECT_EQ(x.until_w, OnAll(8, 9));
  x = Play(*dual, {8, 2, 20}, {1, 1, 1, 2});
  EXPECT_EQ(x.makespan, 52);
  EXPECT_EQ(x.idle, (std::vector<double>{1, 2, 3, 3, 3, 3, 2, 1}));
  EXPECT_EQ(Play(*v, {4, 2, 10}, {1, 1, 1, 3}).makespan, 66);
  EXPECT_EQ(Play(*v, {4, 2, 10}, {1, 1, 1, 2}).makespan, 52);
  x = Play(*v, {4, 2, 8}, {1, 1, 1, 3});
  EXPECT_EQ(x.makespan, 54);
  EXPECT_EQ(x.idle, std::vector<double>(4, 6));
  EXPECT_EQ(x.until_w, OnAll(4, 9));
  std::vector<int> pairs;
  for (const std::vector<Work>& list : dual->Order({8, 2, 20})) {
    pairs.push_back(static_cast<int>(std::count_if(
        list.begin(), list.end(), [](const Work& w) { return w.kind == WorkKind::kFB; })));
  }
  EXPECT_EQ(pairs, (std::vector<int>{9, 10, 11, 11, 11, 11, 10, 9}));
  // Outside the formula's condition it says 5.
  EXPECT_EQ(Play(*dual, {4, 2, 8}, {2, 3, 2, 6}).MostIdle(), 4);
}

TEST(ScheduleGolden, UnequalTimes) {
  const auto h1 = Made<Schedule>("pipeline-zb-h1"), h2 = Made<Schedule>("pipeline-zb-h2");
  EXPECT_DOUBLE_EQ(Play(*h1, {4, 1, 8}, {2, 3, 1}).MostIdle(), 12);
  EXPECT_DOUBLE_EQ(Play(*h2, {4, 1, 8}, {2, 3, 1}).MostIdle(), 9);
  EXPECT_DOUBLE_EQ(Play(*h1, {4, 1, 8}, {1, 1.25, 0.75}).MostIdle(), 4.5);
  const Result x = Play(*h2, {4, 1, 8}, {1, 1.25, 0.75});
  EXPECT_DOUBLE_EQ(x.MostOwn(), 2.25);
  EXPECT_DOUBLE_EQ(x.MostIdle(), 3);
  EXPECT_DOUBLE_EQ(Play(*h1, {2, 1, 3}, {0.75, 4.5, 3.875}).MostIdle(), 4.5);
  const auto zbv = Made<Schedule>("pipeline-zb-v"), half = Made<Schedule>("pipeline-v-half");
  EXPECT_DOUBLE_EQ(Play(*zbv, {4, 2, 8}, PerChunk({1, 1.5, 0.5}, 2)).MostIdle(), 3);
  for (const auto& [m, idle] : std::vector<std::pair<int, double>>{{8, 7}, {16, 9}, {32, 13}})
    EXPECT_DOUBLE_EQ(Play(*half, {4, 2, m}, PerChunk({1, 1.5, 0.5}, 2)).MostIdle(), idle);
}

// --- formulas, at random times of a whole rank

Times Drawn(Random& random) {
  // Sixteenths are exact in any sum that occurs.
  const auto time = [&random] { return random.Between(1, 64) / 16.0; };
  return {time(), time(), time()};
}

template <class Check>
void EachShape(int most_ranks, const std::vector<int>& chunks, Check check) {
  Random random(11);
  for (int p = 1; p <= most_ranks; ++p) {
    for (const int v : chunks) {
      for (int m = 1; m <= 32; ++m) {
        const Times t = Drawn(random);
        check(ScheduleShape{p, v, m}, t, random);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(ScheduleFormulas, OneForwardOneBackwardGpipeAndTheirHops) {
  const auto one = Made<Schedule>("pipeline-1f1b"), gpipe = Made<Schedule>("pipeline-gpipe");
  EachShape(8, {1}, [&](const ScheduleShape& s, const Times& t, Random& random) {
    SCOPED_TRACE(Text("", s));
    const double p = s.ranks, m = s.micro_batches, all = t.f + t.i + t.w;
    const Result a = Play(*one, s, t), b = Play(*gpipe, s, t);
    for (const Result& x : {a, b}) {
      EXPECT_DOUBLE_EQ(x.MostIdle(), (p - 1) * all);
      EXPECT_DOUBLE_EQ(x.MostOwn(), (p - 1) * all);
    }
    for (int r = 0; r < s.ranks; ++r) {
      EXPECT_EQ(a.until_w[Size(r)], std::min(s.ranks - r, s.micro_batches));
      EXPECT_EQ(b.until_w[Size(r)], s.micro_batches);
    }
    const double hop = random.Between(0, 64) / 16.0;
    const double waits = s.ranks == 1 ? 0 : m + p - 2 - std::ceil((m - 1) / p);
    EXPECT_DOUBLE_EQ(Play(*one, s, t, hop).makespan, (m + p - 1) * all + 2 * hop * waits);
    EXPECT_DOUBLE_EQ(Play(*gpipe, s, t, hop).makespan, (m + p - 1) * all + 2 * hop * (p - 1));
  });
}

TEST(ScheduleFormulas, InterleavedAndBreadthFirst) {
  const auto breadth = Made<Schedule>("pipeline-breadth-first");
  EachShape(8, {1, 2, 3, 4}, [&](const ScheduleShape& s, const Times& t, Random& random) {
    SCOPED_TRACE(Text("", s));
    const int p = s.ranks, v = s.chunks, m = s.micro_batches;
    const double all = t.f + t.i + t.w;
    const double few = m < p ? (v - 1.0) * (p - m) * all / v : 0;
    const double idle = (p - 1) * all / v + few;
    const auto check = [&](const Result& x) {
      EXPECT_NEAR(x.MostIdle(), idle, 1e-12 * (x.makespan));
      EXPECT_NEAR(x.MostOwn(), idle, 1e-12 * (x.makespan));
    };
    const Result bfs = Play(*breadth, s, PerChunk(t, v));
    check(bfs);
    EXPECT_EQ(bfs.until_w, OnAll(p, m * v));
    const int group = random.Chance(0.5) || m < p ? 0 : random.Between(p, m);
    const auto inter = Made<Schedule>("pipeline-interleaved", {Group(group), {}, {}});
    if (!inter->Refusal(s).empty()) return;
    const int g = group > 0 ? group : m / std::max(1, m / p);
    const Result x = Play(*inter, s, PerChunk(t, v));
    check(x);
    for (int r = 0; r < p; ++r)
      EXPECT_EQ(x.until_w[Size(r)], std::min(2 * (p - 1 - r) + (v - 1) * g + 1, m * v));
  });
}

TEST(ScheduleFormulas, ZeroBubble) {
  const auto h1 = Made<Schedule>("pipeline-zb-h1"), h2 = Made<Schedule>("pipeline-zb-h2");
  EachShape(8, {1}, [&](const ScheduleShape& s, const Times& t, Random&) {
    SCOPED_TRACE(Text("", s));
    const int p = s.ranks, m = s.micro_batches;
    if (m >= p) {
      const Result x = Play(*h1, s, t);
      EXPECT_DOUBLE_EQ(x.MostIdle(), (p - 1) * std::max({t.f, t.i, t.f + t.i - t.w}));
      EXPECT_DOUBLE_EQ(x.MostOwn(), (p - 1) * std::max(t.i, t.f + t.i - t.w));
      EXPECT_EQ(x.until_w, OnAll(p, p));
      for (int r = 0; r < p; ++r) EXPECT_EQ(x.until_i[Size(r)], p - r);
    } else {
      EXPECT_NE(h1->Refusal(s), "");
    }
    if (m >= 2 * p - 1) {
      const Result x = Play(*h2, s, t);
      EXPECT_DOUBLE_EQ(x.MostIdle(), (p - 1) * std::max({t.f, t.i - t.f, t.f + t.i - 2 * t.w}));
      EXPECT_DOUBLE_EQ(x.MostOwn(), (p - 1) * std::max({0.0, t.i - t.f, t.f + t.i - 2 * t.w}));
      EXPECT_EQ(x.until_w, OnAll(p, 2 * p - 1));
      for (int r = 0; r < p; ++r) EXPECT_EQ(x.until_i[Size(r)], 2 * (p - r) - 1);
    } else {
      EXPECT_NE(h2->Refusal(s), "");
    }
  });
}

TEST(ScheduleFormulas, InterleavedZeroBubble) {
  EachShape(8, {1, 2, 3, 4}, [&](const ScheduleShape& s, Times t, Random& random) {
    SCOPED_TRACE(Text("", s));
    const int p = s.ranks, v = s.chunks, m = s.micro_batches;
    const int group = m < p ? 0 : random.Of<int>({0, p, m});
    const auto schedule = Made<Schedule>("pipeline-interleaved-zb", {Group(group), {}, {}});
    if (!schedule->Refusal(s).empty()) return;
    const int g = group > 0 ? group : m / std::max(1, m / p);
    t.w = std::min({t.w, t.f, t.i});
    const Result x = Play(*schedule, s, PerChunk(t, v));
    if (g == p) {
      const double idle = (p - 1) * (t.f + t.i - t.w) / v;
      EXPECT_NEAR(x.MostIdle(), idle, 1e-12 * x.makespan);
      EXPECT_NEAR(x.MostOwn(), idle, 1e-12 * x.makespan);
    }
    if (m < p) return;
    for (int r = 0; r < p; ++r) {
      const int most = std::min(p + (v - 1) * g, m * v);
      EXPECT_EQ(x.until_w[Size(r)], most);
      EXPECT_EQ(x.until_i[Size(r)], std::max(most - r, 1));
    }
  });
}

TEST(ScheduleFormulas, TheV) {
  const auto zbv = Made<Schedule>("pipeline-zb-v");
  const auto half = Made<Schedule>("pipeline-v-half"), min = Made<Schedule>("pipeline-v-min");
  for (int p = 1; p <= 10; ++p) {
    for (const int m : {2 * p - 1, 2 * p, 3 * p + 1, 32}) {
      const ScheduleShape s{p, 2, std::max(m, 2 * p - 1)};
      SCOPED_TRACE(Text("", s));
      const Result x = Play(*zbv, s, {0.5, 0.5, 0.5});
      EXPECT_DOUBLE_EQ(x.MostIdle(), (p - 1) * 0.5);
      EXPECT_DOUBLE_EQ(x.MostOwn(), 0);
      EXPECT_EQ(x.until_w, OnAll(p, std::min(2 * p, 2 * s.micro_batches)));
    }
    if (p < 2) continue;
    const ScheduleShape s{p, 2, 32};
    SCOPED_TRACE(Text("", s));
    const Result h = Play(*half, s, {0.5, 0.5, 0.5}), x = Play(*min, s, {0.5, 0.5, 0.5});
    EXPECT_EQ(*std::max_element(h.until_w.begin(), h.until_w.end()), 2 * ((p + 2) / 2));
    EXPECT_EQ(*std::max_element(x.until_w.begin(), x.until_w.end()), 2 * ((p + 4) / 3));
  }
}

// The formula where it is exact, and DualPipeV = DualPipe cut in half, at any times.
TEST(ScheduleFormulas, DualPipe) {
  const auto dual = Made<Schedule>("pipeline-dualpipe");
  const auto v = Made<Schedule>("pipeline-dualpipe-v");
  Random random(12);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int m = 2 * ranks; m <= 16; ++m) {
      const ScheduleShape whole{2 * ranks, 2, 2 * m}, half{ranks, 2, m};
      SCOPED_TRACE(Text("", half));
      Times t = Drawn(random);
      t.pair = random.Between(1, 128) / 16.0;
      const Result a = Play(*dual, whole, t), b = Play(*v, half, t);
      EXPECT_EQ(a.makespan, b.makespan);
      for (int r = 0; r < ranks; ++r) {
        for (const int twin : {r, 2 * ranks - 1 - r}) {
          EXPECT_EQ(a.idle[Size(twin)], b.idle[Size(r)]);
          EXPECT_EQ(a.own[Size(twin)], b.own[Size(r)]);
          EXPECT_EQ(a.until_w[Size(twin)], 2 * ranks + 1);
          EXPECT_EQ(b.until_w[Size(r)], 2 * ranks + 1);
        }
      }
      t.i = t.f;
      t.w = std::min(t.w, t.f);
      const double backward = t.i + t.w;
      t.pair = backward + random.Between(0, 16) / 16.0 * t.f;
      const double idle = (ranks - 1) * (t.pair + backward - 3 * t.w);
      EXPECT_NEAR(Play(*dual, whole, t).MostIdle(), idle, 1e-12 * a.makespan);
      EXPECT_NEAR(Play(*v, half, t).MostIdle(), idle, 1e-12 * a.makespan);
    }
  }
}

// Hops that cost a constant only, up to the limit; T = 1.
TEST(ScheduleFormulas, WhatHidesSmallHops) {
  const auto slope = [](const char* name, int chunks, double hop) {
    const auto schedule = Made<Schedule>(name);
    const auto makespan = [&](int m, double c) {
      return Play(*schedule, {4, chunks, m}, PerChunk({}, chunks), c).makespan;
    };
    return (makespan(64, hop) - makespan(64, 0)) - (makespan(32, hop) - makespan(32, 0));
  };
  EXPECT_EQ(slope("pipeline-zb-h2", 1, 1.75), 0);
  EXPECT_EQ(slope("pipeline-zb-v", 2, 0.75), 0);
  EXPECT_EQ(slope("pipeline-zb-h1", 1, 0.5), 0);
  EXPECT_EQ(slope("pipeline-v-half", 2, 0.25), 0);
  EXPECT_EQ(slope("pipeline-breadth-first", 2, 1), 0);
  EXPECT_EQ(slope("pipeline-interleaved", 2, 0.5), 0);
  EXPECT_EQ(slope("pipeline-interleaved-zb", 2, 0.25), 0);
  EXPECT_GT(slope("pipeline-v-min", 2, 0.0625), 0);
  EXPECT_DOUBLE_EQ(slope("pipeline-1f1b", 1, 0.25), 2 * 0.25 * 32 * 3 / 4);
  EXPECT_DOUBLE_EQ(slope("pipeline-dualpipe-v", 2, 0.0625), 2 * 0.0625 * 32 * 3 / 4);
}

// --- what goes wrong is said

TEST(ScheduleRefusals, AGroupOutsideMegatronsRuleCanDeadlock) {
  const ScheduleShape shape{7, 4, 7};
  for (const char* name : {"pipeline-interleaved", "pipeline-interleaved-zb"}) {
    const auto schedule = Made<Schedule>(name, {Group(4), {}, {}});
    EXPECT_EQ(
        schedule->Refusal(shape),
        absl::StrCat(name,
                     " cannot do 7 micro-batches on 7 ranks in groups of 4: a group, and "
                     "what is left at the end, has at least 7 micro-batches; write group = 7"));
  }
  const auto schedule = Made<Schedule>("pipeline-interleaved", {Group(4), {}, {}});
  const auto compiled = CompileOrder(*schedule, shape);
  ASSERT_FALSE(compiled.ok());
  EXPECT_NE(compiled.status().message().find("(deadlock)"), absl::string_view::npos);
}

// The second dialect says when messages travel and weights are gathered; the order is the same.
TEST(ScheduleCsv, CommunicationIsReadOver) {
  Diagnostics diagnostics;
  const auto plain = ParseOrderCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "a.csv", &diagnostics);
  const auto with = ParseOrderCsv(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\r\n"
      ",1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1, 1B1 ,1SEND_B1\r\n",
      "b.csv", &diagnostics);
  ASSERT_TRUE(plain && with);
  EXPECT_EQ(plain->order, with->order);
}

}  // namespace
}  // namespace shardlab
