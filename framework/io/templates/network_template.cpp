#include "io/plugin_template_texts.h"

namespace shardlab {

const TemplateTexts kNetworkTemplate = {
    R"TEXT(// @NAME@: what an algorithm sends, over the slowest link that the group crosses, and a latency.
//
//   [hardware]
//   plugin = "h100-dgx"
//   network = "@NAME@"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "api/network.h"

namespace {

using shardlab::Collective;
using shardlab::Seconds;
using shardlab::Span;
using shardlab::TransferShape;

class @CLASS@ final : public shardlab::Network {
 public:
  // Once, before anything is asked; what TransferTime needs is laid out here, so that it only computes.
  void Connect(const shardlab::Machine& machine) override {
    double slowest = 0;
    double longest = 0;
    for (std::size_t i = 0; i < rate_.size(); ++i) {
      if (i < machine.tiers.size()) {
        const shardlab::Tier& tier = machine.tiers[i];
        const double rate = tier.bandwidth.value() * tier.ports;
        slowest = i == 0 ? rate : std::min(slowest, rate);
        longest = std::max(longest, tier.latency.value());
      }
      rate_[i] = slowest;
      latency_[i] = longest;
    }
  }

  // Never less than the bytes that the algorithm sends over the fastest link; a group of one takes no time.
  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    if (span.size <= 1 || transfer.collective == Collective::kSlice) return Seconds(0);
    const auto tier = static_cast<std::size_t>(span.outermost);
    const double sent = shardlab::SentShare(transfer.collective, span.size) * transfer.payload.value();
    return Seconds(sent / rate_[tier] + latency_[tier]);
  }

  std::string Algorithm(const TransferShape& transfer, const Span&) const override {
    switch (transfer.collective) {
      case Collective::kSlice: return "none";
      case Collective::kAllToAll: return "pairwise";
      case Collective::kSendRecv: return "direct";
      default: return "ring";
    }
  }

  std::vector<shardlab::Constant> Constants() const override {
    return {{"latencies of a transfer", 1, "", "assumed: one, whatever the group"}};
  }

 private:
  // Of a group whose outermost tier is i: the slowest link on the way, the longest latency.
  std::array<double, shardlab::kMaxTiers> rate_{};
  std::array<double, shardlab::kMaxTiers> latency_{};
};

}  // namespace

SHARDLAB_PLUGIN("@NAME@", @CLASS@, "sent bytes over the slowest link, and a latency")
)TEXT",
    "A transfer takes as long as the bytes that one device sends need on the slowest link that the "
    "group\n"
    "crosses, and one latency.",
    "Seconds = sent share x payload / slowest rate + latency; the sent share is 2(n-1)/n for an "
    "all-reduce,\n"
    "(n-1)/n for an all-gather, a reduce-scatter and an all-to-all, 1 for a send.",
    "A ring that fills its servers could use all their ports; here it uses one device's.",
    R"TEXT(name = "an 8B model over @NAME@"
accounting = "textbook"

[model]
plugin = "llama"
preset = "llama3.1-8b"

[hardware]
plugin = "h100-dgx"
nodes = 2
network = "@NAME@"

[training]
sequence_length = 4096
micro_batch_size = 1
global_batch_size = 16

[strategy.tensor]
degree = 8

[expect]
"memory.fits" = true
"time.exposed.tensor_seconds" = { min = 0.01 }
)TEXT",
    "",
};

}  // namespace shardlab
