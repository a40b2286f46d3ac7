#include "rail_latency.h"

#include <gtest/gtest.h>

namespace shardlab::rail_latency {
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
  RailLatency network;
  network.Connect(machine);
  return network.TransferTime({c, Bytes(bytes)}, span).value();
}

TEST(RailLatency, OneRankAndASliceAreFree) {
  for (const Collective c : kAll) EXPECT_EQ(Time(c, 1e9, Group(1, 1)), 0);
  EXPECT_EQ(Time(Collective::kSlice, 1e9, Group(8, 4)), 0);
}

TEST(RailLatency, NeverUnderTheBoundAndMonotone) {
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
