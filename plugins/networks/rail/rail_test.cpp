#include "rail.h"

#include <gtest/gtest.h>

namespace shardlab::rail {
namespace {

Machine FourServers(double port = 50e9, double nvlink = 450e9) {
  Machine m;
  m.devices = 32;
  m.tiers = {Tier{.name = "nvlink",
                  .devices = 8,
                  .bandwidth = BytesPerSecond(nvlink),
                  .latency = Seconds(0.6e-6)},
             Tier{.name = "infiniband",
                  .devices = 32,
                  .bandwidth = BytesPerSecond(port),
                  .latency = Seconds(2.7e-6)}};
  return m;
}

// k ranks on each of q servers.
Span Group(int k, int q) {
  Span s;
  s.size = k * q;
  s.ranks = {k, k * q};
  s.domains = {q, 1};
  s.outermost = q > 1 ? 1 : 0;
  return s;
}

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kAllGather,
                               Collective::kReduceScatter, Collective::kAllToAll,
                               Collective::kSendRecv};

double Time(Collective c, double bytes, const Span& span, const Machine& machine = FourServers()) {
  Rail network;
  network.Connect(machine);
  return network.TransferTime({c, Bytes(bytes)}, span).value();
}

TEST(Rail, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(Rail, NeverUnderTheBoundAndMonotone) {
  for (const Collective c : kAll) {
    for (const Span& span : {Group(2, 1), Group(8, 1), Group(1, 4), Group(4, 2), Group(8, 4)}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e11; bytes *= 1.7) {
        const double t = Time(c, bytes, span);
        EXPECT_GE(t * (1 + 1e-12), SentShare(c, span.size) * bytes / 450e9);
        EXPECT_GE(t, before);
        EXPECT_LE(Time(c, bytes, span, FourServers(100e9)), t);
        EXPECT_LE(Time(c, bytes, span, FourServers(50e9, 900e9)), t);
        before = t;
      }
    }
  }
}

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
