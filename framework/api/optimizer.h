#pragma once
// An optimizer: which state tensors a parameter has, and what a step reads and writes. Strategies
// that shard "state" shard whatever an optimizer adds, without knowing it.

#include <string>
#include <vector>

#include "api/plugin.h"
#include "domain/precision.h"

namespace shardlab {

struct OptimizerState {
  std::string name;  // "first moment"
  Dtype dtype = Dtype::kFp32;
  double per_parameter = 1;  // elements
};

class SHARDLAB_EXPORT Optimizer : public Plugin {
 public:
  static constexpr const char* kKind = "optimizer";
  static constexpr int kInterfaceVersion = 1;
  ~Optimizer() override;
  virtual std::vector<OptimizerState> States(const Precision& precision) const = 0;
  // Arithmetic per parameter of one step.
  virtual double FlopsPerParameter() const = 0;
  virtual std::string source() const = 0;
};

}  // namespace shardlab
