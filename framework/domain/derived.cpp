#include "domain/derived.h"

namespace shardlab {

const char* Name(Collective collective) {
  switch (collective) {
    case Collective::kSlice:
      return "slice";
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllToAll:
      return "all-to-all";
    case Collective::kSendRecv:
      return "send/recv";
    case Collective::kHostCopy:
      return "host copy";
  }
  return "slice";
}

const char* Name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kReplay:
      return "recompute";
    case Phase::kInputGradient:
      return "backward";
    case Phase::kWeightGradient:
      return "weight gradient";
    case Phase::kReduce:
      return "gradient reduction";
    case Phase::kUpdate:
      return "optimizer";
    case Phase::kRestore:
      return "weight restore";
  }
  return "forward";
}

Placement Produced(const Op& op, std::size_t index) {
  Placement produced = op.need[index];
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    const Layout need = op.need[index].at(a);
    if (need.partial()) {
      // A sum left open through a linear op: its gradient is the whole output's gradient on every
      // rank.
      produced.Set(a, Layout::Whole());
      continue;
    }
    if (!need.whole()) continue;
    bool partial = op.work[a] >= 0;
    // The other operand of a linear op came in as an open sum: each rank's product uses its own
    // part.
    for (std::size_t j = 0; j < op.inputs.size(); ++j)
      partial |= j != index && op.need[j].at(a).sum();
    if (partial) produced.Set(a, Layout::Sum());
  }
  return produced;
}

Placement Dual(const Placement& placement) {
  Placement dual = placement;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if (dual.at(a).partial()) dual.Set(a, Layout::Whole());
  }
  return dual;
}

bool MoveOf(Layout from, Layout to, Collective* collective) {
  if (from == to) return false;
  if (from.partial()) {
    *collective = to.whole() ? Collective::kAllReduce : Collective::kReduceScatter;
  } else if (from.whole()) {
    *collective = Collective::kSlice;
  } else {
    *collective = to.whole() ? Collective::kAllGather : Collective::kAllToAll;
  }
  return true;
}

}  // namespace shardlab
