#pragma once
// Muon: the matrices of the layers have one momentum, whose step is made orthogonal; embedding,
// head and vectors (norms, biases) are left to Adam and have its two moments.
//
//   [optimizer]
//   plugin = "muon"

#include <algorithm>
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
    if (precision.master != Dtype::kNone)
      states.push_back({"master weight", precision.master, 1, true});
    if (kind.layer && kind.dimensions >= 2) {
      states.push_back({"momentum", precision.moments, 1});
    } else {
      states.push_back({"first moment", precision.moments, 1});
      states.push_back({"second moment", precision.moments, 1});
    }
    return states;
  }

  // Element by element, as Adam.
  double FlopsPerParameter() const override { return 11; }

  // Five Newton-Schulz iterations of X <- a X + (b A + c A A) X with A = X X^T, X lying on its
  // side: r rows, at most as many as its c columns, take 2 r^2 c, 2 r^3 and 2 r^2 c FLOPs.
  double FlopsOfMatrix(const ParameterKind& kind, double rows, double columns) const override {
    if (!kind.layer || kind.dimensions < 2) return 0;
    const double r = std::min(rows, columns), c = std::max(rows, columns);
    return kIterations * (4 * r * r * c + 2 * r * r * r);
  }

  std::string source() const override {
    return "Jordan et al. 2024, Muon: an optimizer for hidden layers; Liu et al., Muon is scalable "
           "for LLM training, arXiv 2502.16982, section 2";
  }

 private:
  static constexpr double kIterations = 5;
};

}  // namespace shardlab::muon
