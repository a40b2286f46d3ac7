#pragma once
// The classroom's worst case: as soon as a group leaves its server, everything goes through one
// port, without latency. Too pessimistic for groups that fill whole servers, by the number of ports
// of a server.
//
//   [hardware]
//   network = "flat"

#include <algorithm>
#include <string>
#include <vector>

#include "api/network.h"

namespace shardlab::flat {

class Flat final : public Network {
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
    switch (transfer.collective) {
      case Collective::kAllToAll:
        return Seconds(AllToAll(payload, span));
      default:
        return Seconds(SentShare(transfer.collective, span.size) * payload / Link(span));
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
    return {{"latency", 0, "s", "assumed: only bandwidth counts here"}};
  }

 private:
  static constexpr std::size_t Index(int tier) { return static_cast<std::size_t>(tier); }
  // A group crosses tier i when it touches several domains of the tier below.
  bool Crosses(const Span& span, int tier) const { return span.domains[Index(tier - 1)] > 1; }

  // The slowest link on the way, one device's ports of each crossed tier.
  double Link(const Span& span) const noexcept {
    double rate = rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) rate = std::min(rate, rate_[Index(i)]);
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

}  // namespace shardlab::flat
