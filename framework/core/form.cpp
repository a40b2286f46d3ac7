#include "core/form.h"

#include <algorithm>
#include <utility>

#include "core/form_memory.h"
#include "core/form_ops.h"
#include "core/form_tables.h"
#include "core/waiting.h"

namespace shardlab {
namespace {

class Compiler final : FormTables {
 public:
  Compiler(const FormInput& input, Form* form)
      : FormTables(input, form), memory_(input, form), ops_(input, form) {}

  void Run() {
    form_.masks.push_back(0);
    form_.products.push_back({});
    form_.state_width = memory_.StateWidth();
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
    memory_.States();
    for (const Saved& saved : edited_.derived.saved) memory_.AddSaved(saved);
    for (std::size_t i = 0; i < edited_.derived.steps.size(); ++i) AddStep(i);
    for (TransferRow& row : form_.transfers) PutUnderOp(row);
    memory_.Buffers();
    ops_.Updates();
    for (std::size_t i = 0; i < edited_.derived.declared.size(); ++i) AddDeclared(i);
    SumUp();
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

  // --- transfers
  // ------------------------------------------------------------------------------------------

  // The placement whose bytes are the payload: the gathered result, or what enters the others.
  const Placement& Payload(const Step& step) const {
    return step.collective == Collective::kAllGather ? step.target.at : step.source.at;
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
        ops_.AddForward(step);
        break;
      case StepKind::kGradient:
        ops_.AddGradient(step);
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

  FormMemory memory_;
  FormOps ops_;
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
  Form form;
  Compiler({edited, precision, states, rules, optimizer}, &form).Run();
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
