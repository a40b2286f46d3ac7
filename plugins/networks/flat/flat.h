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
#include "api/tiered_links.h"

namespace shardlab::flat {

class Flat final : public Network {
 public:
  void Connect(const Machine& machine) override { links_.Connect(machine); }

  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return Seconds(0);
    const double payload = transfer.payload.value();
    switch (transfer.collective) {
      case Collective::kAllToAll:
        return Seconds(links_.AllToAll(transfer, span));
      default:
        return Seconds(SentShare(transfer.collective, span.size) * payload / links_.Rate(span, 1));
    }
  }

  std::string Algorithm(const TransferShape& transfer, const Span& /*span*/) const override {
    return TieredLinks::Algorithm(transfer.collective);
  }

  std::vector<Constant> Constants() const override {
    return {{"latency", 0, "s", "assumed: only bandwidth counts here"}};
  }

 private:
  TieredLinks links_;
};

}  // namespace shardlab::flat
