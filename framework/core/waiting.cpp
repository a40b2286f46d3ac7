#include "core/waiting.h"

#include <algorithm>

#include "core/saved_width.h"

namespace shardlab {
namespace {

// Of the whole tensor on one device.
double Elements(const Program& program, TensorId id) {
  const Tensor& tensor = program.tensor(id);
  double elements = tensor.scale;
  for (const DimensionId dim : tensor.dims) elements *= program.dimension(dim).size;
  return elements;
}

bool ReadForWeights(const Program& program, const Op& op, TensorId tensor) {
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    if (program.tensor(op.inputs[j].tensor).role != TensorRole::kParameter) continue;
    for (const int read : op.reads[j]) {
      if (read != kReadsOutput && op.inputs[static_cast<std::size_t>(read)].tensor == tensor)
        return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Waiting> WaitingOf(const Program& program, const Derived& derived,
                               const Precision& precision, const AccountingRules& rules,
                               ClassId layer) {
  std::vector<const Op*> products;
  std::vector<Waiting> rows;
  double waits = 0, saves = 0;
  const auto narrow = rules.numbers.find("saved.linear.bytes");
  for (const Op& op : program.ops) {
    if (op.layer_class != layer || op.kind != OpKind::kProduct) continue;
    const bool weighted = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Operand& o) {
      return program.tensor(o.tensor).role == TensorRole::kParameter;
    });
    if (!weighted) continue;
    products.push_back(&op);
    // A product that keeps its inputs in a narrower type multiplies gradients in that type too.
    double bytes = BytesOf(precision, program.tensor(op.output).dtype);
    if (narrow != rules.numbers.end()) bytes = std::min(bytes, narrow->second.value);
    rows.push_back({op.output, true, Dual(op.made), bytes, -1});
    waits += Elements(program, op.output) * bytes;
  }
  for (std::size_t i = 0; i < derived.saved.size(); ++i) {
    const Saved& saved = derived.saved[i];
    if (program.op(saved.reader).layer_class != layer) continue;
    const double bytes = SavedWidthOf(program, precision, rules, saved).bytes;
    saves += Elements(program, saved.tensor) * bytes;
    const bool read = std::any_of(products.begin(), products.end(), [&](const Op* op) {
      return ReadForWeights(program, *op, saved.tensor);
    });
    if (!read) continue;
    rows.push_back({saved.tensor, false, saved.at, bytes, static_cast<std::int32_t>(i)});
    waits += Elements(program, saved.tensor) * bytes;
  }
  return waits > saves ? rows : std::vector<Waiting>();
}

}  // namespace shardlab
