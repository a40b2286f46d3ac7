#include "core/form.h"

#include <algorithm>

namespace shardlab {
namespace {

class Compiler {
 public:
  Compiler(const Edited& edited, const Precision& precision, const std::vector<OptimizerState>& states)
      : edited_(edited), program_(edited.program), precision_(precision), states_(states) {}

  Form Run() {
    form_.masks.push_back(0);
    FindBatchAtoms();
    for (const LayerClass& layer : program_.classes) {
      form_.classes.push_back({layer.position, layer.repeat, layer.segment, layer.whole_block_recompute});
    }
    form_.tokens = TokensBlock();
    form_.boundary = BoundaryBlock();
    States();
    for (const Saved& saved : edited_.derived.saved) AddSaved(saved);
    for (std::size_t i = 0; i < edited_.derived.steps.size(); ++i) AddStep(i);
    for (std::size_t i = 0; i < edited_.derived.declared.size(); ++i) AddDeclared(i);
    return std::move(form_);
  }

 private:
  void FindBatchAtoms() {
    for (const Tensor& tensor : program_.tensors) {
      for (const DimensionId dim : tensor.dims) {
        if (program_.dimension(dim).kind == DimensionKind::kBatch) {
          form_.batch_atoms = static_cast<AtomMask>(form_.batch_atoms | tensor.use.CutOf(dim));
        }
      }
    }
  }

  std::uint8_t Mask(AtomMask mask) {
    const auto it = std::find(form_.masks.begin(), form_.masks.end(), mask);
    if (it != form_.masks.end()) return static_cast<std::uint8_t>(it - form_.masks.begin());
    form_.masks.push_back(mask);
    return static_cast<std::uint8_t>(form_.masks.size() - 1);
  }

  std::uint8_t Local(DimensionId dim, AtomMask cut) {
    const Dimension& row = program_.dimension(dim);
    const LocalSize wanted{row.size, row.kind == DimensionKind::kBatch, Mask(cut)};
    for (std::size_t i = 0; i < form_.locals.size(); ++i) {
      const LocalSize& known = form_.locals[i];
      if (known.size == wanted.size && known.batch == wanted.batch && known.mask == wanted.mask) {
        return static_cast<std::uint8_t>(i);
      }
    }
    form_.locals.push_back(wanted);
    return static_cast<std::uint8_t>(form_.locals.size() - 1);
  }

  std::uint16_t AddBlock(const Block& block) {
    for (std::size_t i = 0; i < form_.blocks.size(); ++i) {
      const Block& known = form_.blocks[i];
      if (known.coefficient == block.coefficient && known.count == block.count && known.local == block.local &&
          known.flat == block.flat) {
        return static_cast<std::uint16_t>(i);
      }
    }
    form_.blocks.push_back(block);
    return static_cast<std::uint16_t>(form_.blocks.size() - 1);
  }

  // A tensor in a placement; per_element in bytes.
  std::uint16_t TensorBlock(const Tensor& tensor, const Placement& at, double per_element) {
    Block block;
    block.coefficient = tensor.scale * per_element;
    for (const DimensionId dim : tensor.dims) block.local[block.count++] = Local(dim, at.CutOf(dim));
    block.flat = Mask(at.Flat());
    return AddBlock(block);
  }

  double Width(DtypeSlot slot) const { return BytesOf(precision_, slot); }

  std::uint16_t TokensBlock() {
    Block block;
    block.coefficient = 1;
    const DimensionId batch = program_.FindKind(DimensionKind::kBatch), sequence = program_.FindKind(DimensionKind::kSequence);
    // Tokens as the most finely cut non-tensor activation sees them: the batch and the context's share.
    AtomMask context = 0;
    for (const Axis& axis : edited_.mesh.axes()) {
      if (axis.role == AxisRole::kContext) context = static_cast<AtomMask>(context | axis.atoms);
    }
    if (batch.valid()) block.local[block.count++] = Local(batch, form_.batch_atoms);
    if (sequence.valid()) block.local[block.count++] = Local(sequence, context);
    return AddBlock(block);
  }

  std::uint16_t BoundaryBlock() {
    for (const LayerClass& layer : program_.classes) {
      if (layer.position != StagePosition::kLayer || !layer.output.valid()) continue;
      const Tensor& stream = program_.tensor(layer.output);
      return TensorBlock(stream, stream.use, Width(stream.dtype));
    }
    return AddBlock({});
  }

  void States() {
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& w = program_.tensors[i];
      if (w.role != TensorRole::kParameter) continue;
      const auto layer = static_cast<std::uint8_t>(w.layer_class.value());
      const TensorId id(i);
      form_.state.push_back(
          {layer, Account::kParameters, TensorBlock(w, w.home, Width(DtypeSlot::kParameters)), id, -1});
      form_.state.push_back(
          {layer, Account::kGradients, TensorBlock(w, w.gradient, Width(DtypeSlot::kGradients)), id, -1});
      for (std::size_t s = 0; s < states_.size(); ++s) {
        const double width = BytesPerElement(states_[s].dtype) * states_[s].per_parameter;
        form_.state.push_back(
            {layer, Account::kOptimizer, TensorBlock(w, w.state, width), id, static_cast<std::int16_t>(s)});
      }
      if (w.home.Flat() != 0) {
        form_.state.push_back(
            {layer, Account::kGathered, TensorBlock(w, w.use, Width(DtypeSlot::kCompute)), id, -1});
      }
    }
  }

  void AddSaved(const Saved& saved) {
    const Tensor& tensor = program_.tensor(saved.tensor);
    const LayerClass& reader = program_.layer_class(program_.op(saved.reader).layer_class);
    SavedRow row;
    row.layer_class = static_cast<std::uint8_t>(program_.op(saved.reader).layer_class.value());
    row.residency = saved.residency;
    row.of_inner_layers = saved.residency == Residency::kReplayed && saved.tensor == reader.input;
    row.block = TensorBlock(tensor, saved.at, Width(tensor.dtype));
    row.tensor = saved.tensor;
    form_.saved.push_back(row);
  }

  // --- ops ------------------------------------------------------------------------------------------------

  static Bucket BucketOf(Phase phase) {
    switch (phase) {
      case Phase::kForward: return Bucket::kForward;
      case Phase::kReplay: return Bucket::kReplay;
      case Phase::kWeightGradient: return Bucket::kWeightGradient;
      default: return Bucket::kInputGradient;
    }
  }

  static bool Has(const std::vector<std::uint8_t>& factors, std::size_t f) {
    return std::find(factors.begin(), factors.end(), static_cast<std::uint8_t>(f)) != factors.end();
  }

  std::uint8_t FactorLocal(const Op& op, std::size_t f) {
    AtomMask cut = 0;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if (op.work[a] == static_cast<int>(f)) cut = static_cast<AtomMask>(cut | (1u << a));
    }
    return Local(op.factors[f].dim, cut);
  }

  void AddBytes(OpRow& row, TensorId id, const Placement& at) {
    const Tensor& tensor = program_.tensor(id);
    if (tensor.role == TensorRole::kData || row.bytes == row.block.size()) return;
    const double width = tensor.role == TensorRole::kParameter ? Width(DtypeSlot::kCompute) : Width(tensor.dtype);
    row.block[row.bytes++] = TensorBlock(tensor, at, width);
  }

  // m, n, k of the product that this pass computes: `missing` is the operand (or the output, -1) that the pass
  // writes. Factors of the result and the first source are m, of the result and the second n, the rest k.
  void Shape(OpRow& row, const Op& op, int result) {
    const auto& out = result < 0 ? op.output_factors : op.inputs[static_cast<std::size_t>(result)].factors;
    const auto& first = result == 0 || op.inputs.empty() ? op.output_factors : op.inputs[0].factors;
    std::vector<std::uint8_t> m, n, k;
    for (std::size_t f = 0; f < op.factors.size(); ++f) {
      const std::uint8_t local = FactorLocal(op, f);
      (!Has(out, f) ? k : Has(first, f) ? m : n).push_back(local);
    }
    std::size_t at = 0;
    for (const auto* part : {&m, &n, &k}) {
      for (const std::uint8_t local : *part) {
        if (at < row.local.size()) row.local[at++] = local;
      }
    }
    row.m = static_cast<std::uint8_t>(m.size());
    row.n = static_cast<std::uint8_t>(n.size());
    row.k = static_cast<std::uint8_t>(k.size());
  }

  OpRow NewOp(const Op& op, OpId id, Phase phase) const {
    OpRow row;
    row.layer_class = static_cast<std::uint8_t>(op.layer_class.value());
    row.bucket = BucketOf(phase);
    row.phase = phase;
    row.kind = op.kind;
    row.flops = op.flops * (op.kind == OpKind::kProduct ? Density(op) : 1);
    row.op = id;
    return row;
  }

  // Routed tensors are dense in their labels but hold only top-k of the experts' tokens.
  double Density(const Op& op) const {
    double density = 1;
    const auto look = [&](TensorId id) {
      const Tensor& t = program_.tensor(id);
      if (t.role == TensorRole::kRouted) density = std::min(density, t.scale);
    };
    for (const Operand& operand : op.inputs) look(operand.tensor);
    look(op.output);
    return density;
  }

  void AddForward(const Step& step) {
    const Op& op = program_.op(step.op);
    if (op.kind == OpKind::kLump) return;
    OpRow row = NewOp(op, step.op, step.phase);
    Shape(row, op, -1);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) AddBytes(row, op.inputs[i].tensor, op.need[i]);
    AddBytes(row, op.output, Dual(op.made));
    form_.ops.push_back(row);
    if (op.kind == OpKind::kWork && step.phase == Phase::kForward) {
      // Twice the forward pass: gradients of inputs and of weights.
      for (const Phase phase : {Phase::kInputGradient, Phase::kWeightGradient}) {
        row.bucket = BucketOf(phase);
        row.phase = phase;
        form_.ops.push_back(row);
      }
    }
  }

  void AddGradient(const Step& step) {
    const Op& op = program_.op(step.op);
    if (op.kind == OpKind::kLump) return;
    const bool product = op.kind == OpKind::kProduct;
    for (std::size_t j = 0; j < op.inputs.size(); ++j) {
      if (!(step.operands >> j & 1)) continue;
      OpRow row = NewOp(op, step.op, step.phase);
      Shape(row, op, product ? static_cast<int>(j) : -1);
      // Five products for the two of the forward pass (Dao 2023, arXiv 2307.08691, section 3.1), all in one kernel.
      if (op.kind == OpKind::kAttention) row.flops *= 2.5;
      AddBytes(row, op.output, Dual(op.made));
      for (const int read : op.reads[j]) {
        if (read == kReadsOutput) {
          AddBytes(row, op.output, Dual(op.made));
        } else {
          AddBytes(row, op.inputs[static_cast<std::size_t>(read)].tensor, op.need[static_cast<std::size_t>(read)]);
        }
      }
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (i == j || (!product && (step.operands >> i & 1))) AddBytes(row, op.inputs[i].tensor, op.need[i]);
      }
      form_.ops.push_back(row);
      if (!product) return;  // one kernel gives all gradients
    }
  }

  // --- transfers ------------------------------------------------------------------------------------------

  // The placement whose bytes are the payload: the gathered result, or what enters the others.
  const Placement& Payload(const Step& step) const {
    return step.collective == Collective::kAllGather ? step.target.at : step.source.at;
  }

  void AddMove(std::size_t index) {
    const Step& step = edited_.derived.steps[index];
    if (step.collective == Collective::kSlice) return;
    const Tensor& tensor = program_.tensor(step.source.tensor);
    if (tensor.role == TensorRole::kData) return;
    TransferRow row;
    row.layer_class = static_cast<std::uint8_t>(step.layer_class.value());
    row.phase = step.phase;
    row.when = step.when;
    row.collective = step.collective;
    row.hide = step.hide;
    row.share = step.share;
    row.role = edited_.mesh.RoleOf(step.group);
    row.mask = Mask(step.group);
    row.block = TensorBlock(tensor, Payload(step), Width(step.dtype));
    row.step = static_cast<std::int32_t>(index);
    form_.transfers.push_back(row);
  }

  void AddStep(std::size_t index) {
    const Step& step = edited_.derived.steps[index];
    switch (step.kind) {
      case StepKind::kMove: AddMove(index); break;
      case StepKind::kCompute: AddForward(step); break;
      case StepKind::kGradient: AddGradient(step); break;
      case StepKind::kUpdate: break;  // priced from the state it touches
    }
  }

  void AddDeclared(std::size_t index) {
    const Declared& declared = edited_.derived.declared[index];
    TransferRow row;
    row.per_layer = declared.layer_class.valid();
    row.layer_class = static_cast<std::uint8_t>(row.per_layer ? declared.layer_class.value() : 0);
    row.phase = declared.phase;
    row.when = declared.when;
    row.collective = declared.collective;
    row.hide = declared.hide;
    row.role = declared.role;
    row.mask = Mask(declared.group);
    Block block;
    block.coefficient = declared.bytes;
    for (const DimensionId dim : declared.dims) block.local[block.count++] = Local(dim, 0);
    row.block = AddBlock(block);
    row.declared = static_cast<std::int32_t>(index);
    form_.transfers.push_back(row);
  }

  const Edited& edited_;
  const Program& program_;
  const Precision& precision_;
  const std::vector<OptimizerState>& states_;
  Form form_;
};

}  // namespace

const char* Name(Account account) {
  switch (account) {
    case Account::kParameters: return "parameters";
    case Account::kGradients: return "gradients";
    case Account::kOptimizer: return "optimizer";
    case Account::kActivations: return "activations";
    case Account::kGathered: return "gathered";
    case Account::kTransient: return "transient";
    case Account::kFragmentation: return "fragmentation";
    case Account::kOutsideAllocator: return "outside_allocator";
  }
  return "parameters";
}

Form CompileForm(const Edited& edited, const Precision& precision, const std::vector<OptimizerState>& states) {
  return Compiler(edited, precision, states).Run();
}

}  // namespace shardlab
