#include "core/form_memory.h"

#include <algorithm>

#include "core/saved_width.h"

namespace shardlab {

double FormMemory::StateBytes(std::int16_t state) const {
  const OptimizerState& s = input_.states.table[static_cast<std::size_t>(state)];
  return BytesPerElement(s.dtype) * s.per_parameter;
}

// Of one parameter, where all have the same.
double FormMemory::StateWidth() const {
  double width = -1;
  for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
    if (program_.tensors[i].role != TensorRole::kParameter) continue;
    double own = 0;
    for (const std::int16_t s : input_.states.of_tensor[i]) own += StateBytes(s);
    if (width >= 0 && own != width) return 0;
    width = own;
  }
  return std::max(width, 0.0);
}

void FormMemory::States() {
  const bool spares = HoldsSpares(rules_);
  for (const auto& parameter : Parameters()) {
    const TensorId id = parameter.first;  // no binding: clang 14 captures none
    const Tensor& w = program_.tensor(id);
    const auto layer = static_cast<std::uint8_t>(parameter.second);
    const auto lies = [&](Account account, const Placement& at, double width, bool host,
                          std::int16_t state = -1) {
      form_.state.push_back({layer, account, TensorBlock(w, at, width), id, state, 0, false, host});
      form_.on_host |= host;
    };
    const double weight = Width(DtypeSlot::kParameters), slope = Width(DtypeSlot::kGradients);
    lies(Account::kParameters, w.home, weight, w.home_on_host);
    lies(Account::kGradients, w.gradient, slope, w.gradient_on_host);
    for (const std::int16_t s : input_.states.of_tensor[id.index()])
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
    if (spares) Spare(w, layer, id);
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
void FormMemory::Spare(const Tensor& w, std::uint8_t layer, TensorId id) {
  if (!IsMatrix(w) || IsOfRouted(id)) return;
  form_.state.push_back({layer, Account::kTransient,
                         TensorBlock(w, w.use, Width(DtypeSlot::kCompute)), id, -1, 0, false, false,
                         false, false, true});
  form_.spares = true;
}

// Some product of this weight has a routed operand: one of many that are done as one group.
bool FormMemory::IsOfRouted(TensorId id) const {
  const auto has = [](const Op& op, auto&& is) {
    return std::any_of(op.inputs.begin(), op.inputs.end(),
                       [&](const Operand& operand) { return is(operand.tensor); });
  };
  return std::any_of(program_.ops.begin(), program_.ops.end(), [&](const Op& op) {
    return has(op, [&](TensorId t) { return t == id; }) &&
           has(op, [&](TensorId t) { return program_.tensor(t).role == TensorRole::kRouted; });
  });
}

bool FormMemory::HoldsSpares(const AccountingRules& rules) {
  const auto it = rules.facts.find("gradient.dummy_buffers");
  return it != rules.facts.end() && it->second;
}

// A weight's gradient is whole, in the dtype of the weight that was used, before it is copied
// into what is reduced and scattered; both live at once (PyTorch FSDP2, foreach_reduce of
// _fsdp_collectives.py).
void FormMemory::Unsharded(const Tensor& w, std::uint8_t layer, TensorId id) {
  for (const bool bucket : {false, true}) {
    if (bucket && w.bucket > 0) continue;  // of a size of its own
    const DtypeSlot dtype = bucket ? DtypeSlot::kGradientReduce : DtypeSlot::kCompute;
    form_.state.push_back({layer, Account::kTransient, TensorBlock(w, w.use, Width(dtype)), id, -1,
                           Mask(w.gradient.Flat()), false, false, bucket});
  }
}

// The ranks that make this another copy than one that is saved before it: a tensor that moved
// between ranks and is read on both sides of the move.
AtomMask FormMemory::ApartFrom(const Saved& saved) const {
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

void FormMemory::AddSaved(const Saved& saved) {
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

bool FormMemory::IsSaved(const Version& version) const {
  return std::any_of(
      edited_.derived.saved.begin(), edited_.derived.saved.end(), [&](const Saved& saved) {
        return !version.gradient && saved.tensor == version.tensor && saved.at == version.at;
      });
}

// What is gathered for one op stands between the steps that compute. Pieces that go round under
// the op are two at a time: one that is worked on and one that arrives.
void FormMemory::Buffers() {
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

void FormMemory::AddBuffer(const BufferRow& row) {
  if (row.parts.empty()) return;
  const bool known =
      std::any_of(form_.buffers.begin(), form_.buffers.end(), [&](const BufferRow& other) {
        return other.layer_class == row.layer_class && other.parts == row.parts;
      });
  if (!known) form_.buffers.push_back(row);
}

}  // namespace shardlab
