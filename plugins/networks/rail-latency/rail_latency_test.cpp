#include "rail_latency.h"

#include <gtest/gtest.h>

#include "support/network_fixture.h"

namespace shardlab::rail_latency {
namespace {

constexpr auto Time = [](auto&&... args) { return TimeOf<RailLatency>(args...); };

TEST(RailLatency, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(RailLatency, NeverUnderTheBoundAndMonotone) { ExpectBoundedAndMonotone<RailLatency>(); }

TEST(RailLatency, EachStepOfTheRingWaits) {
  const double nothing = 1e-6;
  EXPECT_NEAR(Time(Collective::kAllReduce, nothing, Group(8, 1)), 8.4e-6 + 2 * 7 * 3.4e-6, 1e-15);
  EXPECT_NEAR(Time(Collective::kAllReduce, nothing, Group(8, 4)),
              8.4e-6 + 2 * (28 * 3.4e-6 + 3 * 9.6e-6), 1e-15);
  for (const Collective c :
       {Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll}) {
    EXPECT_NEAR(Time(c, nothing, Group(8, 2)), 8.4e-6 + 14 * 3.4e-6 + 9.6e-6, 1e-15);
  }
  EXPECT_NEAR(Time(Collective::kSendRecv, nothing, Group(1, 4)), 8.4e-6 + 9.6e-6, 1e-15);
  EXPECT_NEAR(Time(Collective::kSendRecv, nothing, Group(4, 1)), 8.4e-6 + 3.4e-6, 1e-15);
}

TEST(RailLatency, AddsToTheLinkTime) {
  const double latency = 8.4e-6 + 2 * (28 * 3.4e-6 + 3 * 9.6e-6);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllReduce, 1e9, Group(8, 4)),
                   2 * 31.0 / 32 * 1e9 / 400e9 + latency);
}

TEST(RailLatency, NamesAlgorithmAndSources) {
  RailLatency network;
  network.Connect(FourServers());
  EXPECT_EQ(network.Algorithm({Collective::kAllGather, Bytes(1e9)}, Group(8, 1)).substr(0, 4),
            "ring");
  EXPECT_EQ(network.Algorithm({Collective::kAllToAll, Bytes(1e9)}, Group(8, 1)).substr(0, 8),
            "pairwise");
  EXPECT_FALSE(network.Constants().empty());
  for (const Constant& c : network.Constants()) EXPECT_FALSE(c.source.empty()) << c.name;
}

}  // namespace
}  // namespace shardlab::rail_latency
