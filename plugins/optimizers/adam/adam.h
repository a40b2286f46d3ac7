#pragma once
// Adam and AdamW: two moments for each parameter, and a full-precision copy of it when the
// parameters themselves are kept in a shorter dtype. Weight decay adds no state.
//
//   [optimizer]
//   plugin = "adam"

#include <string>
#include <vector>

#include "api/optimizer.h"

namespace shardlab::adam {

class Adam final : public Optimizer {
 public:
  std::vector<OptimizerState> States(const Precision& precision) const override {
    std::vector<OptimizerState> states;
    if (precision.master != Dtype::kNone)
      states.push_back({"master weight", precision.master, 1, true});
    states.push_back({"first moment", precision.moments, 1});
    states.push_back({"second moment", precision.moments, 1});
    return states;
  }

  // Two moving averages (3 + 4), a root, a division, and the update (2). Calculon charges the
  // same 11.
  double FlopsPerParameter() const override { return 11; }

  std::string source() const override {
    return "Kingma and Ba, arXiv 1412.6980, algorithm 1; ZeRO, arXiv 1910.02054, section 3.1 (K = "
           "12); FLOPs: Calculon";
  }
};

}  // namespace shardlab::adam
