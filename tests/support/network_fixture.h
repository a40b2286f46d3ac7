#pragma once
// The machine and the groups that the tests of network plugins ask about: four servers of eight.
//
//   EXPECT_EQ(TimeOf<rail::Rail>(Collective::kAllReduce, 1e9, Group(8, 4)), ...);

#include <gtest/gtest.h>

#include "api/network.h"

namespace shardlab {

inline Machine FourServers(double port = 50e9, double nvlink = 450e9) {
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
inline Span Group(int k, int q) {
  Span s;
  s.size = k * q;
  s.ranks = {k, k * q};
  s.domains = {q, 1};
  s.outermost = q > 1 ? 1 : 0;
  return s;
}

inline constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kAllGather,
                                      Collective::kReduceScatter, Collective::kAllToAll,
                                      Collective::kSendRecv};

template <class NetworkPlugin>
double TimeOf(Collective c, double bytes, const Span& span,
              const Machine& machine = FourServers()) {
  NetworkPlugin network;
  network.Connect(machine);
  return network.TransferTime({c, Bytes(bytes)}, span).value();
}

// No collective under its bound, none faster for more bytes or slower links.
template <class NetworkPlugin>
void ExpectBoundedAndMonotone() {
  for (const Collective c : kAll) {
    for (const Span& span : {Group(2, 1), Group(8, 1), Group(1, 4), Group(4, 2), Group(8, 4)}) {
      double before = 0;
      for (double bytes = 1; bytes < 1e11; bytes *= 1.7) {
        const double t = TimeOf<NetworkPlugin>(c, bytes, span);
        EXPECT_GE(t * (1 + 1e-12), SentShare(c, span.size) * bytes / 450e9);
        EXPECT_GE(t, before);
        EXPECT_LE(TimeOf<NetworkPlugin>(c, bytes, span, FourServers(100e9)), t);
        EXPECT_LE(TimeOf<NetworkPlugin>(c, bytes, span, FourServers(50e9, 900e9)), t);
        before = t;
      }
    }
  }
}

}  // namespace shardlab
