#include "flat.h"

#include <gtest/gtest.h>

#include "support/network_fixture.h"

namespace shardlab::flat {
namespace {

constexpr auto Time = [](auto&&... args) { return TimeOf<Flat>(args...); };

TEST(Flat, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(Flat, NeverUnderTheBoundAndMonotone) { ExpectBoundedAndMonotone<Flat>(); }

TEST(Flat, OnePortAsSoonAsAGroupLeavesItsServer) {
  EXPECT_DOUBLE_EQ(Time(Collective::kAllReduce, 1e9, Group(8, 1)), 2 * 7.0 / 8 * 1e9 / 450e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllGather, 1e9, Group(8, 4)), 31.0 / 32 * 1e9 / 50e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kSendRecv, 1e9, Group(1, 2)), 1e9 / 50e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kSendRecv, 1e9, Group(2, 1)), 1e9 / 450e9);
  EXPECT_DOUBLE_EQ(Time(Collective::kAllToAll, 1e9, Group(8, 4)), 3.0 / 4 * 1e9 / 50e9);
}

TEST(Flat, NamesAlgorithmAndSources) {
  Flat network;
  network.Connect(FourServers());
  EXPECT_EQ(network.Algorithm({Collective::kAllGather, Bytes(1e9)}, Group(8, 1)).substr(0, 4),
            "ring");
  EXPECT_EQ(network.Algorithm({Collective::kAllToAll, Bytes(1e9)}, Group(8, 1)).substr(0, 8),
            "pairwise");
  EXPECT_FALSE(network.Constants().empty());
  for (const Constant& c : network.Constants()) EXPECT_FALSE(c.source.empty()) << c.name;
}

}  // namespace
}  // namespace shardlab::flat
