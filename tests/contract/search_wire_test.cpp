// A search whose groups are searched elsewhere: is what is sent read again, and is the result that
// of one process?

#include "io/search_wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "io/search_group.h"
#include "support/program.h"

namespace shardlab {
namespace {

bool Same(const std::vector<Found>& a, const std::vector<Found>& b) {
  // Every byte of what is sent is as it was.
  return a.size() == b.size() && (a.empty() || std::memcmp(static_cast<const void*>(a.data()),
                                                           static_cast<const void*>(b.data()),
                                                           a.size() * sizeof(Found)) == 0);
}

TEST(SearchWire, GroupsSearchedElsewhereGiveTheSameResult) {
  Diagnostics diagnostics;
  const PluginRegistry registry =
      PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
  const Scenario scenario = ReadScenario(
      SHARDLAB_SOURCE_DIR "/scenarios/llama3.1-70b-32xh100.toml",
      {"accounting=operator", "search.fix=[\"strategy.context.degree\"]"}, diagnostics);
  const std::optional<SearchGrid> grid = ReadSearchGrid(registry, scenario, &diagnostics);
  ASSERT_TRUE(grid.has_value() && !diagnostics.HasErrors());
  SearchOptions options;
  options.top = 5;
  const SearchResult here = RunSearch(registry, *grid, options, [](std::int64_t) {});
  Prepared prepared;
  Prepare(registry, *grid, 1, &prepared);
  SearchOptions own = options;
  options.jobs = 3;
  std::string bytes;
  std::mutex mutex;
  options.elsewhere = [&](int group, std::int64_t first, double to_beat, int) {
    const SearchResult part = SearchOfGroup(registry, *grid, own, &prepared, group, first, to_beat);
    const std::string sent = FoundToBytes(part);
    absl::StatusOr<SearchResult> read = FoundFromBytes(sent);
    EXPECT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->counts, part.counts);
    EXPECT_TRUE(Same(read->best, part.best));
    EXPECT_TRUE(Same(read->best_unfitting, part.best_unfitting));
    const std::lock_guard<std::mutex> lock(mutex);
    if (sent.size() > bytes.size()) bytes = sent;
    return *std::move(read);
  };
  const SearchResult there = RunSearch(registry, *grid, options, [](std::int64_t) {});
  EXPECT_EQ(there.counts, here.counts);
  ASSERT_EQ(there.best.size(), 5u);
  for (std::size_t i = 0; i < here.best.size(); ++i) {
    EXPECT_EQ(there.best[i].point.number, here.best[i].point.number);
    EXPECT_EQ(there.best[i].step, here.best[i].step);
    EXPECT_EQ(there.best[i].time.exposed, here.best[i].time.exposed);
  }
  EXPECT_EQ(there.illegal.size(), here.illegal.size());
  for (const auto& [code, reason] : here.illegal) {
    EXPECT_EQ(there.illegal.at(code).count, reason.count);
    EXPECT_EQ(there.illegal.at(code).example, reason.example);
  }
  // What is cut short or too long is refused.
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(FoundFromBytes(bytes.substr(0, size)).ok()) << size;
  EXPECT_FALSE(FoundFromBytes(bytes + "x").ok());
}

}  // namespace
}  // namespace shardlab
