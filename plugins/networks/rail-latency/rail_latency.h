#pragma once
// The classroom's network with latency: link rates as in `rail`, plus for every call a start and a
// latency for each step of the ring, inside a server and between servers. Shows why small messages
// in wide groups are slow.
//
//   [hardware]
//   network = "rail-latency"

#include <algorithm>
#include <string>
#include <vector>

#include "api/network.h"

namespace shardlab::rail_latency {

// An older tuning table of NCCL (src/graph/tuning.cc): ring, protocol Simple. Newer versions have
// 14 us for a network step.
inline constexpr double kBase = 8.4e-6;
inline constexpr double kLocalStep = 3.4e-6;
inline constexpr double kNetworkStep = 9.6e-6;

class RailLatency final : public Network {
 public:
  void Connect(const Machine& machine) override {
    tiers_ = std::min(static_cast<int>(machine.tiers.size()), kMaxTiers);
    for (int i = 0; i < tiers_; ++i) {
      const Tier& tier = machine.tiers[static_cast<std::size_t>(i)];
      rate_[Index(i)] = tier.bandwidth.value() * tier.ports;
    }
  }

  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return Seconds(0);
    const double payload = transfer.payload.value();
    const int n = span.size, q = std::max(span.domains[0], 1);
    switch (transfer.collective) {
      case Collective::kAllToAll:
        return Seconds(AllToAll(payload, span) + Latency(n, q, 1));
      // Two ranks, whatever the group: in one server or in two.
      case Collective::kSendRecv:
        return Seconds(payload / Link(span, 1) + Latency(2, q > 1 ? 2 : 1, 1));
      default: {
        const double k = std::max(span.ranks[0], 1);
        const int passes = transfer.collective == Collective::kAllReduce ? 2 : 1;
        return Seconds(SentShare(transfer.collective, n) * payload / Link(span, k) +
                       Latency(n, q, passes));
      }
    }
  }

  std::string Algorithm(const TransferShape& transfer, const Span& /*span*/) const override {
    switch (transfer.collective) {
      case Collective::kSlice:
        return "none";
      case Collective::kAllToAll:
        return "pairwise";
      case Collective::kSendRecv:
        return "direct";
      default:
        return "ring";
    }
  }

  std::vector<Constant> Constants() const override {
    const std::string source = "NCCL src/graph/tuning.cc, an older version, ring, protocol Simple";
    return {{"start of a call", kBase, "s", source},
            {"step in a server", kLocalStep, "s", source},
            {"step between servers", kNetworkStep, "s", source}};
  }

 private:
  static constexpr std::size_t Index(int tier) { return static_cast<std::size_t>(tier); }
  // A group crosses tier i when it touches several domains of the tier below.
  bool Crosses(const Span& span, int tier) const { return span.domains[Index(tier - 1)] > 1; }

  // A pass of a ring over n ranks on q servers has n-1 steps, of which q-1 cross.
  static double Latency(int n, int q, int passes) noexcept {
    return kBase + passes * (n - q) * kLocalStep + passes * (q - 1) * kNetworkStep;
  }

  // The slowest link on the way, where `lanes` ports of each crossed tier work side by side.
  double Link(const Span& span, double lanes) const noexcept {
    double rate = rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i)
      rate = std::min(rate, lanes * rate_[Index(i)]);
    return rate;
  }

  // Each rank's own traffic: of q domains it sends (q-1)/q of its tensor out through its port, and
  // (k-1)/(kq) to the other k-1 ranks of its own server. Both links work at once, so the slower one
  // counts.
  double AllToAll(double payload, const Span& span) const noexcept {
    const double k = std::max(span.ranks[0], 1), q = std::max(span.domains[0], 1);
    double fastest = rate_[0];
    double seconds = payload * (k - 1) / (k * q) / rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) {
      const double domains = span.domains[Index(i - 1)];
      seconds = std::max(seconds, payload * (domains - 1) / domains / rate_[Index(i)]);
      fastest = std::max(fastest, rate_[Index(i)]);
    }
    // Two links side by side may beat the bound of one; the promise is never to.
    return std::max(seconds, SentShare(Collective::kAllToAll, span.size) * payload / fastest);
  }

  int tiers_ = 0;
  double rate_[kMaxTiers] = {};  // per device: of the scale-up link, of all its ports
};

}  // namespace shardlab::rail_latency
