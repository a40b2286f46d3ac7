#pragma once
// Collectives at full link rate and no latency: rings that cross servers use one port for each of
// their ranks in a server ("rails"), all-to-all and send/recv one port for each rank. An upper
// bound on what a network can do.
//
//   [hardware]
//   network = "rail"

#include <algorithm>
#include <string>
#include <vector>

#include "api/network.h"
#include "api/tiered_links.h"

namespace shardlab::rail {

class Rail final : public Network {
 public:
  void Connect(const Machine& machine) override { links_.Connect(machine); }

  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return Seconds(0);
    const double payload = transfer.payload.value();
    switch (transfer.collective) {
      case Collective::kAllToAll:
        return Seconds(links_.AllToAll(transfer, span));
      case Collective::kSendRecv:
        return Seconds(payload / links_.Rate(span, 1));
      default: {
        const double k = std::max(span.ranks[0], 1);
        return Seconds(SentShare(transfer.collective, span.size) * payload / links_.Rate(span, k));
      }
    }
  }

  std::string Algorithm(const TransferShape& transfer, const Span& /*span*/) const override {
    return TieredLinks::Algorithm(transfer.collective);
  }

  std::vector<Constant> Constants() const override {
    return {{"latency", 0, "s", "assumed: the classroom's upper bound"}};
  }

 private:
  TieredLinks links_;
};

}  // namespace shardlab::rail
