#pragma once
// Adam whose two moments are kept in 8 bits: each block of neighbours shares one scale, the largest
// magnitude in it, in fp32.
//
//   [optimizer]
//   plugin = "adam8bit"
//   block_size = 256

#include <string>
#include <vector>

#include "api/optimizer.h"

namespace shardlab::adam8bit {

class Adam8bit final : public Optimizer {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Integer({.name = "block_size",
               .description = "parameters that share a scale",
               .minimum = 1,
               .maximum = 1 << 20},
              &block_size_);
  }

  std::vector<OptimizerState> States(const Precision& precision) const override {
    std::vector<OptimizerState> states;
    if (precision.master != Dtype::kNone)
      states.push_back({"master weight", precision.master, 1, true});
    for (const char* moment : {"first moment", "second moment"}) {
      states.push_back({moment, Dtype::kInt8, 1});
      states.push_back({std::string(moment) + " scales", Dtype::kFp32, 1.0 / block_size_});
    }
    return states;
  }

  // Adam's 11, and for each moment a look-up with its scale, and a magnitude and a division back.
  double FlopsPerParameter() const override { return 11 + 2 * 3; }

  std::string source() const override {
    return "Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv 2110.02861, "
           "section 2";
  }

 private:
  int block_size_ = 2048;
};

}  // namespace shardlab::adam8bit
