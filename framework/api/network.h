#pragma once
// A network: how long one collective takes over a group that lies on the machine as `span` says.
//
// Contract: const and thread-safe, no allocation; a group of one takes no time; never less than the
// bytes that the algorithm sends (SentShare) over the fastest link of the span; a faster link is
// never slower.

#include <string>
#include <vector>

#include "api/plugin.h"
#include "domain/machine.h"

namespace shardlab {

class SHARDLAB_EXPORT Network : public Plugin {
 public:
  static constexpr const char* kKind = "network";
  static constexpr int kInterfaceVersion = 1;
  ~Network() override;
  // Called once, after Init; the reference outlives the network.
  virtual void Connect(const Machine& machine) = 0;
  virtual Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept = 0;
  virtual std::string Algorithm(const TransferShape& transfer,
                                const Span& span) const = 0;  // "ring", "pairwise"
  virtual std::vector<Constant> Constants() const = 0;
};

}  // namespace shardlab
