#pragma once
// Muon: the matrices of the layers have one momentum, whose step is made orthogonal; embedding,
// head and vectors (norms, biases) are left to Adam and have its two moments.
//
//   [optimizer]
//   plugin = "muon"

#include <string>
#include <vector>

#include "api/optimizer.h"

namespace shardlab::muon {

class Muon final : public Optimizer {
 public:
  // Of a matrix, which nearly all parameters belong to.
  std::vector<OptimizerState> States(const Precision& precision) const override {
    return StatesOf({}, precision);
  }

  std::vector<OptimizerState> StatesOf(const ParameterKind& kind,
                                       const Precision& precision) const override {
    std::vector<OptimizerState> states;
    if (precision.master != Dtype::kNone) states.push_back({"master weight", precision.master, 1});
    if (kind.layer && kind.dimensions >= 2) {
      states.push_back({"momentum", precision.moments, 1});
    } else {
      states.push_back({"first moment", precision.moments, 1});
      states.push_back({"second moment", precision.moments, 1});
    }
    return states;
  }

  // Element by element, as Adam; the orthogonalisation is not counted (README, limits).
  double FlopsPerParameter() const override { return 11; }

  std::string source() const override {
    return "Jordan et al. 2024, Muon: an optimizer for hidden layers; Liu et al., Muon is scalable "
           "for LLM training, arXiv 2502.16982, section 2";
  }
};

}  // namespace shardlab::muon
