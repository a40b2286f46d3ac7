#include "core/form_ops.h"

#include <algorithm>

namespace shardlab {

FormOps::FormOps(const FormInput& input, Form* form)
    : FormTables(input, form),
      cast_bytes_(input.rules.coarse_program ? 0 : CastBytes(input.precision)) {}

// Of each element that products in a narrower dtype multiply: read once, written twice.
double FormOps::CastBytes(const Precision& precision) {
  const double wide = BytesOf(precision, DtypeSlot::kCompute),
               narrow = BytesPerElement(precision.compute);
  return narrow < wide ? wide + 2 * narrow : 0;
}

std::uint8_t FormOps::FactorLocal(const Op& op, std::size_t f) {
  AtomMask cut = 0;
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    if (op.work[a] == static_cast<int>(f)) cut = static_cast<AtomMask>(cut | (1u << a));
  }
  return Local(op.factors[f].dim, cut);
}

void FormOps::AddBytes(OpPrice& price, TensorId id, const Placement& at) {
  const Tensor& tensor = program_.tensor(id);
  if (tensor.role == TensorRole::kData || price.bytes == price.block.size()) return;
  const double width =
      tensor.role == TensorRole::kParameter ? Width(DtypeSlot::kCompute) : Width(tensor.dtype);
  price.block[price.bytes++] = TensorBlock(tensor, at, width);
}

// Attention whose scores lie in memory. Forward: scores written and read, and all that is kept of
// them written and read by the op behind it. Backward: the same read by two, and the gradients of
// what is dropped, kept and scored written and read, the last by two products.
void FormOps::AddScores(OpPrice& price, const Op& op) {
  if (op.kind != OpKind::kAttention) return;
  const Tensor* scores = nullptr;
  double kept = 0;
  for (const TensorId id : op.stash) {
    const Tensor& stash = program_.tensor(id);
    if (stash.dtype == DtypeSlot::kStatistics) continue;
    scores = &stash;
    kept += Width(stash.dtype);
  }
  if (scores == nullptr) return;
  price.scores_in_memory = true;
  const double scored = Width(DtypeSlot::kCompute) *
                        (price.phase == Phase::kForward || price.phase == Phase::kReplay ? 2 : 5);
  if (price.bytes == price.block.size()) --price.bytes;  // small beside the scores
  price.block[price.bytes++] = TensorBlock(*scores, scores->use, 2 * kept + scored);
}

// m, n, k of the product that this pass computes; `result` is the operand that it writes a
// gradient of, or -1 for the output. Factors of the result and the first source are m, of the
// result and the second n, the rest k.
void FormOps::Shape(OpPrice& price, const Op& op, int result) {
  const auto& out =
      result < 0 ? op.output_factors : op.inputs[static_cast<std::size_t>(result)].factors;
  const auto& first = result == 0 || op.inputs.empty() ? op.output_factors : op.inputs[0].factors;
  std::vector<std::uint8_t> m, n, k;
  for (std::size_t f = 0; f < op.factors.size(); ++f) {
    (!Has(out, f) ? k : Has(first, f) ? m : n).push_back(FactorLocal(op, f));
  }
  price.m = AddBlock({1, Product(std::move(m)), 0});
  price.n = AddBlock({1, Product(std::move(n)), 0});
  price.k = AddBlock({1, Product(std::move(k)), 0});
}

OpPrice FormOps::NewPrice(const Op& op, Phase phase) const {
  OpPrice price;
  price.phase = phase;
  price.kind = op.kind;
  const bool dense = op.kind != OpKind::kProduct && op.kind != OpKind::kWork;
  price.flops = op.flops * (dense ? 1 : Density(op));
  return price;
}

// Products in a narrower dtype than tensors are kept in (fp8) need their operands cast, and
// transposed for the other gradient: read once, written twice, with the largest magnitude found
// on the way (Transformer Engine, cast_transpose). What a norm makes leaves it cast, as many
// bytes as it would else write. Products of layers with a weight alone: attention, routing's
// combination, the head and its loss stay as they are.
bool FormOps::Narrows(const Op& op) const {
  if (cast_bytes_ == 0 || op.kind != OpKind::kProduct || op.inputs.size() < 2) return false;
  const Tensor& w = program_.tensor(op.inputs[1].tensor);
  const bool layer = program_.layer_class(op.layer_class).position == StagePosition::kLayer;
  const std::vector<std::uint8_t>& of_weight = op.inputs[1].factors;
  const bool contracts = std::any_of(of_weight.begin(), of_weight.end(),
                                     [&](std::uint8_t f) { return !Has(op.output_factors, f); });
  return layer && contracts && w.role == TensorRole::kParameter && IsMatrix(w);
}

bool FormOps::MadeByNorm(TensorId id) const {
  return std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) {
    return op.output == id && (op.kind == OpKind::kNorm || op.kind == OpKind::kLayerNorm);
  });
}

void FormOps::AddCast(const Op& op, OpId id, Phase phase, TensorId tensor, const Placement& at) {
  OpPrice price;
  price.phase = phase;
  price.bytes = 1;
  price.block[0] = TensorBlock(program_.tensor(tensor), at, cast_bytes_);
  // Only its bytes count: the library's own kernel moves them once.
  price.kind = OpKind::kProduct;
  price.m = price.n = price.k = AddBlock({1, 0, 0});
  AddOp(op, id, price, true);
}

// A weight that has no copies for the step is cast for each pass, an input once for all products
// of the pass that multiply it.
void FormOps::CastOperands(const Op& op, OpId id, Phase phase) {
  if (!Narrows(op)) return;
  if (precision_.weight_copies == 0) AddCast(op, id, phase, op.inputs[1].tensor, op.need[1]);
  if (MadeByNorm(op.inputs[0].tensor)) return;
  const Version version{op.inputs[0].tensor, false, op.need[0]};
  if (cast_.insert({version, phase}).second) AddCast(op, id, phase, version.tensor, version.at);
}

void FormOps::AddOp(const Op& op, OpId id, const OpPrice& price, bool cast) {
  const auto known = std::find(form_.op_prices.begin(), form_.op_prices.end(), price);
  OpRow row;
  row.layer_class = static_cast<std::uint8_t>(op.layer_class.value());
  row.bucket = BucketOf(price.phase);
  row.op = id;
  row.price = static_cast<std::uint16_t>(known - form_.op_prices.begin());
  row.cast = cast;
  if (known == form_.op_prices.end()) form_.op_prices.push_back(price);
  form_.ops.push_back(row);
}

// Routed tensors are dense in their labels but hold only top-k of the experts' tokens.
double FormOps::Density(const Op& op) const {
  double density = 1;
  const auto look = [&](TensorId id) {
    const Tensor& t = program_.tensor(id);
    if (t.role == TensorRole::kRouted) density = std::min(density, t.scale);
  };
  for (const Operand& operand : op.inputs) look(operand.tensor);
  look(op.output);
  return density;
}

void FormOps::AddForward(const Step& step) {
  const Op& op = program_.op(step.op);
  if (op.kind == OpKind::kLump || op.kind == OpKind::kBias) return;
  CastOperands(op, step.op, step.phase);
  OpPrice price = NewPrice(op, step.phase);
  Shape(price, op, -1);
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    AddBytes(price, op.inputs[i].tensor, op.need[i]);
  AddBytes(price, op.output, Dual(op.made));
  AddScores(price, op);
  AddOp(op, step.op, price);
  if (op.kind != OpKind::kWork || step.phase != Phase::kForward) return;
  // Twice the forward pass: gradients of inputs and of weights.
  for (const Phase phase : {Phase::kInputGradient, Phase::kWeightGradient}) {
    price.phase = phase;
    AddOp(op, step.op, price);
  }
}

void FormOps::AddGradient(const Step& step) {
  const Op& op = program_.op(step.op);
  if (op.kind == OpKind::kLump) return;
  // A bias is added by the product before it; the gradient of what it is added to is its own.
  if (op.kind == OpKind::kBias && step.phase == Phase::kInputGradient) return;
  const bool product = op.kind == OpKind::kProduct;
  if ((step.operands & 1) != 0 && Narrows(op))
    AddCast(op, step.op, step.phase, op.output, Dual(op.made));
  for (std::size_t j = 0; j < op.inputs.size(); ++j) {
    if (!(step.operands >> j & 1)) continue;
    OpPrice price = NewPrice(op, step.phase);
    Shape(price, op, product ? static_cast<int>(j) : -1);
    // Five products for the two of the forward pass (Dao 2023, arXiv 2307.08691, section 3.1),
    // all in one kernel.
    if (op.kind == OpKind::kAttention) price.flops *= 2.5;
    AddBytes(price, op.output, Dual(op.made));
    for (const int read : op.reads[j]) {
      if (read == kReadsOutput) {
        AddBytes(price, op.output, Dual(op.made));
      } else {
        AddBytes(price, op.inputs[static_cast<std::size_t>(read)].tensor,
                 op.need[static_cast<std::size_t>(read)]);
      }
    }
    // What it writes.
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (i == j || (!product && (step.operands >> i & 1)))
        AddBytes(price, op.inputs[i].tensor, op.need[i]);
    }
    AddScores(price, op);
    AddOp(op, step.op, price);
    if (!product) return;  // one kernel gives all gradients
  }
}

// Of a product's operand: what is contracted are the rows, what the output has too the columns;
// a factor of everything counts matrices (experts).
void FormOps::Updates() {
  for (const auto& [id, layer] : Parameters()) {
    const Tensor& w = program_.tensor(id);
    CastWeight(w, id, layer);
    // Asked once of a square: an optimizer of whole matrices has work there.
    if (w.state_on_host || !rules_.count_optimizer_time ||
        input_.optimizer.FlopsOfMatrix(KindOf(program_, w), 64, 64) == 0)
      continue;
    for (const Op& op : program_.ops) {
      if (op.kind != OpKind::kProduct || op.inputs[1].tensor != id) continue;
      std::vector<std::uint8_t> rows, columns, matrices;
      for (std::size_t d = 0; d < w.dims.size(); ++d) {
        const std::uint8_t factor = op.inputs[1].factors[d];
        const std::uint8_t size = Local(w.dims[d], w.use.CutOf(w.dims[d]));
        (!Has(op.output_factors, factor)     ? rows
         : Has(op.inputs[0].factors, factor) ? matrices
                                             : columns)
            .push_back(size);
      }
      if (rows.empty() || columns.empty()) break;
      form_.updates.push_back({static_cast<std::uint8_t>(layer),
                               AddBlock({1, Product(std::move(rows)), 0}),
                               AddBlock({1, Product(std::move(columns)), 0}),
                               AddBlock({1, Product(std::move(matrices)), Mask(w.state.Flat())}),
                               KindOf(program_, w), id});
      MoveMatrix(w, id, layer);
      break;
    }
  }
}

// Ranks that share the state of a layer's matrices share out the matrices: each sends its piece
// of every one to the rank that works on it, in the dtype of the products, and gets its piece of
// the result back. Over all layers that is an all-to-all of what a rank has, twice.
void FormOps::MoveMatrix(const Tensor& w, TensorId id, std::size_t layer) {
  if (w.state.Flat() == 0) return;
  const std::uint16_t block = TensorBlock(w, w.state, Width(DtypeSlot::kCompute));
  const std::uint8_t mask = Mask(w.state.Flat());
  for (const Phase phase : {Phase::kUpdate, Phase::kRestore}) {
    const auto together =
        std::find_if(form_.transfers.begin(), form_.transfers.end(), [&](const TransferRow& row) {
          return row.update_of.valid() && row.layer_class == layer && row.phase == phase &&
                 form_.transfer_prices[row.price].mask == mask;
        });
    if (together != form_.transfers.end()) {
      TransferPrice price = form_.transfer_prices[together->price];
      price.payload.push_back(block);
      together->price = PriceOf(std::move(price));
      ++together->tensors;
      continue;
    }
    TransferRow row;
    row.layer_class = static_cast<std::uint8_t>(layer);
    row.phase = phase;
    row.when = When::kStep;
    row.role = edited_.mesh.RoleOf(w.state.Flat());
    row.update_of = id;
    row.price = PriceOf({Collective::kAllToAll, mask, {block}});
    form_.transfers.push_back(row);
  }
}

void FormOps::CastWeight(const Tensor& w, TensorId id, std::size_t layer) {
  const bool layers = program_.layer_class(w.layer_class).position == StagePosition::kLayer;
  if (precision_.weight_copies == 0 || cast_bytes_ == 0 || !layers || !IsMatrix(w) ||
      w.home.Flat() != 0 || !rules_.count_optimizer_time)
    return;
  const std::uint16_t bytes = TensorBlock(w, w.use, cast_bytes_);
  form_.updates.push_back(
      {static_cast<std::uint8_t>(layer), bytes, bytes, bytes, KindOf(program_, w), id, true});
}

}  // namespace shardlab
