#pragma once
// One visitor serves everything that is done with a plugin's parameters: reading them from a
// scenario with diagnostics, filling in defaults, documenting them, listing what a search may try.
// A plugin writes Visit once; the value in the struct before reading is the default.
//
//   void Visit(ParameterVisitor& v) override {
//     v.Integer({"degree", "ranks that share each layer", 1, 65536}, &degree_);
//     v.Boolean({"sequence_parallel", "cut the residual stream too"}, &sequence_parallel_);
//   }

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "api/value.h"
#include "base/export.h"

namespace shardlab {

// The dimension of a quantity that is written with its unit: "80 GB", "450 GB/s", "989 TFLOP/s", "5
// us".
enum class Unit { kNone, kBytes, kSeconds, kBytesPerSecond, kFlopsPerSecond, kFlops };

struct Parameter {
  std::string name;
  std::string description;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  // texts only: the legal values; empty = any
  std::string automatic =
      {};  // what the value in the struct stands for when the key is absent: "what is left"
  bool assumption =
      false;  // says how something is counted, not how the job is run: never varied by a search
};

class SHARDLAB_EXPORT ParameterVisitor {
 public:
  virtual ~ParameterVisitor();
  virtual void Boolean(const Parameter& parameter, bool* value) = 0;
  virtual void Integer(const Parameter& parameter, int* value) = 0;
  virtual void Number(const Parameter& parameter, double* value) = 0;
  virtual void Text(const Parameter& parameter, std::string* value) = 0;
  virtual void Amount(const Parameter& parameter, Unit unit,
                      double* value) = 0;  // in bytes, seconds, ...
  virtual void Integers(const Parameter& parameter, std::vector<int>* value) = 0;
  // A word or a number: shard = "all" | 8. The word reads as 0.
  virtual void IntegerOr(const Parameter& parameter, const std::string& word, int* value) = 0;
  // A table or list of the plugin's own shape, as written.
  virtual void Raw(const Parameter& parameter, Value* value) = 0;
};

}  // namespace shardlab
