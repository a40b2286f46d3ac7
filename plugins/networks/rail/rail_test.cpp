#include "rail.h"

#include <gtest/gtest.h>

#include "support/network_fixture.h"

namespace shardlab::rail {
namespace {

constexpr auto Time = [](auto&&... args) { return TimeOf<Rail>(args...); };

TEST(Rail, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(Rail, NeverUnderTheBoundAndMonotone) { ExpectBoundedAndMonotone<Rail>(); }

TEST(Rail, RingsUseOnePortForEachRankInAServer) {
  EXPECT_DOUBLE_EQ(Time(Collective::kAllReduce, 1e9, Group(8, 1)), 2 * 7.0 / 8 * 1e9 / 450e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllGather, 1e9, Group(8, 4)), 31.0 / 32 * 1e9 / 400e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kReduceScatter, 1e9, Group(1, 4)), 3.0 / 4 * 1e9 / 50e9);
  // Sixteen ports would be faster than NVLink.
  EXPECT_DOUBLE_EQ(Time(Collective::kAllGather, 1e9, Group(16, 2)), 31.0 / 32 * 1e9 / 450e9);
}

TEST(Rail, AllToAllTakesTheSlowerOfARanksOwnLinks) {
  EXPECT_DOUBLE_EQ(Time(Collective::kAllToAll, 1e9, Group(8, 1)), 7.0 / 8 * 1e9 / 450e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllToAll, 1e9, Group(8, 4)), 3.0 / 4 * 1e9 / 50e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllToAll, 1e9, Group(8, 2), FourServers(5e12)),
                   7.0 / 16 * 1e9 / 450e9);
}

TEST(Rail, SendUsesOneLink) {
  EXPECT_DOUBLE_EQ(Time(Collective::kSendRecv, 1e9, Group(2, 1)), 1e9 / 450e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kSendRecv, 1e9, Group(1, 2)), 1e9 / 50e9);
}

TEST(Rail, TheSlowestCrossedTierCounts) {
  Machine m = FourServers();
  m.tiers.push_back(Tier{
      .name = "pods", .devices = 64, .bandwidth = BytesPerSecond(10e9), .latency = Seconds(0)});
  Span span = Group(8, 8);
  span.domains = {8, 2, 1};
  span.ranks = {8, 32, 64};
  span.outermost = 2;
  EXPECT_DOUBLE_EQ(Time(Collective::kAllGather, 1e9, span, m), 63.0 / 64 * 1e9 / 80e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllGather, 1e9, Group(8, 4), m), 31.0 / 32 * 1e9 / 400e9);
}

TEST(Rail, NamesAlgorithmAndSources) {
  Rail network;
  network.Connect(FourServers());
  EXPECT_EQ(network.Algorithm({Collective::kAllGather, Bytes(1e9)}, Group(8, 1)).substr(0, 4),
            "ring");
  EXPECT_EQ(network.Algorithm({Collective::kAllToAll, Bytes(1e9)}, Group(8, 1)).substr(0, 8),
            "pairwise");
  EXPECT_FALSE(network.Constants().empty());
  for (const Constant& c : network.Constants()) EXPECT_FALSE(c.source.empty()) << c.name;
}

}  // namespace
}  // namespace shardlab::rail
