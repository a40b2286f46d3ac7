#include "nccl.h"

#include <gtest/gtest.h>

#include "support/network_fixture.h"

namespace shardlab::nccl {
namespace {

constexpr auto Time = [](auto&&... args) { return TimeOf<Nccl>(args...); };

TEST(Nccl, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(Nccl, NeverUnderTheBoundAndMonotone) { ExpectBoundedAndMonotone<Nccl>(); }

// Eight H200 (the same links), all-reduce of 1 MiB to 256 MiB in microseconds (ml-engineering book,
// network chapter). Measured with in-switch reduction, which is why large messages were faster than
// any ring, and from Python, which is why small ones were slower.
TEST(Nccl, FollowsAMeasuredSizeCurve) {
  const double measured[][2] = {{1, 46.0},   {2, 56.9},   {4, 68.5},    {8, 94.4},    {16, 133.5},
                                {32, 212.9}, {64, 338.9}, {128, 584.4}, {256, 1077.1}};
  for (const auto& [mebibytes, us] : measured) {
    EXPECT_NEAR(Time(Collective::kAllReduce, mebibytes * 1048576, Group(8, 1)) * 1e6, us, 0.25 * us)
        << mebibytes;
  }
}

TEST(Nccl, LargeMessagesReachTheWorkingRate) {
  const double sent = 7.0 / 8 * 16e9;
  EXPECT_NEAR(sent / Time(Collective::kAllGather, 16e9, Group(8, 1)), 370e9, 2e9);
  // Full servers use eight ports, more than NVLink can carry; a rank for each server has one.
  EXPECT_NEAR(31.0 / 32 * 16e9 / Time(Collective::kAllGather, 16e9, Group(8, 4)), 370e9, 6e9);
  EXPECT_NEAR(3.0 / 4 * 16e9 / Time(Collective::kAllGather, 16e9, Group(1, 4)), 47e9, 1e9);
  EXPECT_NEAR(16e9 / Time(Collective::kSendRecv, 16e9, Group(1, 2)), 47e9, 1e9);
}

TEST(Nccl, TakesAnotherProtocolAndAlgorithmBySize) {
  Nccl network;
  network.Connect(FourServers());
  EXPECT_EQ(network.Algorithm({Collective::kAllReduce, Bytes(1e3)}, Group(8, 1)), "ring LL");
  EXPECT_EQ(network.Algorithm({Collective::kAllReduce, Bytes(20e6)}, Group(8, 1)), "ring LL128");
  EXPECT_EQ(network.Algorithm({Collective::kAllReduce, Bytes(1e9)}, Group(8, 1)), "ring Simple");
  EXPECT_EQ(network.Algorithm({Collective::kAllReduce, Bytes(1e3)}, Group(8, 64)), "tree LL");
  EXPECT_EQ(network.Algorithm({Collective::kAllReduce, Bytes(1e10)}, Group(8, 4)), "ring Simple");
}

TEST(Nccl, NamesAlgorithmAndSources) {
  Nccl network;
  network.Connect(FourServers());
  EXPECT_EQ(network.Algorithm({Collective::kAllGather, Bytes(1e9)}, Group(8, 1)).substr(0, 4),
            "ring");
  EXPECT_EQ(network.Algorithm({Collective::kAllToAll, Bytes(1e9)}, Group(8, 1)).substr(0, 8),
            "pairwise");
  EXPECT_FALSE(network.Constants().empty());
  for (const Constant& c : network.Constants()) EXPECT_FALSE(c.source.empty()) << c.name;
}

}  // namespace
}  // namespace shardlab::nccl
