#include "api/program_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {

void ProgramBuilder::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void ProgramBuilder::Dimension(char letter, std::string name, double size) {
  program_.dimensions.push_back({std::move(name), letter, size, DimensionKind::kFixed});
}

void ProgramBuilder::Batch(char letter) {
  program_.dimensions.push_back({"batch", letter, 1, DimensionKind::kBatch});
}

void ProgramBuilder::Sequence(char letter, double size) {
  program_.dimensions.push_back({"sequence", letter, size, DimensionKind::kSequence});
}

void ProgramBuilder::Alias(char letter, char dimension) {
  aliases_.emplace_back(letter, dimension);
}

DimensionId ProgramBuilder::DimOf(char letter) {
  for (const auto& [alias, dimension] : aliases_) {
    if (alias == letter) letter = dimension;
  }
  for (std::size_t i = 0; i < program_.dimensions.size(); ++i) {
    if (program_.dimensions[i].letter == letter) return DimensionId(i);
  }
  Fail(absl::StrCat("no dimension has the letter '", std::string(1, letter), "'"));
  return DimensionId(0);
}

std::vector<DimensionId> ProgramBuilder::Dims(std::string_view letters) {
  std::vector<DimensionId> dims;
  for (const char letter : letters) dims.push_back(DimOf(letter));
  return dims;
}

void ProgramBuilder::BeginClass(std::string name, StagePosition position, int repeat, bool block) {
  if (in_class_) Fail(absl::StrCat("class \"", name, "\" begins inside another class"));
  in_class_ = true;
  LayerClass layer;
  layer.name = std::move(name);
  layer.position = position;
  layer.repeat = repeat;
  layer.block = block;
  program_.classes.push_back(std::move(layer));
}

void ProgramBuilder::EndClass() {
  if (!in_class_) Fail("a class ends that was not begun");
  in_class_ = false;
}

TensorId ProgramBuilder::NewTensor(std::string name, std::string_view dims, TensorRole role,
                                   DtypeSlot dtype) {
  if (!in_class_) Fail(absl::StrCat("tensor \"", name, "\" stands outside a class"));
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.layer_class = ClassId(program_.classes.empty() ? 0 : program_.classes.size() - 1);
  tensor.role = role;
  tensor.dims = Dims(dims);
  tensor.dtype = dtype;
  program_.tensors.push_back(std::move(tensor));
  return TensorId(program_.tensors.size() - 1);
}

TensorId ProgramBuilder::Input(std::string name, std::string_view dims) {
  const TensorId id = NewTensor(std::move(name), dims, TensorRole::kStream, DtypeSlot::kCompute);
  if (!program_.classes.empty()) program_.classes.back().input = id;
  return id;
}

void ProgramBuilder::Output(TensorId stream) {
  if (!program_.classes.empty()) program_.classes.back().output = stream;
}

TensorId ProgramBuilder::Parameter(std::string name, std::string_view dims, double scale) {
  const TensorId id =
      NewTensor(std::move(name), dims, TensorRole::kParameter, DtypeSlot::kParameters);
  program_.tensor(id).scale = scale;
  return id;
}

TensorId ProgramBuilder::Data(std::string name, std::string_view dims) {
  return NewTensor(std::move(name), dims, TensorRole::kData, DtypeSlot::kIndex);
}

std::uint8_t ProgramBuilder::FactorOf(Op& op, char letter) {
  for (std::size_t i = 0; i < op.factors.size(); ++i) {
    if (op.factors[i].letter == letter) return static_cast<std::uint8_t>(i);
  }
  op.factors.push_back({letter, DimOf(letter)});
  return static_cast<std::uint8_t>(op.factors.size() - 1);
}

Operand ProgramBuilder::MakeOperand(Op& op, const Arg& arg) {
  Operand operand;
  operand.tensor = arg.tensor;
  const Tensor& tensor = program_.tensor(arg.tensor);
  operand.has_gradient = tensor.role != TensorRole::kData;
  if (tensor.dims.size() != arg.labels.size()) {
    Fail(absl::StrCat("op \"", op.name, "\" labels \"", tensor.name, "\" with \"", arg.labels,
                      "\", but it has ", tensor.dims.size(), " dimensions"));
    return operand;
  }
  for (std::size_t i = 0; i < arg.labels.size(); ++i) {
    operand.factors.push_back(FactorOf(op, arg.labels[i]));
    if (DimOf(arg.labels[i]) != tensor.dims[i]) {
      Fail(absl::StrCat("op \"", op.name, "\" labels dimension ", i, " of \"", tensor.name, "\" '",
                        std::string(1, arg.labels[i]), "', which is another dimension"));
    }
  }
  return operand;
}

TensorId ProgramBuilder::Finish(Op op, std::string_view out, TensorRole role, DtypeSlot dtype) {
  op.layer_class = ClassId(program_.classes.empty() ? 0 : program_.classes.size() - 1);
  op.output = NewTensor(op.name, out, role, dtype);
  for (const char letter : out) op.output_factors.push_back(FactorOf(op, letter));
  op.reads.resize(op.inputs.size());
  const TensorId id = op.output;
  program_.ops.push_back(std::move(op));
  return id;
}

namespace {

Op NewOp(std::string name, OpKind kind) {
  Op op;
  op.name = std::move(name);
  op.kind = kind;
  return op;
}

// Every operand's gradient reads the same things.
void ReadsForAll(Op& op, const std::vector<int>& reads) {
  op.reads.assign(op.inputs.size(), reads);
}

}  // namespace

TensorId ProgramBuilder::Product(std::string name, const Arg& a, const Arg& b, std::string_view out,
                                 TensorRole role) {
  Op op = NewOp(std::move(name), OpKind::kProduct);
  op.inputs = {MakeOperand(op, a), MakeOperand(op, b)};
  op.flops = 2;  // a multiplication and an addition
  const TensorId id = Finish(std::move(op), out, role, DtypeSlot::kCompute);
  program_.ops.back().reads = {{1}, {0}};
  return id;
}

TensorId ProgramBuilder::Lookup(std::string name, const Arg& one_hot, const Arg& table,
                                std::string_view out, TensorRole role) {
  Op op = NewOp(std::move(name), OpKind::kLookup);
  op.inputs = {MakeOperand(op, one_hot), MakeOperand(op, table)};
  const TensorId id = Finish(std::move(op), out, role, DtypeSlot::kCompute);
  program_.ops.back().reads = {{}, {0}};
  return id;
}

TensorId ProgramBuilder::Attention(std::string name, const Arg& q, const Arg& k, const Arg& v,
                                   std::string_view out) {
  Op op = NewOp(std::move(name), OpKind::kAttention);
  op.inputs = {MakeOperand(op, q), MakeOperand(op, k), MakeOperand(op, v)};
  // Two products, over half of the pairs because of the causal mask.
  op.flops = 2;
  const TensorId id = Finish(std::move(op), out, TensorRole::kActivation, DtypeSlot::kCompute);
  Op& row = program_.ops.back();
  // Values of another width than the keys: each product has its own.
  const std::uint8_t value = row.output_factors.back(), width = row.inputs[0].factors.back();
  if (value != width) {
    const double values = program_.dimension(row.factors[value].dim).size;
    const double keys = program_.dimension(row.factors[width].dim).size;
    row.flops = (values + keys) / (values * keys);
  }
  // Keys and the head's width are contracted inside the soft-max: no rank can do a part of them
  // alone.
  for (std::size_t f = 0; f < row.factors.size(); ++f) {
    const auto index = static_cast<std::uint8_t>(f);
    const auto in = [index](const std::vector<std::uint8_t>& list) {
      return std::find(list.begin(), list.end(), index) != list.end();
    };
    if (!in(row.output_factors) ||
        (in(row.inputs[0].factors) && in(row.inputs[1].factors) &&
         row.factors[f].dim == row.factors[row.output_factors.back()].dim)) {
      row.whole.push_back(index);
    }
  }
  ReadsForAll(row, {0, 1, 2, kReadsOutput});
  return id;
}

TensorId ProgramBuilder::Norm(std::string name, const Arg& x, const Arg& weight,
                              std::string_view over) {
  Op op = NewOp(std::move(name), OpKind::kNorm);
  op.inputs = {MakeOperand(op, x)};
  if (weight.tensor.valid()) op.inputs.push_back(MakeOperand(op, weight));
  for (const char letter : over) op.whole.push_back(FactorOf(op, letter));
  const TensorRole role = program_.tensor(x.tensor).role;
  const TensorId id = Finish(std::move(op), x.labels, role, DtypeSlot::kCompute);
  Op& row = program_.ops.back();
  ReadsForAll(row, row.inputs.size() > 1 ? std::vector<int>{0, 1} : std::vector<int>{0});
  return id;
}

TensorId ProgramBuilder::LayerNorm(std::string name, const Arg& x, const Arg& weight,
                                   const Arg& bias, std::string_view over) {
  Op op = NewOp(std::move(name), OpKind::kLayerNorm);
  op.inputs = {MakeOperand(op, x)};
  if (weight.tensor.valid()) op.inputs.push_back(MakeOperand(op, weight));
  if (bias.tensor.valid()) op.inputs.push_back(MakeOperand(op, bias));
  for (const char letter : over) op.whole.push_back(FactorOf(op, letter));
  const TensorRole role = program_.tensor(x.tensor).role;
  const TensorId id = Finish(std::move(op), x.labels, role, DtypeSlot::kCompute);
  Op& row = program_.ops.back();
  if (row.inputs.size() == 1) {
    row.reads = {{0}};
  } else {
    row.reads = {{0, 1}, {0}};
    if (row.inputs.size() > 2) row.reads.emplace_back();
  }
  return id;
}

TensorId ProgramBuilder::Bias(std::string name, const Arg& x, const Arg& bias) {
  Op op = NewOp(std::move(name), OpKind::kBias);
  op.inputs = {MakeOperand(op, x), MakeOperand(op, bias)};
  const Tensor from = program_.tensor(x.tensor);
  const TensorId id = Finish(std::move(op), x.labels, from.role, from.dtype);
  program_.tensor(id).scale = from.scale;
  return id;
}

TensorId ProgramBuilder::Gelu(std::string name, const Arg& x) {
  Op op = NewOp(std::move(name), OpKind::kGelu);
  op.inputs = {MakeOperand(op, x)};
  const TensorRole role = program_.tensor(x.tensor).role;
  const TensorId id = Finish(std::move(op), x.labels, role, DtypeSlot::kCompute);
  program_.ops.back().reads = {{0}};
  return id;
}

TensorId ProgramBuilder::Relu(std::string name, const Arg& x) {
  Op op = NewOp(std::move(name), OpKind::kRelu);
  op.inputs = {MakeOperand(op, x)};
  const TensorRole role = program_.tensor(x.tensor).role;
  const TensorId id = Finish(std::move(op), x.labels, role, DtypeSlot::kCompute);
  program_.ops.back().reads = {{kReadsOutput}};
  return id;
}

TensorId ProgramBuilder::Concat(std::string name, const Arg& a, const Arg& b,
                                std::string_view out) {
  Op op = NewOp(std::move(name), OpKind::kConcat);
  op.inputs = {MakeOperand(op, a), MakeOperand(op, b)};
  op.whole = {FactorOf(op, out.back()), FactorOf(op, a.labels.back()),
              FactorOf(op, b.labels.back())};
  const double wanted = program_.dimension(DimOf(out.back())).size;
  const double found = program_.dimension(DimOf(a.labels.back())).size +
                       program_.dimension(DimOf(b.labels.back())).size;
  if (wanted != found) {
    Fail(absl::StrCat("op \"", op.name, "\" puts ", found, " columns side by side into ", wanted));
  }
  return Finish(std::move(op), out, TensorRole::kActivation, DtypeSlot::kCompute);
}

TensorId ProgramBuilder::Add(std::string name, const Arg& a, const Arg& b) {
  Op op = NewOp(std::move(name), OpKind::kAdd);
  op.inputs = {MakeOperand(op, a), MakeOperand(op, b)};
  return Finish(std::move(op), a.labels, program_.tensor(a.tensor).role, DtypeSlot::kCompute);
}

TensorId ProgramBuilder::GatedSilu(std::string name, const Arg& gate, const Arg& up,
                                   TensorRole role, const Arg& weights) {
  Op op = NewOp(std::move(name), OpKind::kGatedSilu);
  op.inputs = {MakeOperand(op, gate), MakeOperand(op, up)};
  if (weights.tensor.valid()) op.inputs.push_back(MakeOperand(op, weights));
  const TensorId id = Finish(std::move(op), gate.labels, role, DtypeSlot::kCompute);
  ReadsForAll(program_.ops.back(),
              weights.tensor.valid() ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1});
  return id;
}

TensorId ProgramBuilder::Sum(std::string name, const Arg& a, std::string_view out,
                             TensorRole role) {
  Op op = NewOp(std::move(name), OpKind::kSum);
  op.inputs = {MakeOperand(op, a)};
  return Finish(std::move(op), out, role, DtypeSlot::kCompute);
}

TensorId ProgramBuilder::MaxReduce(std::string name, const Arg& a, std::string_view out) {
  Op op = NewOp(std::move(name), OpKind::kMaxReduce);
  op.inputs = {MakeOperand(op, a)};
  op.inputs[0].has_gradient = false;  // it cancels in the loss
  return Finish(std::move(op), out, TensorRole::kStatistic, DtypeSlot::kStatistics);
}

TensorId ProgramBuilder::SumExp(std::string name, const Arg& a, const Arg& max,
                                std::string_view out) {
  Op op = NewOp(std::move(name), OpKind::kSumExp);
  op.inputs = {MakeOperand(op, a), MakeOperand(op, max)};
  op.inputs[1].has_gradient = false;
  const TensorId id = Finish(std::move(op), out, TensorRole::kStatistic, DtypeSlot::kStatistics);
  program_.ops.back().reads = {{0, 1}, {}};
  return id;
}

TensorId ProgramBuilder::LogLoss(std::string name, const Arg& sum, const Arg& max,
                                 const Arg& picked) {
  Op op = NewOp(std::move(name), OpKind::kLogLoss);
  op.inputs = {MakeOperand(op, sum), MakeOperand(op, max), MakeOperand(op, picked)};
  op.inputs[1].has_gradient = false;
  const TensorId id =
      Finish(std::move(op), sum.labels, TensorRole::kStatistic, DtypeSlot::kStatistics);
  program_.ops.back().reads = {{0}, {}, {}};
  return id;
}

TensorId ProgramBuilder::TopK(std::string name, const Arg& a, std::string_view over, int k) {
  Op op = NewOp(std::move(name), OpKind::kTopK);
  op.inputs = {MakeOperand(op, a)};
  op.top_k = k;
  for (const char letter : over) op.whole.push_back(FactorOf(op, letter));
  const TensorId id =
      Finish(std::move(op), a.labels, program_.tensor(a.tensor).role, DtypeSlot::kCompute);
  program_.ops.back().reads = {{kReadsOutput}};
  return id;
}

TensorId ProgramBuilder::Dispatch(std::string name, const Arg& tokens, const Arg& routes,
                                  std::string_view out, double density) {
  Op op = NewOp(std::move(name), OpKind::kDispatch);
  op.inputs = {MakeOperand(op, tokens), MakeOperand(op, routes)};
  op.inputs[1].has_gradient = false;
  op.anchor = 0;
  const TensorId id = Finish(std::move(op), out, TensorRole::kRouted, DtypeSlot::kCompute);
  program_.ops.back().reads = {{1}, {}};
  program_.tensor(id).scale = density;
  return id;
}

TensorId ProgramBuilder::Lump(std::string name, const Arg& x, const Arg& weight,
                              std::string_view out, TensorRole role) {
  Op op = NewOp(std::move(name), OpKind::kLump);
  op.inputs = {MakeOperand(op, x), MakeOperand(op, weight)};
  const TensorId id = Finish(std::move(op), out, role, DtypeSlot::kCompute);
  ReadsForAll(program_.ops.back(), {1});
  return id;
}

void ProgramBuilder::Work(std::string name, std::string_view dims, double flops, TensorRole role,
                          double density) {
  Op op = NewOp(std::move(name), OpKind::kWork);
  op.flops = flops;
  const TensorId id = Finish(std::move(op), dims, role, DtypeSlot::kIndex);
  program_.tensor(id).scale = density;
}

TensorId ProgramBuilder::Stash(std::string name, std::string_view dims, TensorRole role,
                               DtypeSlot dtype, double scale) {
  const TensorId id = NewTensor(std::move(name), dims, role, dtype);
  program_.tensor(id).scale = scale;
  if (program_.ops.empty()) {
    Fail("a stash stands before any op");
  } else {
    program_.ops.back().stash.push_back(id);
  }
  return id;
}

void ProgramBuilder::ScaleFlops(double share) {
  if (!program_.ops.empty()) program_.ops.back().flops *= share;
}

void ProgramBuilder::Anchor(int operand) {
  if (!program_.ops.empty()) program_.ops.back().anchor = operand;
}

void ProgramBuilder::Limit(AxisRole role, std::string why, std::string hint) {
  program_.limits.push_back({role, std::move(why), std::move(hint)});
}

void ProgramBuilder::Scale(TensorId tensor, double scale) { program_.tensor(tensor).scale = scale; }

void ProgramBuilder::SetDtype(TensorId tensor, DtypeSlot dtype) {
  program_.tensor(tensor).dtype = dtype;
}

void ProgramBuilder::TakeTurns() {
  if (turns_.empty()) return;
  std::vector<ClassId> layers;
  for (std::size_t c = 0; c < program_.classes.size(); ++c) {
    if (program_.classes[c].position == StagePosition::kLayer) layers.emplace_back(c);
  }
  std::vector<int> left;
  left.reserve(layers.size());
  for (const ClassId layer : layers) left.push_back(program_.layer_class(layer).repeat);
  for (const int turn : turns_) {
    const auto t = static_cast<std::size_t>(turn);
    if (turn < 0 || t >= layers.size() || left[t]-- == 0)
      return Fail("the order of the layers is not that of their classes");
    program_.order.push_back(layers[t]);
  }
  for (const int rest : left) {
    if (rest != 0) Fail("the order of the layers leaves some out");
  }
}

absl::StatusOr<Program> ProgramBuilder::Take() {
  TakeTurns();
  if (in_class_) Fail("the last class is not closed");
  if (program_.classes.empty()) Fail("it has no layer classes");
  for (const LayerClass& layer : program_.classes) {
    if (layer.repeat < 1) Fail(absl::StrCat("class \"", layer.name, "\" has no layers"));
    if (layer.position != StagePosition::kLayer && layer.repeat != 1) {
      Fail(absl::StrCat("class \"", layer.name, "\" is repeated but not a layer"));
    }
  }
  if (!failure_.empty()) return absl::InvalidArgumentError(failure_);
  return std::move(program_);
}

}  // namespace shardlab
