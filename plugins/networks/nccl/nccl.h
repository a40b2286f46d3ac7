#pragma once
// NCCL as its own tuner sees itself: a latency and a bandwidth for each algorithm (ring; for
// all-reduce also a tree between servers over chains inside them) and each protocol (LL, LL128,
// Simple), of which the fastest is taken. That gives the rate its dependence on size: small
// messages pay steps, large ones reach the link's working rate.
//
//   [hardware]
//   network = "nccl"

#include <algorithm>
#include <string>
#include <vector>

#include "api/network.h"

namespace shardlab::nccl {

// Working rate over line rate. NVLink: 370 of 450 GB/s without in-switch reduction (NCCL
// maintainers, nccl-tests issue 212; 362 to 368 measured on H200, ml-engineering book). Network: 47
// of 50 GB/s (maintainers, nccl-tests issue 290: 46 to 48).
inline constexpr double kScaleUpEfficiency = 370.0 / 450.0;
inline constexpr double kNetworkEfficiency = 47.0 / 50.0;

inline constexpr int kProtocols = 3;  // LL, LL128, Simple
inline constexpr const char* kProtocolNames[kProtocols] = {"LL", "LL128", "Simple"};

// NCCL src/graph/tuning.cc: the start of a call (2.28), what a protocol adds to LL's hop over
// NVLink and over the network (versions since Hopper; LL's own hop is the machine's latency of the
// tier), and the share of the rate that it leaves (2.8, the last version to state it as plain
// factors).
inline constexpr double kRingStart[kProtocols] = {6.6e-6, 14.0e-6, 8.4e-6};
inline constexpr double kTreeStart[kProtocols] = {6.8e-6, 14.0e-6, 8.4e-6};
inline constexpr double kRingScaleUpExtra[kProtocols] = {0, 1.3e-6, 2.8e-6};
inline constexpr double kRingNetworkExtra[kProtocols] = {0, 1.3e-6, 11.3e-6};
inline constexpr double kTreeScaleUpExtra[kProtocols] = {0, 0.65e-6, 3.4e-6};
inline constexpr double kTreeNetworkExtra[kProtocols] = {2.3e-6, 5.8e-6, 11.3e-6};
inline constexpr double kRingShare[kProtocols] = {1.0 / 4, 0.92, 1.0};
inline constexpr double kTreeShare[kProtocols] = {0.9 / 3.8, 0.9 * 0.915, 0.9};
inline constexpr double kRingLonger[kProtocols] = {1 / kRingShare[0], 1 / kRingShare[1],
                                                   1 / kRingShare[2]};
inline constexpr double kTreeLonger[kProtocols] = {1 / kTreeShare[0], 1 / kTreeShare[1],
                                                   1 / kTreeShare[2]};
// Posting one more pair of send and receive in an all-to-all.
inline constexpr double kPeerSeconds = 1e-6;

class Nccl final : public Network {
 public:
  void Connect(const Machine& machine) override {
    tiers_ = std::min(static_cast<int>(machine.tiers.size()), kMaxTiers);
    for (int i = 0; i < tiers_; ++i) {
      const Tier& tier = machine.tiers[Index(i)];
      const double line = tier.bandwidth.value() * tier.ports;
      line_[Index(i)] = line;
      rate_[Index(i)] = line * (i == 0 ? kScaleUpEfficiency : kNetworkEfficiency);
      for (int p = 0; p < kProtocols; ++p) {
        const double hop = tier.latency.value();
        ring_hop_[Index(p)][Index(i)] = hop + (i == 0 ? kRingScaleUpExtra : kRingNetworkExtra)[p];
        tree_hop_[Index(p)][Index(i)] = hop + (i == 0 ? kTreeScaleUpExtra : kTreeNetworkExtra)[p];
      }
    }
  }

  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    return Seconds(Best(transfer, span).seconds);
  }

  std::string Algorithm(const TransferShape& transfer, const Span& span) const override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return "none";
    const Choice best = Best(transfer, span);
    const char* name = best.tree ? "tree" : "ring";
    if (transfer.collective == Collective::kAllToAll)
      name = PassesOn(transfer, span.domains[0]) ? "passed on" : "pairwise";
    if (transfer.collective == Collective::kSendRecv) name = "direct";
    return std::string(name) + " " + kProtocolNames[best.protocol];
  }

  std::vector<Constant> Constants() const override {
    const std::string tuning = "NCCL src/graph/tuning.cc";
    std::vector<Constant> all = {
        {"scale-up efficiency", kScaleUpEfficiency, "",
         "NCCL maintainers, nccl-tests issue 212: 370 of 450 GB/s"},
        {"network efficiency", kNetworkEfficiency, "",
         "NCCL maintainers, nccl-tests issue 290: 46 to 48 of 50 GB/s a port"},
        {"one more peer", kPeerSeconds, "s", "assumed"},
    };
    for (int p = 0; p < kProtocols; ++p) {
      const std::string of = std::string(", ") + kProtocolNames[p];
      all.push_back({"ring start" + of, kRingStart[p], "s", tuning});
      all.push_back({"tree start" + of, kTreeStart[p], "s", tuning});
      all.push_back({"ring hop over NVLink beyond LL" + of, kRingScaleUpExtra[p], "s", tuning});
      all.push_back(
          {"ring hop over the network beyond LL" + of, kRingNetworkExtra[p], "s", tuning});
      all.push_back({"tree hop over NVLink beyond LL" + of, kTreeScaleUpExtra[p], "s", tuning});
      all.push_back(
          {"tree hop over the network beyond LL" + of, kTreeNetworkExtra[p], "s", tuning});
      all.push_back({"ring share of the rate" + of, kRingShare[p], "", tuning});
      all.push_back({"tree share of the rate" + of, kTreeShare[p], "", tuning});
    }
    return all;
  }

 private:
  struct Choice {
    double seconds = 0;
    int protocol = 0;
    bool tree = false;
  };

  static constexpr std::size_t Index(int i) { return static_cast<std::size_t>(i); }
  // A group crosses tier i when it touches several domains of the tier below.
  bool Crosses(const Span& span, int tier) const { return span.domains[Index(tier - 1)] > 1; }

  Choice Best(const TransferShape& transfer, const Span& span) const noexcept {
    if (span.size <= 1) return {};
    const double payload = transfer.payload.value();
    switch (transfer.collective) {
      case Collective::kSlice:
        return {};
      case Collective::kAllToAll:
        return AllToAll(transfer, span);
      case Collective::kSendRecv:
        return SendRecv(payload, span);
      case Collective::kAllReduce: {
        const Choice ring = Ring(transfer, span, 2);
        if (span.domains[0] <= 1) return ring;
        const Choice tree = Tree(payload, span);
        return tree.seconds < ring.seconds ? tree : ring;
      }
      default:
        return Ring(transfer, span, 1);
    }
  }

  // The slowest link on the way, where `lanes` ports of each crossed tier work side by side.
  double Link(const Span& span, double lanes) const noexcept {
    double rate = rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i)
      rate = std::min(rate, lanes * rate_[Index(i)]);
    return rate;
  }
  static double Lanes(const Span& span) { return std::max(span.ranks[0], 1); }

  // The last tier that the group crosses.
  int Outermost(const Span& span) const noexcept {
    int tier = 0;
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) tier = i;
    return tier;
  }

  // `longer`: what a protocol's share of the rate makes of the time on the wire.
  static Choice Fastest(double wire, const double* start, const double* longer,
                        const double* latency) noexcept {
    Choice best{start[0] + latency[0] + wire * longer[0], 0, false};
    for (int p = 1; p < kProtocols; ++p) {
      const double seconds = start[p] + latency[p] + wire * longer[p];
      if (seconds < best.seconds) best = {seconds, p, false};
    }
    return best;
  }

  // A pass has n - 1 steps; of them domains[0] - 1 leave a server, domains[1] - 1 a pod, ...
  Choice Ring(const TransferShape& transfer, const Span& span, int passes) const noexcept {
    double latency[kProtocols] = {};
    int beyond = span.size;
    for (int i = 0; i < tiers_ && beyond > 1; ++i) {
      const bool last = i + 1 == tiers_;
      const int domains = last ? 1 : std::max(span.domains[Index(i)], 1);
      const double steps = passes * (beyond - domains);
      for (int p = 0; p < kProtocols; ++p) latency[p] += steps * ring_hop_[Index(p)][Index(i)];
      beyond = domains;
    }
    const double sent = SentShare(transfer.collective, span.size) * transfer.payload.value();
    return Fastest(sent / Link(span, Lanes(span)), kRingStart, kRingLonger, latency);
  }

  // Up and down once: a chain over the ranks of a server, a double binary tree over the servers, in
  // which each server sends the whole tensor up and down.
  Choice Tree(double payload, const Span& span) const noexcept {
    const int outer = Outermost(span);
    int depth = 0;
    for (int reach = 1; reach < span.domains[0]; reach *= 2) ++depth;
    double latency[kProtocols] = {};
    for (int p = 0; p < kProtocols; ++p) {
      latency[p] = 2 * ((Lanes(span) - 1) * tree_hop_[Index(p)][0] +
                        depth * tree_hop_[Index(p)][Index(outer)]);
    }
    Choice best = Fastest(2 * payload / Link(span, Lanes(span)), kTreeStart, kTreeLonger, latency);
    best.tree = true;
    return best;
  }

  // Each rank's own traffic through its own links: (k-1)/(kq) of its tensor stays in the server,
  // (q-1)/q leaves it, or what of it crosses once; what arrives so is passed on. Large messages
  // only: protocol Simple.
  Choice AllToAll(const TransferShape& transfer, const Span& span) const noexcept {
    const double k = Lanes(span), q = std::max(span.domains[0], 1);
    const double crossing = CrossingShare(transfer, span.domains[0]);
    const double payload = transfer.payload.value();
    double wire = payload * (k - 1) / (PassesOn(transfer, span.domains[0]) ? k : k * q) / rate_[0];
    double fastest = line_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) {
      const double domains = span.domains[Index(i - 1)];
      wire = std::max(wire, crossing * payload * (domains - 1) / domains / rate_[Index(i)]);
      fastest = std::max(fastest, line_[Index(i)]);
    }
    // Two links at once may beat the bound of one; the promise is never to.
    wire = std::max(wire, SentShare(Collective::kAllToAll, span.size) * payload / fastest);
    const int simple = kProtocols - 1;
    const double hop = ring_hop_[Index(simple)][Index(Outermost(span))];
    return {kRingStart[simple] + hop + kPeerSeconds * (span.size - 1) + wire, simple, false};
  }

  Choice SendRecv(double payload, const Span& span) const noexcept {
    double latency[kProtocols] = {};
    for (int p = 0; p < kProtocols; ++p) latency[p] = ring_hop_[Index(p)][Index(Outermost(span))];
    return Fastest(payload / Link(span, 1), kRingStart, kRingLonger, latency);
  }

  int tiers_ = 0;
  double line_[kMaxTiers] = {};  // per device: of the scale-up link, of all its ports
  double rate_[kMaxTiers] = {};  // what of it a transfer reaches
  double ring_hop_[kProtocols][kMaxTiers] = {};
  double tree_hop_[kProtocols][kMaxTiers] = {};
};

}  // namespace shardlab::nccl
