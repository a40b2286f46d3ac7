#pragma once
// An optimizer: which state tensors a parameter has, and what a step reads and writes. Strategies
// that shard "state" shard whatever an optimizer adds, without knowing it.
//
// Contract: once initialised const and thread-safe: plans of one search share it.

#include <string>
#include <vector>

#include "api/plugin.h"
#include "domain/precision.h"

namespace shardlab {

struct OptimizerState {
  std::string name;  // "first moment"
  Dtype dtype = Dtype::kFp32;
  double per_parameter = 1;        // elements
  bool at_initialisation = false;  // made from the weights; else by the first update

  friend bool operator==(const OptimizerState&, const OptimizerState&) = default;
};

// What an optimizer may tell parameters apart by.
struct ParameterKind {
  int dimensions = 2;  // 1: a vector (norm, bias); a lump of the classroom counts as a matrix
  bool layer = true;   // of a repeated layer; false: embedding, head, final norm
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
  // Arithmetic of one step on a whole matrix, done as matrix products; 0 for optimizers that work
  // element by element.
  virtual double FlopsOfMatrix(const ParameterKind& kind, double rows, double columns) const;
  // For optimizers that treat kinds of parameters differently; most do not.
  virtual std::vector<OptimizerState> StatesOf(const ParameterKind& kind,
                                               const Precision& precision) const;
};

}  // namespace shardlab
