#pragma once
// What is asked of a machine: its size and tiers, and the shape of one op or transfer to be priced.
//
//   Seconds t = hardware.OpTime({.kind = OpKind::kProduct, .m = 4096, .n = 1024, .k = 8192, ...});

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/units.h"
#include "domain/derived.h"
#include "domain/mesh.h"

namespace shardlab {

// A level of the interconnect, innermost first. `devices` share a domain of this tier.
struct Tier {
  std::string name;
  int devices = 1;
  BytesPerSecond bandwidth;  // per direction: of one device (scale-up), of one port (network)
  Seconds latency;           // of one hop
  int ports = 1;             // per device
};

struct Constant {
  std::string name;
  double value = 0;
  std::string unit;
  std::string source;  // data sheet, published measurement, fitted on ..., assumed
};

struct Machine {
  std::string name;
  int devices = 1;
  Bytes memory;             // per device, usable capacity line
  Bytes outside_allocator;  // context and communication libraries
  double fragmentation =
      0;              // share of allocated bytes that the allocator reserves and does not use
  Bytes host_memory;  // per device's share; 0 = not stated
  // A device's own, in each direction, and what an optimizer on the host reaches of the host's
  // memory, a device's share; 0 = not stated.
  BytesPerSecond host_bandwidth, host_memory_bandwidth;
  FlopsPerSecond peak;  // dense, in the compute dtype
  BytesPerSecond memory_bandwidth;
  std::vector<Tier> tiers;
  double price_per_device_hour = 0;
};

// One op on one device. m, n, k are the local sizes of a product (batch folded into m); for other
// kinds m = elements of the output. flops and bytes are the totals of this call.
struct OpShape {
  OpKind kind = OpKind::kProduct;
  Phase phase = Phase::kForward;
  double m = 1, n = 1, k = 1;
  double flops = 0;
  double bytes = 0;
  bool scores_in_memory = false;  // attention by plain products: its scores are part of `bytes`
  double tokens = 1;  // tokens of the micro-batch on this rank: the classroom's efficiency curve
};

// payload = the whole thing: the tensor of an all-reduce, the gathered result of an all-gather,
// what enters a reduce-scatter, one rank's tensor of an all-to-all, the message of a send.
struct TransferShape {
  Collective collective = Collective::kAllReduce;
  Bytes payload;
  // Of an all-to-all: so many of the payload's rows are one token's, for ranks drawn by chance, and
  // cross to each scale-up domain once, to be passed on inside; to so many domains at most. 0: each
  // row goes by itself; no limit.
  double copies = 0;
  int domains = 0;
};

// What crosses between `domains` of the bytes that would if each row went by itself. Of k copies
// q domains are reached in q (1 - (1 - 1/q)^k) on average.
inline double CrossingShare(const TransferShape& transfer, int domains) noexcept {
  if (transfer.copies <= 1 || domains <= 1) return 1;
  double reached = domains * (1 - std::pow(1 - 1.0 / domains, transfer.copies));
  if (transfer.domains > 0) reached = std::min<double>(reached, transfer.domains);
  return std::min(1.0, reached / transfer.copies);
}
// Whether rows are passed on inside a domain.
inline bool PassesOn(const TransferShape& transfer, int domains) noexcept {
  return transfer.copies > 1 && domains > 1;
}

// Bytes that one device sends: all-reduce 2(n-1)/n, all-gather, reduce-scatter and all-to-all
// (n-1)/n of the payload (Thakur, Rabenseifner and Gropp 2005, ring and pairwise algorithms), a
// send and a copy the payload itself.
constexpr double SentShare(Collective collective, int n) {
  if (collective == Collective::kHostCopy) return 1;
  if (n <= 1) return 0;
  const double share = static_cast<double>(n - 1) / n;
  switch (collective) {
    case Collective::kSlice:
      return 0;
    case Collective::kAllReduce:
      return 2 * share;
    case Collective::kSendRecv:
      return 1;
    default:
      return share;
  }
}

}  // namespace shardlab
