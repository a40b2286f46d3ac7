#include "core/saved_width.h"

#include <algorithm>
#include <string>

namespace shardlab {
namespace {

bool HasWeight(const Program& program, const Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Operand& operand) {
    return program.tensor(operand.tensor).role == TensorRole::kParameter;
  });
}

// Whether some gradient of the op reads the tensor as an input of the op.
bool Reads(const Op& op, TensorId tensor) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].has_gradient) continue;
    for (const int read : op.reads[i]) {
      if (read != kReadsOutput && op.inputs[static_cast<std::size_t>(read)].tensor == tensor)
        return true;
    }
  }
  return false;
}

}  // namespace

SavedWidth SavedWidthOf(const Program& program, const Precision& precision,
                        const AccountingRules& rules, const Saved& saved) {
  const Tensor& tensor = program.tensor(saved.tensor);
  SavedWidth width{BytesOf(precision, tensor.dtype), nullptr};
  // What is replayed is as it is computed, and so is the stream between replayed blocks.
  if (saved.residency != Residency::kKept || tensor.dtype != DtypeSlot::kCompute) return width;
  for (const Op& op : program.ops) {
    const bool linear = op.kind == OpKind::kProduct;
    if (linear && !HasWeight(program, op)) continue;
    const std::string name = std::string("saved.") + (linear ? "linear" : Name(op.kind)) + ".bytes";
    const auto number = rules.numbers.find(name);
    if (number == rules.numbers.end() || number->second.value >= width.bytes) continue;
    if (Reads(op, saved.tensor)) width = {number->second.value, &number->second};
  }
  return width;
}

}  // namespace shardlab
