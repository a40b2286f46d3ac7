// What is said of an order that cannot be played: is it the right cell, and is it said exactly of
// the orders that a slow player cannot play?

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/order_csv.h"
#include "laws/random.h"

namespace shardlab {
namespace {

struct Said {
  const char* csv;
  int line, column;  // of the cell
  std::vector<std::pair<int, int>> other;
  const char* message;
};

// Where each mistake was put by hand.
TEST(OrderFault, TheFirstImpossibleCellIsToldWithWhatItWaitsFor) {
  const std::vector<Said> all = {
      // deadlock: rank 1 wants both forwards first, rank 0 its backward between them
      {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
       1,
       5,
       {{2, 9}},
       "rank 0 cannot do 0B0: it waits for 1B0, which rank 1 does after 1F1, which waits for 0F1, "
       "which rank 0 does after 0B0 (deadlock)"},
      // the same in the dialect with communication: columns are those of the file
      {"0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
       1,
       32,
       {{2, 9}},
       "rank 0 cannot do 0B0: it waits for 1B0, which rank 1 does after 1F1, which waits for 0F1, "
       "which rank 0 does after 0B0 (deadlock)"},
      // one rank alone
      {"0W0,0F0,0I0\n",
       1,
       1,
       {{1, 9}},
       "rank 0 cannot do 0W0: it waits for 0I0, which it does after 0W0 (deadlock)"},
      {"(0F0;0B0)OVERLAP_F_B\n",
       1,
       6,
       {{1, 2}},
       "rank 0 cannot do 0B0: it waits for 0F0, which it does at the same time as 0B0 (deadlock)"},
      // missing work
      {"0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n",
       1,
       5,
       {},
       "rank 0 does 0F1, and its backward, 0B1 or 0I1 and 0W1, is missing"},
      {"0F0,0I0\n", 1, 1, {}, "rank 0 does 0F0, and its weight gradient, 0W0, is missing"},
      {"0F0,0W0\n", 1, 1, {}, "rank 0 does 0F0, and its input gradient, 0I0, is missing"},
      {"0F0,,0B0,0B1\n1F0,1B0,1F1,1B1\n",
       1,
       10,
       {},
       "rank 0 cannot do 0B1: its forward, 0F1, is missing on every rank"},
      {"0F0,0B0\n1F0,1B0,1F1,1B1\n",
       2,
       9,
       {},
       "rank 1 cannot do 1F1: it waits for 0F1, which is missing on every rank"},
      {"0F0,0F1,0B0,0B1\n1F0,1B0\n",
       1,
       13,
       {},
       "rank 0 cannot do 0B1: it waits for 1B1 or 1I1, which is missing on every rank"},
      {"0F0,0B0,0F2,0B2\n1F0,1B0,1F2,1B2\n",
       1,
       9,
       {},
       "rank 0 does 0F2 of micro-batch 2, and no rank does anything of micro-batch 1: they count "
       "from 0 without a gap"},
      // doubled work
      {"0F0,0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n", 1, 9, {{1, 1}}, "rank 0 does 0F0 twice"},
      {"0F0,0I0,0B0\n", 1, 9, {{1, 5}}, "rank 0 does 0B0 twice: 0I0 is part of it"},
      {"0F0,0B0,0W0\n", 1, 9, {{1, 5}}, "rank 0 does 0W0 twice: 0B0 holds it already"},
      {"0F0,0B0\n0F0,0B0\n", 2, 1, {{1, 1}}, "rank 1 does 0F0 again, as rank 0 did"},
      // a stage of another rank
      {"0F0,0F1,1B0,0B0,0B1\n1F0,1B0,1F1,1B1\n",
       1,
       9,
       {{2, 5}},
       "rank 0 does 1B0, of another rank's stage: rank 1 does it too, and all else of stage 1 for "
       "micro-batch 0"},
      {"0F0,1B0\n1F0,0B0\n",
       1,
       5,
       {{2, 1}},
       "rank 0 cannot do 1B0: its forward, 1F0, is done on rank 1, which alone holds what was "
       "saved for it"},
      {"0F0,1F0,0B0,1B0\n2F0,2B0\n",
       2,
       1,
       {},
       "rank 1 does work of 1 stage and rank 0 of 2: each rank holds as many"},
      {"0F0,0B0\n\n1F0,1B0\n",
       2,
       1,
       {},
       "rank 1 does work of 0 stages and rank 0 of 1: each rank holds as many"},
      {"0F0,0B0,1F0,1B0,1F1,1B1\n0F1,0B1,2F0,2B0,2F1,2B1\n",
       1,
       9,
       {},
       "rank 0 does 2 of 2 micro-batches of stage 1, which 1 rank holds; stage 0 lies on 2: stages "
       "lie on equally many ranks, which do equal shares"},
  };
  for (const Said& said : all) {
    SCOPED_TRACE(said.csv);
    Diagnostics diagnostics;
    EXPECT_FALSE(ParseOrderCsv(said.csv, "a.csv", &diagnostics));
    ASSERT_EQ(diagnostics.all().size(), 1u);
    const Diagnostic& d = diagnostics.all()[0];
    EXPECT_EQ(d.code, "schedule.order");
    EXPECT_EQ(d.message, absl::StrCat("an impossible order: ", said.message));
    EXPECT_EQ(d.place, (Place{"a.csv", said.line, said.column, ""}));
    std::vector<std::pair<int, int>> other;
    for (const Place& place : d.other_places) other.emplace_back(place.line, place.column);
    EXPECT_EQ(other, said.other);
  }
}

TEST(OrderFault, EveryCellThatIsNoOpIsToldAtOnce) {
  Diagnostics diagnostics;
  EXPECT_FALSE(ParseOrderCsv("0F0,0Q0,\xC3\xA4, 7\r\n1F0,(1F1;1B0),1B0\n", "a.csv", &diagnostics));
  std::vector<std::string> told;
  for (const Diagnostic& d : diagnostics.all()) {
    told.push_back(absl::StrCat(d.place.line, ":", d.place.column, " ", d.message));
    EXPECT_EQ(d.hint,
              "write stage, F, I, W or B, and micro-batch, like 2F0, or a pair "
              "(2F4;5B1)OVERLAP_F_B");
  }
  EXPECT_EQ(told, (std::vector<std::string>{"1:5 \"0Q0\" is no op", "1:9 \"\xC3\xA4\" is no op",
                                            "1:12 \"7\" is no op", "2:5 \"(1F1;1B0)\" is no op"}));
}

TEST(OrderFault, AFileWithoutRowsIsTold) {
  for (const char* text : {"", "\n", " \r\n\n"}) {
    Diagnostics diagnostics;
    EXPECT_FALSE(ParseOrderCsv(text, "a.csv", &diagnostics));
    EXPECT_EQ(diagnostics.all().at(0).message, "there are no rows");
  }
}

// --- is it said exactly of what cannot be played?

using Lists = std::vector<std::vector<std::string>>;

// Tries every rank again and again, knowing only cells' names: what is left over is stuck.
bool SlowlyPlayable(const Lists& lists, int stages) {
  std::vector<std::string> done;
  const auto is_done = [&](const std::string& cell) {
    return std::find(done.begin(), done.end(), cell) != done.end();
  };
  std::vector<std::size_t> next(lists.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      if (next[rank] == lists[rank].size()) continue;
      const std::string cell = lists[rank][next[rank]];
      const int stage = cell[0] - '0';
      const char kind = cell[1], batch = cell[2];
      const auto named = [&](int s, char k) { return std::to_string(s) + k + batch; };
      bool ready = true;
      if (kind == 'F') ready = stage == 0 || is_done(named(stage - 1, 'F'));
      if (kind == 'W') ready = is_done(named(stage, 'I'));
      if (kind == 'I' || kind == 'B') {
        ready =
            is_done(named(stage, 'F')) && (stage + 1 == stages || is_done(named(stage + 1, 'I')) ||
                                           is_done(named(stage + 1, 'B')));
      }
      if (!ready) continue;
      done.push_back(cell);
      ++next[rank];
      moved = true;
    }
  }
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    if (next[rank] != lists[rank].size()) return false;
  }
  return true;
}

std::string Csv(const Lists& lists) {
  std::string text;
  for (const auto& list : lists) absl::StrAppend(&text, absl::StrJoin(list, ","), "\n");
  return text;
}

TEST(OrderFault, OrdersThatASlowPlayerPlaysAreReadAndOthersDeadlock) {
  Random random(4);
  int played = 0, stuck = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int ranks = random.Between(1, 3), chunks = random.Between(1, 2);
    const int batches = random.Between(1, 3), stages = ranks * chunks;
    Lists lists(static_cast<std::size_t>(ranks));
    for (int stage = 0; stage < stages; ++stage) {
      for (int batch = 0; batch < batches; ++batch) {
        auto& list = lists[static_cast<std::size_t>(stage % ranks)];
        const bool split = random.Between(0, 1) == 1;
        for (const char* kind :
             split ? std::vector<const char*>{"F", "I", "W"} : std::vector<const char*>{"F", "B"})
          list.push_back(absl::StrCat(stage, kind, batch));
      }
    }
    // Sorted by passes it can be played; each exchange of neighbours may break it.
    for (auto& list : lists) {
      std::stable_sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
        const auto rank_of = [](const std::string& cell) {
          const int stage = cell[0] - '0';
          return cell[1] == 'F' ? stage : cell[1] == 'W' ? 100 : 50 - stage;
        };
        return rank_of(a) < rank_of(b);
      });
      for (int exchange = random.Between(0, 3); exchange > 0 && list.size() > 1; --exchange) {
        const auto at =
            static_cast<std::size_t>(random.Between(0, static_cast<int>(list.size()) - 2));
        std::swap(list[at], list[at + 1]);
      }
    }
    const std::string csv = Csv(lists);
    SCOPED_TRACE(csv);
    Diagnostics diagnostics;
    const bool read = ParseOrderCsv(csv, "a.csv", &diagnostics).has_value();
    EXPECT_EQ(read, SlowlyPlayable(lists, stages));
    ++(read ? played : stuck);
    if (read) continue;
    EXPECT_NE(diagnostics.all().at(0).message.find("(deadlock)"), std::string::npos);
  }
  EXPECT_GT(played, 50);
  EXPECT_GT(stuck, 50);
}

// 16,000 rows that wait in a chain against their order, and one impossible cell: told at once.
TEST(OrderFault, ALongChainIsToldWithoutAHang) {
  constexpr int kRanks = 16000;
  std::string csv;
  for (int r = 0; r < kRanks; ++r) {
    const bool wrong = r == kRanks / 2;
    absl::StrAppend(&csv, r, wrong ? "B0," : "F0,", r, wrong ? "F0\n" : "B0\n");
  }
  Diagnostics diagnostics;
  EXPECT_FALSE(ParseOrderCsv(csv, "a.csv", &diagnostics));
  EXPECT_EQ(diagnostics.all().at(0).place, (Place{"a.csv", kRanks / 2 + 1, 1, ""}));
}

}  // namespace
}  // namespace shardlab
