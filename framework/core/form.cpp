#include "core/form.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/saved_width.h"
#include "core/waiting.h"

namespace shardlab {
namespace {

class Compiler {
 public:
  Compiler(const Edited& edited, const Precision& precision, const OptimizerStates& states,
           const AccountingRules& rules, const Optimizer& optimizer)
      : spare_gradients_(HoldsSpares(rules)),
        edited_(edited),
        program_(edited.program),
        precision_(precision),
        states_(states),
        rules_(rules),
        optimizer_(optimizer),
        cast_bytes_(rules.coarse_program ? 0 : CastBytes(precision)) {}

  Form Run() {
    form_.masks.push_back(0);
    form_.products.push_back({});
    form_.state_width = StateWidth();
    form_.update_width = Width(DtypeSlot::kGradients) + Width(DtypeSlot::kParameters);
    FindBatchAtoms();
    for (const LayerClass& layer : program_.classes) {
      form_.classes.push_back(
          {layer.position, layer.repeat, layer.segment, layer.whole_block_recompute});
    }
    for (const auto& [id, layer] : Parameters()) {
      const Tensor& w = program_.tensor(id);
      if (!Fetched(w)) continue;
      form_.classes[layer].unit = Unit(w);
      form_.classes[layer].ahead = w.ahead;
    }
    form_.tokens = TokensBlock();
    form_.boundary = BoundaryBlock();
    States();
    for (const Saved& saved : edited_.derived.saved) AddSaved(saved);
    for (std::size_t i = 0; i < edited_.derived.steps.size(); ++i) AddStep(i);
    for (TransferRow& row : form_.transfers) PutUnderOp(row);
    Buffers();
    Updates();
    for (std::size_t i = 0; i < edited_.derived.declared.size(); ++i) AddDeclared(i);
    SumUp();
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
    const auto known = std::find(form_.blocks.begin(), form_.blocks.end(), block);
    const auto index = static_cast<std::uint16_t>(known - form_.blocks.begin());
    if (known == form_.blocks.end()) form_.blocks.push_back(block);
    return index;
  }

  std::uint16_t Product(std::vector<std::uint8_t> locals) {
    std::sort(locals.begin(), locals.end());
    std::uint16_t at = 0;
    for (const std::uint8_t local : locals) {
      const ProductNode node{at, local};
      const auto known = std::find(form_.products.begin() + 1, form_.products.end(), node);
      at = static_cast<std::uint16_t>(known - form_.products.begin());
      if (known == form_.products.end()) form_.products.push_back(node);
    }
    return at;
  }

  // A tensor in a placement; per_element in bytes.
  std::uint16_t TensorBlock(const Tensor& tensor, const Placement& at, double per_element) {
    std::vector<std::uint8_t> locals;
    for (const DimensionId dim : tensor.dims) locals.push_back(Local(dim, at.CutOf(dim)));
    return AddBlock({tensor.scale * per_element, Product(std::move(locals)), Mask(at.Flat())});
  }

  // With the classes that hold them: a copy at the other end has a class of its own.
  std::vector<std::pair<TensorId, std::size_t>> Parameters() const {
    std::vector<std::pair<TensorId, std::size_t>> all;
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const Tensor& w = program_.tensors[i];
      if (w.role == TensorRole::kParameter) all.emplace_back(i, w.layer_class.index());
    }
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      if (IsCopy(program_.classes[c])) all.emplace_back(program_.classes[c].both_ends, c);
    }
    return all;
  }
  static bool IsCopy(const LayerClass& row) {
    return row.both_ends.valid() && row.position == StagePosition::kLast;
  }

  // Weights that are not where they are used.
  static bool Fetched(const Tensor& w) { return w.home.Flat() != 0 || w.home_on_host; }

  int Unit(const Tensor& w) const {
    return std::min(w.unit, program_.layer_class(w.layer_class).repeat);
  }

  double Width(DtypeSlot slot) const { return BytesOf(precision_, slot); }

  double StateBytes(std::int16_t state) const {
    const OptimizerState& s = states_.table[static_cast<std::size_t>(state)];
    return BytesPerElement(s.dtype) * s.per_parameter;
  }

  // Of one parameter, where all have the same.
  double StateWidth() const {
    double width = -1;
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      if (program_.tensors[i].role != TensorRole::kParameter) continue;
      double own = 0;
      for (const std::int16_t s : states_.of_tensor[i]) own += StateBytes(s);
      if (width >= 0 && own != width) return 0;
      width = own;
    }
    return std::max(width, 0.0);
  }

  // Tokens of a micro-batch on a rank: the batch, and the context's share of the sequence.
  std::uint16_t TokensBlock() {
    AtomMask context = 0;
    for (const Axis& axis : edited_.mesh.axes()) {
      if (axis.role == AxisRole::kContext) context = static_cast<AtomMask>(context | axis.atoms);
    }
    std::vector<std::uint8_t> locals;
    const DimensionId batch = program_.FindKind(DimensionKind::kBatch),
                      sequence = program_.FindKind(DimensionKind::kSequence);
    if (batch.valid()) locals.push_back(Local(batch, form_.batch_atoms));
    if (sequence.valid()) locals.push_back(Local(sequence, context));
    return AddBlock({1, Product(std::move(locals)), 0});
  }

  std::uint16_t BoundaryBlock() {
    for (const LayerClass& layer : program_.classes) {
      if (layer.position != StagePosition::kLayer || !layer.output.valid()) continue;
      const Tensor& stream = program_.tensor(layer.output);
      return TensorBlock(stream, stream.use, Width(stream.dtype));
    }
    return AddBlock(Block());
  }

  void States() {
    for (const auto& parameter : Parameters()) {
      const TensorId id = parameter.first;  // no binding: clang 14 captures none
      const Tensor& w = program_.tensor(id);
      const auto layer = static_cast<std::uint8_t>(parameter.second);
      const auto lies = [&](Account account, const Placement& at, double width, bool host,
                            std::int16_t state = -1) {
        form_.state.push_back(
            {layer, account, TensorBlock(w, at, width), id, state, 0, false, host});
        form_.on_host |= host;
      };
      const double weight = Width(DtypeSlot::kParameters), slope = Width(DtypeSlot::kGradients);
      lies(Account::kParameters, w.home, weight, w.home_on_host);
      lies(Account::kGradients, w.gradient, slope, w.gradient_on_host);
      for (const std::int16_t s : states_.of_tensor[id.index()])
        lies(Account::kOptimizer, w.state, StateBytes(s), w.state_on_host, s);
      // An optimizer on the host works on copies in pinned memory.
      if (w.state_on_host && !w.home_on_host) lies(Account::kParameters, w.state, weight, true);
      if (w.state_on_host && !w.gradient_on_host) lies(Account::kGradients, w.state, slope, true);
      if (Fetched(w)) {
        form_.state.push_back(
            {layer, Account::kGathered, TensorBlock(w, w.use, Width(DtypeSlot::kCompute)), id, -1,
             w.home_on_host ? std::uint8_t{0} : Mask(w.home.Flat()), w.keep_after_forward});
      }
      if (w.reduce_each_micro_batch && w.gradient.Flat() != 0) Unsharded(w, layer, id);
      if (spare_gradients_) Spare(w, layer, id);
      const bool narrow =
          BytesPerElement(precision_.compute) < BytesPerElement(precision_.parameters);
      const bool block = program_.layer_class(w.layer_class).position == StagePosition::kLayer;
      if (precision_.weight_copies > 0 && narrow && block && IsMatrix(w) && w.home.Flat() == 0) {
        form_.state.push_back({layer, Account::kParameters,
                               TensorBlock(w, w.use, precision_.weight_copies), id, -1, 0, false,
                               false, false, true});
      }
    }
  }

  // Products that add their weight gradient to the accumulated one themselves still hand back a
  // gradient, of which one is kept for each shape of weight (Transformer Engine 2.3,
  // get_dummy_wgrad). Grouped products, of tokens
  // that were routed, do not.
  void Spare(const Tensor& w, std::uint8_t layer, TensorId id) {
    if (!IsMatrix(w) || IsOfRouted(id)) return;
    form_.state.push_back({layer, Account::kTransient,
                           TensorBlock(w, w.use, Width(DtypeSlot::kCompute)), id, -1, 0, false,
                           false, false, false, true});
    form_.spares = true;
  }

  // Some product of this weight has a routed operand: one of many that are done as one group.
  bool IsOfRouted(TensorId id) const {
    const auto has = [](const Op& op, auto&& is) {
      return std::any_of(op.inputs.begin(), op.inputs.end(),
                         [&](const Operand& operand) { return is(operand.tensor); });
    };
    return std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) {
      return has(op, [&](TensorId t) { return t == id; }) &&
             has(op, [&](TensorId t) { return program_.tensor(t).role == TensorRole::kRouted; });
    });
  }

  // A weight of products, and not of a lookup.
  bool IsMatrix(const Tensor& w) const {
    return w.dims.size() >= 2 && w.scale == 1 &&
           program_.layer_class(w.layer_class).position != StagePosition::kFirst;
  }

  // Of each element that products in a narrower dtype multiply: read once, written twice.
  static double CastBytes(const Precision& precision) {
    const double wide = BytesOf(precision, DtypeSlot::kCompute),
                 narrow = BytesPerElement(precision.compute);
    return narrow < wide ? wide + 2 * narrow : 0;
  }

  static bool HoldsSpares(const AccountingRules& rules) {
    const auto it = rules.facts.find("gradient.dummy_buffers");
    return it != rules.facts.end() && it->second;
  }

  // A weight's gradient is whole, in the dtype of the weight that was used, before it is copied
  // into what is reduced and scattered; both live at once (PyTorch FSDP2, foreach_reduce of
  // _fsdp_collectives.py).
  void Unsharded(const Tensor& w, std::uint8_t layer, TensorId id) {
    for (const bool bucket : {false, true}) {
      if (bucket && w.bucket > 0) continue;  // of a size of its own
      const DtypeSlot dtype = bucket ? DtypeSlot::kGradientReduce : DtypeSlot::kCompute;
      form_.state.push_back({layer, Account::kTransient, TensorBlock(w, w.use, Width(dtype)), id,
                             -1, Mask(w.gradient.Flat()), false, false, bucket});
    }
  }

  // The ranks that make this another copy than one that is saved before it: a tensor that moved
  // between ranks and is read on both sides of the move.
  AtomMask ApartFrom(const Saved& saved) const {
    for (const Saved& other : edited_.derived.saved) {
      if (&other == &saved) break;
      if (other.tensor != saved.tensor || other.residency != saved.residency) continue;
      AtomMask apart = 0;
      for (std::size_t a = 0; a < kMaxAtoms; ++a) {
        if (other.at.at(a) != saved.at.at(a)) apart = static_cast<AtomMask>(apart | (1u << a));
      }
      return apart;
    }
    return 0;
  }

  void AddSaved(const Saved& saved) {
    const Tensor& tensor = program_.tensor(saved.tensor);
    const LayerClass& reader = program_.layer_class(program_.op(saved.reader).layer_class);
    SavedRow row;
    row.layer_class = static_cast<std::uint8_t>(program_.op(saved.reader).layer_class.value());
    row.residency = saved.residency;
    row.of_inner_layers = saved.residency == Residency::kReplayed && saved.tensor == reader.input;
    row.block =
        TensorBlock(tensor, saved.at, SavedWidthOf(program_, precision_, rules_, saved).bytes);
    row.tensor = saved.tensor;
    row.when = Mask(ApartFrom(saved));
    form_.saved.push_back(row);
  }

  // --- ops
  // ------------------------------------------------------------------------------------------------

  static Bucket BucketOf(Phase phase) {
    switch (phase) {
      case Phase::kForward:
        return Bucket::kForward;
      case Phase::kReplay:
        return Bucket::kReplay;
      case Phase::kWeightGradient:
        return Bucket::kWeightGradient;
      default:
        return Bucket::kInputGradient;
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

  void AddBytes(OpPrice& price, TensorId id, const Placement& at) {
    const Tensor& tensor = program_.tensor(id);
    if (tensor.role == TensorRole::kData || price.bytes == price.block.size()) return;
    const double width =
        tensor.role == TensorRole::kParameter ? Width(DtypeSlot::kCompute) : Width(tensor.dtype);
    price.block[price.bytes++] = TensorBlock(tensor, at, width);
  }

  // Attention whose scores lie in memory. Forward: scores written and read, and all that is kept of
  // them written and read by the op behind it. Backward: the same read by two, and the gradients of
  // what is dropped, kept and scored written and read, the last by two products.
  void AddScores(OpPrice& price, const Op& op) {
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
  void Shape(OpPrice& price, const Op& op, int result) {
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

  OpPrice NewPrice(const Op& op, Phase phase) const {
    OpPrice price;
    price.phase = phase;
    price.kind = op.kind;
    price.flops = op.flops * (op.kind == OpKind::kProduct ? Density(op) : 1);
    return price;
  }

  // Products in a narrower dtype than tensors are kept in (fp8) need their operands cast, and
  // transposed for the other gradient: read once, written twice, with the largest magnitude found
  // on the way (Transformer Engine, cast_transpose). What a norm makes leaves it cast, as many
  // bytes as it would else write. Products of layers with a weight alone: attention, routing's
  // combination, the head and its loss stay as they are.
  bool Narrows(const Op& op) const {
    if (cast_bytes_ == 0 || op.kind != OpKind::kProduct || op.inputs.size() < 2) return false;
    const Tensor& w = program_.tensor(op.inputs[1].tensor);
    const bool layer = program_.layer_class(op.layer_class).position == StagePosition::kLayer;
    const std::vector<std::uint8_t>& of_weight = op.inputs[1].factors;
    const bool contracts = std::any_of(of_weight.begin(), of_weight.end(),
                                       [&](std::uint8_t f) { return !Has(op.output_factors, f); });
    return layer && contracts && w.role == TensorRole::kParameter && IsMatrix(w);
  }
  bool MadeByNorm(TensorId id) const {
    return std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) {
      return op.output == id && (op.kind == OpKind::kNorm || op.kind == OpKind::kLayerNorm);
    });
  }

  void AddCast(const Op& op, OpId id, Phase phase, TensorId tensor, const Placement& at) {
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
  void CastOperands(const Op& op, OpId id, Phase phase) {
    if (!Narrows(op)) return;
    if (precision_.weight_copies == 0) AddCast(op, id, phase, op.inputs[1].tensor, op.need[1]);
    if (MadeByNorm(op.inputs[0].tensor)) return;
    const Version version{op.inputs[0].tensor, false, op.need[0]};
    if (cast_.insert({version, phase}).second) AddCast(op, id, phase, version.tensor, version.at);
  }

  void AddOp(const Op& op, OpId id, const OpPrice& price, bool cast = false) {
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

  void AddGradient(const Step& step) {
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

  // --- whole matrices
  // -------------------------------------------------------------------------------------

  // Of a product's operand: what is contracted are the rows, what the output has too the columns;
  // a factor of everything counts matrices (experts).
  void Updates() {
    for (const auto& [id, layer] : Parameters()) {
      const Tensor& w = program_.tensor(id);
      CastWeight(w, id, layer);
      // Asked once of a square: an optimizer of whole matrices has work there.
      if (w.state_on_host || !rules_.count_optimizer_time ||
          optimizer_.FlopsOfMatrix(KindOf(program_, w), 64, 64) == 0)
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
  void MoveMatrix(const Tensor& w, TensorId id, std::size_t layer) {
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

  void CastWeight(const Tensor& w, TensorId id, std::size_t layer) {
    const bool layers = program_.layer_class(w.layer_class).position == StagePosition::kLayer;
    if (precision_.weight_copies == 0 || cast_bytes_ == 0 || !layers || !IsMatrix(w) ||
        w.home.Flat() != 0 || !rules_.count_optimizer_time)
      return;
    const std::uint16_t bytes = TensorBlock(w, w.use, cast_bytes_);
    form_.updates.push_back(
        {static_cast<std::uint8_t>(layer), bytes, bytes, bytes, KindOf(program_, w), id, true});
  }

  // --- buffers
  // --------------------------------------------------------------------------------------------

  bool IsSaved(const Version& version) const {
    return std::any_of(
        edited_.derived.saved.begin(), edited_.derived.saved.end(), [&](const Saved& saved) {
          return !version.gradient && saved.tensor == version.tensor && saved.at == version.at;
        });
  }

  // What is gathered for one op stands between the steps that compute. Pieces that go round under
  // the op are two at a time: one that is worked on and one that arrives.
  void Buffers() {
    BufferRow row;
    for (std::size_t i = 0; i < edited_.derived.steps.size(); ++i) {
      const Step& step = edited_.derived.steps[i];
      if (step.kind != StepKind::kMove) {
        AddBuffer(row);
        row = BufferRow();
        continue;
      }
      const Tensor& tensor = program_.tensor(step.target.tensor);
      if (step.collective != Collective::kAllGather || step.when != When::kMicroBatch ||
          tensor.role == TensorRole::kParameter || tensor.role == TensorRole::kData ||
          IsSaved(step.target)) {
        continue;
      }
      row.layer_class = static_cast<std::uint8_t>(step.layer_class.value());
      row.step = static_cast<std::int32_t>(i);
      const bool pieces = step.hide == HideBehind::kOp;
      std::uint16_t block =
          TensorBlock(tensor, step.target.at, (pieces ? 2 : 1) * Width(tensor.dtype));
      if (pieces) {
        Block two = form_.blocks[block];
        two.flat = Mask(step.group);
        block = AddBlock(two);
      }
      row.parts.push_back({block, Mask(step.group)});
    }
    AddBuffer(row);
  }

  void AddBuffer(const BufferRow& row) {
    if (row.parts.empty()) return;
    const bool known =
        std::any_of(form_.buffers.begin(), form_.buffers.end(), [&](const BufferRow& other) {
          return other.layer_class == row.layer_class && other.parts == row.parts;
        });
    if (!known) form_.buffers.push_back(row);
  }

  // --- transfers
  // ------------------------------------------------------------------------------------------

  // The placement whose bytes are the payload: the gathered result, or what enters the others.
  const Placement& Payload(const Step& step) const {
    return step.collective == Collective::kAllGather ? step.target.at : step.source.at;
  }

  std::uint16_t PriceOf(TransferPrice price) {
    std::sort(price.payload.begin(), price.payload.end());
    const auto known = std::find(form_.transfer_prices.begin(), form_.transfer_prices.end(), price);
    const auto index = static_cast<std::uint16_t>(known - form_.transfer_prices.begin());
    if (known == form_.transfer_prices.end()) form_.transfer_prices.push_back(std::move(price));
    return index;
  }

  // A copy's gradient is reduced, and the copy updated, as the parameter's own.
  void AddMove(std::size_t index) {
    const Step& step = edited_.derived.steps[index];
    AddMove(index, step.layer_class);
    if (step.phase < Phase::kReduce) return;
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      if (IsCopy(program_.classes[c]) && program_.classes[c].both_ends == step.source.tensor)
        AddMove(index, ClassId(c));
    }
  }

  void AddMove(std::size_t index, ClassId layer) {
    const Step& step = edited_.derived.steps[index];
    if (step.collective == Collective::kSlice) return;
    const Tensor& tensor = program_.tensor(step.source.tensor);
    if (tensor.role == TensorRole::kData) return;
    TransferRow row;
    row.layer_class = static_cast<std::uint8_t>(layer.value());
    row.phase = step.phase;
    row.when = step.when;
    row.hide = step.hide;
    row.share = step.share;
    // What hides behind the neighbouring blocks is counted in one sum, as data parallelism.
    const bool summed = step.hide == HideBehind::kPrefetch ||
                        (step.hide == HideBehind::kLastBackward && step.when == When::kMicroBatch);
    row.role = summed                                     ? AxisRole::kData
               : step.collective == Collective::kHostCopy ? AxisRole::kHost
                                                          : edited_.mesh.RoleOf(step.group);
    row.step = static_cast<std::int32_t>(index);
    const bool shared =
        tensor.role == TensorRole::kParameter && step.when == When::kMicroBatch && Fetched(tensor);
    row.unit = shared ? Unit(tensor) : 1;
    const std::uint16_t block =
        TensorBlock(tensor, Payload(step), row.unit * TravelWidth(step, tensor));
    // Weights and gradients of a layer that move alike travel in one bucket.
    if (tensor.role == TensorRole::kParameter) {
      for (TransferRow& other : form_.transfers) {
        if (!SameBucket(other, row)) continue;
        TransferPrice together = form_.transfer_prices[other.price];
        together.payload.push_back(block);
        other.price = PriceOf(std::move(together));
        ++other.tensors;
        return;
      }
    }
    TransferPrice price{step.collective, Mask(step.group),  {block},
                        false,           BytesOfCall(step), Copied(step)};
    if (step.collective == Collective::kAllToAll) {
      price.copies = tensor.copies;
      price.domains = tensor.copy_domains;
    }
    row.price = PriceOf(std::move(price));
    form_.transfers.push_back(row);
  }

  // What is sent to the experts, tokens and the gradients of what they return, may travel in a
  // narrower dtype than it is computed in; what comes back is summed, and does not.
  double TravelWidth(const Step& step, const Tensor& tensor) const {
    const double width = Width(step.dtype);
    const auto number = rules_.numbers.find("dispatch.bytes");
    if (tensor.role != TensorRole::kRouted || number == rules_.numbers.end()) return width;
    const bool sent = std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) {
      return op.output == step.source.tensor && op.kind == OpKind::kDispatch;
    });
    return sent != step.source.gradient ? std::min(width, number->second.value) : width;
  }

  // Bytes of one call of what replicas that share the state reduce or restore in buckets.
  double BytesOfCall(const Step& step) {
    const Tensor& w = program_.tensor(step.source.tensor);
    const bool travels = step.phase == Phase::kReduce || step.phase == Phase::kRestore;
    if (w.role != TensorRole::kParameter || !travels || (step.group & w.state.Flat()) == 0)
      return 0;
    form_.buckets |= w.bucket > 0;
    return w.bucket * Width(step.dtype);
  }
  bool Copied(const Step& step) {
    return BytesOfCall(step) > 0 && step.phase == Phase::kReduce &&
           program_.tensor(step.source.tensor).bucket_copied;
  }

  // Finds the op of the same pass under which this transfer hides; else it blocks.
  void PutUnderOp(TransferRow& row) {
    if (row.hide != HideBehind::kOp) return;
    const OpId op = edited_.derived.steps[static_cast<std::size_t>(row.step)].op;
    const auto found =
        std::find_if(form_.ops.begin(), form_.ops.end(), [&](const OpRow& candidate) {
          return candidate.op == op && candidate.bucket == BucketOf(row.phase);
        });
    if (found == form_.ops.end()) {
      row.hide = HideBehind::kNothing;
      return;
    }
    const Ring ring{row.layer_class, row.phase == Phase::kForward, row.role,
                    form_.transfer_prices[row.price].mask, found->price};
    const auto known = std::find(form_.rings.begin(), form_.rings.end(), ring);
    row.ring = static_cast<std::int16_t>(known - form_.rings.begin());
    if (known == form_.rings.end()) form_.rings.push_back(ring);
  }

  bool SameBucket(const TransferRow& a, const TransferRow& b) const {
    if (a.unit != b.unit) return false;
    if (a.step < 0 || a.layer_class != b.layer_class || a.phase != b.phase || a.when != b.when ||
        a.hide != b.hide || a.share != b.share) {
      return false;
    }
    const Step& x = edited_.derived.steps[static_cast<std::size_t>(a.step)];
    const Step& y = edited_.derived.steps[static_cast<std::size_t>(b.step)];
    return program_.tensor(x.source.tensor).role == TensorRole::kParameter &&
           x.collective == y.collective && x.group == y.group &&
           x.source.gradient == y.source.gradient && x.author == y.author &&
           program_.tensor(x.source.tensor).bucket == program_.tensor(y.source.tensor).bucket &&
           x.realised == y.realised && x.dtype == y.dtype;
  }

  void AddStep(std::size_t index) {
    const Step& step = edited_.derived.steps[index];
    switch (step.kind) {
      case StepKind::kMove:
        AddMove(index);
        break;
      case StepKind::kCompute:
        AddForward(step);
        break;
      case StepKind::kGradient:
        AddGradient(step);
        break;
      case StepKind::kUpdate:
        break;  // priced from the state it touches
    }
  }

  void AddDeclared(std::size_t index) {
    const Declared& declared = edited_.derived.declared[index];
    TransferRow row;
    row.per_layer = declared.layer_class.valid();
    row.layer_class = static_cast<std::uint8_t>(row.per_layer ? declared.layer_class.value() : 0);
    row.phase = declared.phase;
    row.when = declared.when;
    row.hide = declared.hide;
    row.role = declared.role;
    if (row.per_layer) {
      const TensorId both = program_.layer_class(declared.layer_class).both_ends;
      if (both.valid()) return AddBothEnds(row, program_.tensor(both), index);
    }
    std::vector<std::uint8_t> locals;
    for (const DimensionId dim : declared.dims) locals.push_back(Local(dim, 0));
    const std::uint16_t payload = AddBlock({declared.bytes, Product(std::move(locals)), 0});
    row.price = PriceOf({declared.collective, Mask(declared.group), {payload}});
    row.declared = static_cast<std::int32_t>(index);
    form_.transfers.push_back(row);
  }

  // All-reduced as it is accumulated. The classroom's step has no messages between pipeline ranks.
  void AddBothEnds(TransferRow row, const Tensor& w, std::size_t declared) {
    TransferPrice price;
    price.collective = Collective::kAllReduce;
    price.payload = {TensorBlock(w, w.gradient, Width(DtypeSlot::kGradients))};
    price.ends = true;
    if (rules_.coarse_program) row.hide = HideBehind::kIgnored;
    row.price = PriceOf(std::move(price));
    row.declared = static_cast<std::int32_t>(declared);
    form_.transfers.push_back(row);
  }

  // --- the hot rows
  // -----------------------------------------------------------------------------------------

  // Bytes of one class and account over the same local sizes are one term with the sum of the
  // coefficients.
  void AddMemoryTerm(std::uint8_t layer_class, int slot, std::uint16_t block_index,
                     std::uint8_t when = 0) {
    const Block block = form_.blocks[block_index];
    for (MemoryTerm& term : form_.memory_terms) {
      const Block& sum = form_.blocks[term.block];
      if (term.layer_class != layer_class || term.slot != slot || term.when != when ||
          sum.product != block.product || sum.flat != block.flat)
        continue;
      Block more = sum;
      more.coefficient += block.coefficient;
      form_.blocks.push_back(more);  // never shared: the next sum changes nothing of others
      term.block = static_cast<std::uint16_t>(form_.blocks.size() - 1);
      return;
    }
    form_.memory_terms.push_back({layer_class, static_cast<std::uint8_t>(slot), when, block_index});
  }

  static bool Alike(const TransferRow& a, const TransferRow& b) {
    return a.layer_class == b.layer_class && a.per_layer == b.per_layer && a.phase == b.phase &&
           a.when == b.when && a.hide == b.hide && a.role == b.role && a.share == b.share &&
           a.price == b.price && a.unit == b.unit && a.ring == b.ring;
  }

  void SumUp() {
    for (const StateRow& row : form_.state) {
      if (row.host) {
        AddMemoryTerm(row.layer_class, kHostSlot, row.block);
        if (row.account == Account::kOptimizer)
          AddMemoryTerm(row.layer_class, kHostStateSlot, row.block);
        continue;
      }
      AddMemoryTerm(row.layer_class,
                    row.kept    ? kGatheredKeptSlot
                    : row.spare ? kSpareSlot
                                : static_cast<int>(row.account),
                    row.block, row.when);
    }
    if (form_.state_width == 0) {
      for (const auto& [id, layer] : Parameters()) {
        const Tensor& w = program_.tensor(id);
        AddMemoryTerm(static_cast<std::uint8_t>(layer),
                      w.state_on_host ? kHostUpdatedSlot : kUpdatedSlot,
                      TensorBlock(w, w.state, 1));
      }
    }
    for (const SavedRow& row : form_.saved) {
      AddMemoryTerm(row.layer_class,
                    kAccounts + (row.of_inner_layers ? 3 : static_cast<int>(row.residency)),
                    row.block, row.when);
    }
    for (std::size_t k = 0; k < program_.classes.size(); ++k) {
      for (const Waiting& row :
           WaitingOf(program_, edited_.derived, precision_, rules_, ClassId(k))) {
        const std::uint8_t when =
            row.saved < 0 ? 0 : form_.saved[static_cast<std::size_t>(row.saved)].when;
        AddMemoryTerm(static_cast<std::uint8_t>(k), kWaitingSlot,
                      TensorBlock(program_.tensor(row.tensor), row.at, row.bytes), when);
      }
    }
    for (const OpRow& row : form_.ops) {
      const auto known =
          std::find_if(form_.op_terms.begin(), form_.op_terms.end(), [&](const OpTerm& t) {
            return t.layer_class == row.layer_class && t.bucket == row.bucket &&
                   t.price == row.price;
          });
      if (known != form_.op_terms.end()) {
        known->count += 1;
      } else {
        form_.op_terms.push_back({row.layer_class, row.bucket, row.price, 1});
      }
    }
    for (const TransferRow& row : form_.transfers) {
      const auto known = std::find_if(form_.transfer_terms.begin(), form_.transfer_terms.end(),
                                      [&](const TransferTerm& t) { return Alike(t.row, row); });
      if (known != form_.transfer_terms.end()) {
        known->count += 1.0 / row.unit;
      } else {
        form_.transfer_terms.push_back({row, 1.0 / row.unit});
      }
    }
    CountCalls();
    DropUnusedBlocks();
  }

  void CountCalls() {
    for (const OpRow& row : form_.ops) {
      if (program_.op(row.op).kind == OpKind::kWork) continue;
      Form::ClassRow& layer = form_.classes[row.layer_class];
      (row.bucket == Bucket::kForward          ? layer.calls_forward
       : row.bucket == Bucket::kWeightGradient ? layer.calls_weight
                                               : layer.calls_backward) += 1;
    }
  }

  template <class F>
  void EachHotBlock(F visit) {
    visit(form_.tokens);
    visit(form_.boundary);
    for (MemoryTerm& term : form_.memory_terms) visit(term.block);
    for (UpdateRow& row : form_.updates) {
      visit(row.rows);
      visit(row.columns);
      visit(row.matrices);
    }
    for (BufferRow& row : form_.buffers) {
      for (BufferRow::Part& part : row.parts) visit(part.block);
    }
    for (TransferPrice& price : form_.transfer_prices) {
      for (std::uint16_t& block : price.payload) visit(block);
    }
    for (OpPrice& price : form_.op_prices) {
      visit(price.m);
      visit(price.n);
      visit(price.k);
      for (std::uint8_t i = 0; i < price.bytes; ++i) visit(price.block[i]);
    }
  }
  template <class F>
  void EachColdBlock(F visit) {
    for (StateRow& row : form_.state) visit(row.block);
    for (SavedRow& row : form_.saved) visit(row.block);
  }

  // What Evaluate needs comes first, sums left half-made on the way go: no block is computed in
  // vain.
  void DropUnusedBlocks() {
    DropUnusedPrices();
    constexpr std::uint16_t kNowhere = 0xffff;
    std::vector<std::uint16_t> moved(form_.blocks.size(), kNowhere);
    std::vector<Block> kept;
    const auto keep = [&](std::uint16_t& block) {
      if (moved[block] == kNowhere) {
        moved[block] = static_cast<std::uint16_t>(kept.size());
        kept.push_back(form_.blocks[block]);
      }
      block = moved[block];
    };
    EachHotBlock(keep);
    form_.hot_blocks = kept.size();
    EachColdBlock(keep);
    form_.blocks = std::move(kept);
  }

  void DropUnusedPrices() {
    std::vector<TransferPrice> kept;
    std::vector<std::uint16_t> moved(form_.transfer_prices.size(), 0);
    std::vector<bool> used(form_.transfer_prices.size(), false);
    for (const TransferRow& row : form_.transfers) used[row.price] = true;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) continue;
      moved[i] = static_cast<std::uint16_t>(kept.size());
      kept.push_back(form_.transfer_prices[i]);
    }
    form_.transfer_prices = std::move(kept);
    for (TransferRow& row : form_.transfers) row.price = moved[row.price];
    for (TransferTerm& term : form_.transfer_terms) term.row.price = moved[term.row.price];
  }

  const bool spare_gradients_;
  const Edited& edited_;
  const Program& program_;
  const Precision& precision_;
  const OptimizerStates& states_;
  const AccountingRules& rules_;
  const Optimizer& optimizer_;
  const double cast_bytes_;
  std::set<std::pair<Version, Phase>> cast_;
  Form form_;
};

}  // namespace

const char* Name(Account account) {
  switch (account) {
    case Account::kParameters:
      return "parameters";
    case Account::kGradients:
      return "gradients";
    case Account::kOptimizer:
      return "optimizer";
    case Account::kActivations:
      return "activations";
    case Account::kGathered:
      return "gathered";
    case Account::kTransient:
      return "transient";
    case Account::kFragmentation:
      return "fragmentation";
    case Account::kOutsideAllocator:
      return "outside_allocator";
    case Account::kHost:
      return "host";
  }
  return "parameters";
}

ParameterKind KindOf(const Program& program, const Tensor& parameter) {
  ParameterKind kind;
  // The dimension of a lump that has no name is in its scale.
  kind.dimensions = static_cast<int>(parameter.dims.size()) + (parameter.scale != 1 ? 1 : 0);
  kind.layer = program.layer_class(parameter.layer_class).position == StagePosition::kLayer;
  return kind;
}

OptimizerStates OptimizerStatesOf(const Program& program, const Optimizer& optimizer,
                                  const Precision& precision) {
  OptimizerStates states;
  for (const Tensor& tensor : program.tensors) {
    std::vector<std::int16_t>& own = states.of_tensor.emplace_back();
    if (tensor.role != TensorRole::kParameter) continue;
    for (const OptimizerState& state : optimizer.StatesOf(KindOf(program, tensor), precision)) {
      const auto known = std::find(states.table.begin(), states.table.end(), state);
      own.push_back(static_cast<std::int16_t>(known - states.table.begin()));
      if (known == states.table.end()) states.table.push_back(state);
    }
  }
  return states;
}

Form CompileForm(const Edited& edited, const Precision& precision, const OptimizerStates& states,
                 const AccountingRules& rules, const Optimizer& optimizer) {
  Form form = Compiler(edited, precision, states, rules, optimizer).Run();
  for (const TransferRow& t : form.transfers) {
    const bool overlaps = t.hide == HideBehind::kLastBackward || t.hide == HideBehind::kOp ||
                          (t.hide == HideBehind::kPrefetch && !rules.prefetch_hides_in_slot);
    const std::uint8_t mask = form.transfer_prices[t.price].mask;
    if (form.transfer_prices[t.price].collective == Collective::kHostCopy) {
      form.copies_overlap |= overlaps;
      continue;
    }
    auto& masks = form.overlapping;
    if (overlaps && std::find(masks.begin(), masks.end(), mask) == masks.end())
      masks.push_back(mask);
  }
  for (const TransferRow& row : form.transfers) {
    const auto role = static_cast<std::uint8_t>(row.role);
    if (std::find(form.roles.begin(), form.roles.end(), role) == form.roles.end()) {
      form.roles.push_back(role);
    }
  }
  // Gathers and reductions of several roles are put down to data.
  const auto data = static_cast<std::uint8_t>(AxisRole::kData);
  if (std::find(form.roles.begin(), form.roles.end(), data) == form.roles.end()) {
    form.roles.push_back(data);
  }
  return form;
}

}  // namespace shardlab
