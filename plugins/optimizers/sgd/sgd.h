#pragma once
// Stochastic gradient descent: no state at all, or one momentum for each parameter; and a
// full-precision copy of the parameters when they are kept in a shorter dtype.
//
//   [optimizer]
//   plugin = "sgd"
//   momentum = 0.9

#include <string>
#include <vector>

#include "api/optimizer.h"

namespace shardlab::sgd {

class Sgd final : public Optimizer {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Number({.name = "momentum",
              .description = "share of the last step that is kept; 0 = none, and no state for it",
              .minimum = 0,
              .maximum = 1},
             &momentum_);
  }

  std::vector<OptimizerState> States(const Precision& precision) const override {
    std::vector<OptimizerState> states;
    if (precision.master != Dtype::kNone)
      states.push_back({"master weight", precision.master, 1, true});
    if (momentum_ > 0) states.push_back({"momentum", precision.moments, 1});
    return states;
  }

  // The update, and the running sum of momentum.
  double FlopsPerParameter() const override { return momentum_ > 0 ? 4 : 2; }

  std::string source() const override {
    return "Sutskever et al. 2013, On the importance of initialization and momentum, equations 1 "
           "and 2";
  }

 private:
  double momentum_ = 0;
};

}  // namespace shardlab::sgd
