#pragma once
// What one rank of the toy machine computes: every OpKind with plain loops over the indices that
// the rank holds, forward and backward. Nothing here knows of other ranks; a rank that lacks a part
// which an op needs whole is a Fault.
//
//   ComputeLocally(op, sizes, {&x, &w}, y);                     // y = op(x, w) on this rank's
//   indices DifferentiateLocally(op, sizes, reads, nullptr, dy, {&dx, nullptr});  // adds to dx

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "domain/program.h"

namespace shardlab::oracle {

// What the machine notices: a version or an element that is not there, an op on half of what it
// needs.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Range {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

// Part `index` of `parts` of a range, cut as evenly as possible.
Range Part(Range whole, int index, int parts);

// The indices of one dimension that a rank holds, ascending: one range, or pieces of several.
using Indices = std::vector<int>;

// What one rank holds of a tensor: for each dimension its indices, and of the flattened rest the
// part `flat` (all of it unless the placement cuts the flattened tensor).
struct Shape {
  std::vector<Indices> box;
  Range flat;
  int volume() const;  // of the box
  bool whole_box() const { return flat.size() == volume(); }
};

struct Block {
  const Shape* shape = nullptr;  // owned by the machine
  std::vector<double> data;      // row-major; flat.size() numbers
};

using DimensionSizes = std::vector<int>;  // by DimensionId

void ComputeLocally(const Op& op, const DimensionSizes& sizes,
                    const std::vector<const Block*>& inputs, Block& output);

// `inputs[i]` is null where no gradient asked for reads operand i, `output` unless one reads the
// output; `gradients[i]` is null where the gradient of operand i is not asked for.
void DifferentiateLocally(const Op& op, const DimensionSizes& sizes,
                          const std::vector<const Block*>& inputs, const Block* output,
                          const Block& output_gradient, const std::vector<Block*>& gradients);

}  // namespace shardlab::oracle
