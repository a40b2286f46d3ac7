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
#include "api/tiered_links.h"

namespace shardlab::rail_latency {

// An older tuning table of NCCL (src/graph/tuning.cc): ring, protocol Simple. Newer versions have
// 14 us for a network step.
inline constexpr double kBase = 8.4e-6;
inline constexpr double kLocalStep = 3.4e-6;
inline constexpr double kNetworkStep = 9.6e-6;

class RailLatency final : public Network {
 public:
  void Connect(const Machine& machine) override { links_.Connect(machine); }

  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return Seconds(0);
    const double payload = transfer.payload.value();
    const int n = span.size, q = std::max(span.domains[0], 1);
    switch (transfer.collective) {
      case Collective::kAllToAll:
        return Seconds(links_.AllToAll(transfer, span) + Latency(n, q, 1));
      // Two ranks, whatever the group: in one server or in two.
      case Collective::kSendRecv:
        return Seconds(payload / links_.Rate(span, 1) + Latency(2, q > 1 ? 2 : 1, 1));
      default: {
        const double k = std::max(span.ranks[0], 1);
        const int passes = transfer.collective == Collective::kAllReduce ? 2 : 1;
        return Seconds(SentShare(transfer.collective, n) * payload / links_.Rate(span, k) +
                       Latency(n, q, passes));
      }
    }
  }

  std::string Algorithm(const TransferShape& transfer, const Span& /*span*/) const override {
    return TieredLinks::Algorithm(transfer.collective);
  }

  std::vector<Constant> Constants() const override {
    const std::string source = "NCCL src/graph/tuning.cc, an older version, ring, protocol Simple";
    return {{"start of a call", kBase, "s", source},
            {"step in a server", kLocalStep, "s", source},
            {"step between servers", kNetworkStep, "s", source}};
  }

 private:
  // A pass of a ring over n ranks on q servers has n-1 steps, of which q-1 cross.
  static double Latency(int n, int q, int passes) noexcept {
    return kBase + passes * (n - q) * kLocalStep + passes * (q - 1) * kNetworkStep;
  }

  TieredLinks links_;
};

}  // namespace shardlab::rail_latency
