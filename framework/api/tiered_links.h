#pragma once
// What networks that price by bandwidth share: the rate of the links on the way through a machine's
// tiers. A helper for the family of network plugins; a network of another kind needs none of it.
//
//   links.Connect(machine);
//   Seconds t = Bytes(sent) / BytesPerSecond(links.Rate(span, /*lanes=*/8));

#include <algorithm>
#include <string>

#include "domain/machine.h"

namespace shardlab {

class TieredLinks final {
 public:
  void Connect(const Machine& machine) {
    tiers_ = std::min(static_cast<int>(machine.tiers.size()), kMaxTiers);
    for (int i = 0; i < tiers_; ++i) {
      const Tier& tier = machine.tiers[Index(i)];
      rate_[Index(i)] = tier.bandwidth.value() * tier.ports;
    }
  }

  // The slowest link on the way, in bytes a second, where `lanes` devices' ports of each crossed
  // tier work side by side.
  double Rate(const Span& span, double lanes) const noexcept {
    double rate = rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) {
      rate = std::min(rate, lanes * rate_[Index(i)]);
    }
    return rate;
  }

  // Seconds of each rank's own traffic: of q domains it sends (q-1)/q of its tensor out through its
  // port, and (k-1)/(kq) to the other k-1 ranks of its own server, or (k-1)/k where rows that
  // arrive are passed on. Both links work at once, so the slower one counts.
  double AllToAll(const TransferShape& transfer, const Span& span) const noexcept {
    const double k = std::max(span.ranks[0], 1), q = std::max(span.domains[0], 1);
    const double crossing = CrossingShare(transfer, span.domains[0]);
    const double payload = transfer.payload.value();
    double fastest = rate_[0];
    double seconds =
        payload * (k - 1) / (PassesOn(transfer, span.domains[0]) ? k : k * q) / rate_[0];
    for (int i = 1; i < tiers_ && Crosses(span, i); ++i) {
      const double domains = span.domains[Index(i - 1)];
      seconds = std::max(seconds, crossing * payload * (domains - 1) / domains / rate_[Index(i)]);
      fastest = std::max(fastest, rate_[Index(i)]);
    }
    // Two links side by side may beat the bound of one; the promise is never to.
    return std::max(seconds, SentShare(Collective::kAllToAll, span.size) * payload / fastest);
  }

  // What the algorithms of these networks are called.
  static std::string Algorithm(Collective collective) {
    switch (collective) {
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

 private:
  static constexpr std::size_t Index(int tier) { return static_cast<std::size_t>(tier); }
  // A group crosses tier i when it touches several domains of the tier below.
  static bool Crosses(const Span& span, int tier) { return span.domains[Index(tier - 1)] > 1; }

  int tiers_ = 0;
  double rate_[kMaxTiers] = {};  // per device: of the scale-up link, of all its ports
};

}  // namespace shardlab
