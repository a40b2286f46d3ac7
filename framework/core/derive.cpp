#include "core/derive.h"

#include <algorithm>
#include <map>
#include <set>

namespace shardlab {
namespace {

// A moved version is worth saving in place of the stored one when moving did not make it larger.
bool MovesWithoutGrowing(const Placement& from, const Placement& to) {
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    Collective collective;
    if (!MoveOf(from.at(a), to.at(a), &collective)) continue;
    if (collective == Collective::kAllGather || from.at(a).partial()) return false;
  }
  return true;
}

bool OnlySlices(const Placement& from, const Placement& to) {
  for (std::size_t a = 0; a < kMaxAtoms; ++a) {
    Collective collective;
    if (MoveOf(from.at(a), to.at(a), &collective) && collective != Collective::kSlice) return false;
  }
  return true;
}

class Deriver {
 public:
  Deriver(const Program& program, const Mesh& mesh) : program_(program), mesh_(mesh) {
    for (std::size_t i = 0; i < program_.ops.size(); ++i)
      producer_[program_.ops[i].output] = OpId(i);
  }

  Derived Run() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) Forward(OpId(i));
    FindSaved();
    for (std::size_t c = program_.classes.size(); c-- > 0;) Backward(ClassId(c));
    ReduceAndUpdate();
    return std::move(out_);
  }

 private:
  const Tensor& T(TensorId id) const { return program_.tensor(id); }
  bool IsParameter(TensorId id) const { return T(id).role == TensorRole::kParameter; }
  bool IsData(TensorId id) const { return T(id).role == TensorRole::kData; }
  const Placement& Stored(TensorId id) const { return IsParameter(id) ? T(id).home : T(id).use; }
  // A class's own output is the next one's kept input, replayed or not.
  bool Recomputed(TensorId id) const {
    const auto it = producer_.find(id);
    if (it == producer_.end() || !program_.op(it->second).recompute) return false;
    return program_.layer_class(program_.op(it->second).layer_class).output != id;
  }

  // --- moving
  // ---------------------------------------------------------------------------------------------

  Step Base(ClassId layer, Phase phase, When when = When::kMicroBatch) const {
    Step step;
    step.phase = phase;
    step.when = when;
    step.layer_class = layer;
    return step;
  }

  DtypeSlot Travels(TensorId id, Phase phase) const {
    if (!IsParameter(id)) return T(id).dtype;
    return phase == Phase::kReduce ? DtypeSlot::kGradientReduce : DtypeSlot::kCompute;
  }

  // Of several axes the slowest counts, to which the transfer is put down: it comes last.
  std::int16_t Author(TensorId id, AtomMask group, Phase phase) const {
    const Tensor& tensor = T(id);
    if (tensor.state_author >= 0 && IsParameter(id) && phase != Phase::kReduce)
      return tensor.state_author;
    if (IsParameter(id) && tensor.state_author >= 0 && (tensor.state.Flat() & group) != 0)
      return tensor.state_author;
    for (std::size_t a = kMaxAtoms; a-- > 0;) {
      if ((group >> a & 1) && tensor.author[a] >= 0) return tensor.author[a];
    }
    // The tensor itself is whole there: whoever cut the work did it (a norm's weight under a cut
    // sequence).
    for (const Op& op : program_.ops) {
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i].tensor != id && op.output != id) continue;
        for (std::size_t a = kMaxAtoms; a-- > 0;) {
          if (!(group >> a & 1)) continue;
          for (const Operand& other : op.inputs) {
            if (T(other.tensor).author[a] >= 0) return T(other.tensor).author[a];
          }
          if (T(op.output).author[a] >= 0) return T(op.output).author[a];
        }
      }
    }
    return -1;
  }

  // Emits the hops of a move; `add`: the target is summed into and the source is used up.
  void Move(Version source, const Placement& to, Step base, bool add, AtomMask reduce_first = 0) {
    for (const Hop& hop : Hops(source.at, to, reduce_first)) {
      Step step = base;
      step.kind = StepKind::kMove;
      step.source = source;
      step.target = source;
      step.target.at = hop.to;
      step.collective = hop.collective;
      step.group = hop.group;
      step.add = add;
      step.dtype = Travels(source.tensor, base.phase);
      step.author = Author(source.tensor, hop.group, base.phase);
      out_.steps.push_back(step);
      source.at = hop.to;
    }
  }

  // The same placement on the other side of the link between a rank and its host. What travels is
  // what is stored there, in its dtype.
  Version Copy(const Version& source, bool to_host, Step base, bool add) {
    Step step = base;
    step.kind = StepKind::kMove;
    step.source = step.target = source;
    step.target.host = to_host;
    step.collective = Collective::kHostCopy;
    step.add = add;
    step.dtype = source.gradient ? DtypeSlot::kGradients : DtypeSlot::kParameters;
    step.author = T(source.tensor).state_author;
    out_.steps.push_back(step);
    return step.target;
  }

  // A move between stores, of which one or both may be the host's: layouts change on the rank.
  void Bring(Version source, const Version& target, const Step& base, bool add,
             AtomMask reduce_first) {
    if (source.host && (source.at != target.at || !target.host))
      source = Copy(source, false, base, add);
    Move(source, target.at, base, add, reduce_first);
    source.at = target.at;
    if (target.host && !source.host) Copy(source, true, base, add);
  }

  // The weights where the optimizer works. A host that does so has kept its copy: nothing travels.
  void BringWeights(const Tensor& w, TensorId id, const Step& base) {
    const Version home{id, false, w.home, w.home_on_host};
    if (!w.state_on_host || w.home_on_host)
      return Bring(home, {id, false, w.state, w.state_on_host}, base, false, 0);
    Move(home, w.state, base, false);
    Step step = base;
    step.source = step.target = {id, false, w.state};
    step.target.host = true;
    step.collective = Collective::kSlice;
    out_.steps.push_back(step);
  }

  // Makes `tensor` available at `need` for a step of this phase, once per pass.
  void Fetch(TensorId tensor, const Placement& need, ClassId layer, Phase phase) {
    if (phase != Phase::kForward &&
        (KeepsMoved(tensor, need) || (IsParameter(tensor) && T(tensor).keep_after_forward)))
      return;
    const Version wanted{tensor, false, need};
    if (IsParameter(tensor) && T(tensor).home_on_host) {
      const Version here{tensor, false, T(tensor).home};
      if (fetched_.insert(here).second)
        Copy({tensor, false, T(tensor).home, true}, false, Base(layer, phase), false);
      if (wanted == here) return;
    }
    if (!fetched_.insert(wanted).second) return;
    Move({tensor, false, Stored(tensor)}, need, Base(layer, phase), /*add=*/false);
  }

  // --- forward
  // --------------------------------------------------------------------------------------------

  void Compute(OpId id, Phase phase) {
    const Op& op = program_.op(id);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      Fetch(op.inputs[i].tensor, op.need[i], op.layer_class, phase);
    Step step = Base(op.layer_class, phase);
    step.kind = StepKind::kCompute;
    step.op = id;
    out_.steps.push_back(step);
    fetched_.insert({op.output, false, op.made});  // whoever needs it as it was made has it
    Move({op.output, false, op.made}, T(op.output).use, Base(op.layer_class, phase), /*add=*/false);
  }

  void Forward(OpId id) { Compute(id, Phase::kForward); }

  // --- what survives
  // --------------------------------------------------------------------------------------

  void FindSaved() {
    FindReads();
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      for (std::size_t j = 0; j < op.inputs.size(); ++j) {
        if (!op.inputs[j].has_gradient) continue;
        for (const int read : op.reads[j]) {
          if (read == kReadsOutput) {
            Want(op.output, OpId(i), true, Dual(op.made));
          } else {
            Want(op.inputs[Index(read)].tensor, OpId(i), true, op.need[Index(read)]);
          }
        }
      }
      for (const TensorId stash : op.stash) {
        Keep(stash, op.recompute ? Residency::kReplayed : Residency::kKept, OpId(i), T(stash).use);
        if (op.recompute) WantInputs(op, OpId(i));
      }
    }
  }

  static std::size_t Index(int read) { return static_cast<std::size_t>(read); }

  void WantInputs(const Op& op, OpId reader) {
    for (std::size_t j = 0; j < op.inputs.size(); ++j)
      Want(op.inputs[j].tensor, reader, false, op.need[j]);
  }

  // Every placement in which the backward pass may ask for a tensor.
  void FindReads() {
    for (const Op& op : program_.ops) {
      for (std::size_t j = 0; j < op.inputs.size(); ++j) {
        if (op.recompute) reads_[op.inputs[j].tensor].insert(op.need[j]);
        if (!op.inputs[j].has_gradient) continue;
        for (const int read : op.reads[j]) {
          if (read == kReadsOutput) {
            reads_[op.output].insert(Dual(op.made));
          } else {
            reads_[op.inputs[Index(read)].tensor].insert(op.need[Index(read)]);
          }
        }
      }
    }
  }

  // `read`: by a gradient, and not only to replay something.
  void Want(TensorId id, OpId reader, bool read, const Placement& need) {
    if (IsParameter(id) || IsData(id)) return;
    const LayerClass& layer = program_.layer_class(program_.op(reader).layer_class);
    if (Recomputed(id)) {
      if (read) Keep(id, Residency::kReplayed, reader, T(id).use);
      const OpId producer = producer_.at(id);
      if (wanted_.insert(id).second) WantInputs(program_.op(producer), reader);
      return;
    }
    if (layer.whole_block_recompute && id == layer.input) {
      Keep(id, Residency::kBoundary, reader, SavedAt(id, need));
      if (read)
        Keep(id, Residency::kReplayed, reader, T(id).use);  // in the other layers of its segment
      return;
    }
    Keep(id, Residency::kKept, reader, SavedAt(id, need));
  }

  void Keep(TensorId id, Residency residency, OpId reader, const Placement& at) {
    const bool known = std::any_of(out_.saved.begin(), out_.saved.end(), [&](const Saved& s) {
      return s.tensor == id && s.residency == residency && s.at == at;
    });
    if (!known) out_.saved.push_back({id, at, residency, reader});
  }

  // The kept input of a replayed block: stored as it is between blocks, whatever the replay
  // gathers.
  bool IsBoundary(TensorId id) const {
    return std::any_of(program_.classes.begin(), program_.classes.end(), [id](const LayerClass& c) {
      return c.whole_block_recompute && c.input == id;
    });
  }

  Placement SavedAt(TensorId id, const Placement& need) const {
    return KeepsMoved(id, need) ? need : T(id).use;
  }

  bool KeepsMoved(TensorId id, const Placement& need) const {
    if (IsParameter(id) || IsData(id) || Recomputed(id) || need == T(id).use) return false;
    if (T(id).keep_moved && !IsBoundary(id)) return true;
    if (!MovesWithoutGrowing(T(id).use, need)) return false;
    // A slice of what is saved anyway costs nothing to take again.
    const auto reads = reads_.find(id);
    const bool stored_too = reads != reads_.end() && reads->second.count(T(id).use) > 0;
    return !(stored_too && OnlySlices(T(id).use, need));
  }

  // --- backward
  // -------------------------------------------------------------------------------------------

  void Backward(ClassId layer) {
    const LayerClass& row = program_.layer_class(layer);
    fetched_.clear();
    replayed_.clear();
    if (row.whole_block_recompute) {
      for (std::size_t i = 0; i < program_.ops.size(); ++i) {
        if (program_.ops[i].layer_class != layer) continue;
        replayed_.insert(program_.ops[i].output);
        Compute(OpId(i), Phase::kReplay);
      }
    }
    for (std::size_t i = program_.ops.size(); i-- > 0;) {
      if (program_.ops[i].layer_class == layer) BackwardOf(OpId(i));
    }
    if (row.input.valid()) SettleGradient(row.input, layer);
  }

  void Replay(TensorId id) {
    if (!Recomputed(id) || !replayed_.insert(id).second) return;
    const OpId producer = producer_.at(id);
    for (const Operand& operand : program_.op(producer).inputs) Replay(operand.tensor);
    Compute(producer, Phase::kReplay);
  }

  // A contribution that is whole where another is a partial sum joins it for nothing: one rank of
  // the group keeps it, the others add zeros. Else keys and values of a layer would be reduced
  // apart from its queries.
  void JoinSums(TensorId id, ClassId layer, std::set<Placement>& pending) {
    const std::vector<Placement> all(pending.begin(), pending.end());
    for (const Placement& from : all) {
      for (const Placement& to : all) {
        if (from == to || pending.count(to) == 0) continue;
        AtomMask group = 0;
        bool joins = true;
        for (std::size_t a = 0; a < kMaxAtoms; ++a) {
          if (from.at(a) == to.at(a)) continue;
          joins &= from.at(a).whole() && to.at(a).sum();
          group = static_cast<AtomMask>(group | (1u << a));
        }
        if (!joins) continue;
        Step step = Base(layer, Phase::kInputGradient);
        step.kind = StepKind::kMove;
        step.source = {id, true, from};
        step.target = {id, true, to};
        step.collective = Collective::kSlice;
        step.group = group;
        step.add = true;
        out_.steps.push_back(step);
        pending.erase(from);
        break;
      }
    }
  }

  // Sums the contributions to the gradient of `id` where they are and brings them to where it is
  // stored.
  void SettleGradient(TensorId id, ClassId layer) {
    const Placement home = Dual(T(id).use);
    auto& pending = pending_[id];
    JoinSums(id, layer, pending);
    while (!pending.empty()) {
      const Placement at = *pending.begin();
      pending.erase(pending.begin());
      const std::vector<Hop> hops = Hops(at, home);
      if (hops.empty()) continue;
      Step step = Base(layer, Phase::kInputGradient);
      step.kind = StepKind::kMove;
      step.source = {id, true, at};
      step.target = {id, true, hops.front().to};
      step.collective = hops.front().collective;
      step.group = hops.front().group;
      step.add = true;
      step.dtype = T(id).dtype;
      step.author = Author(id, step.group, Phase::kInputGradient);
      out_.steps.push_back(step);
      if (hops.front().to != home) pending.insert(hops.front().to);
    }
  }

  void BackwardOf(OpId id) {
    const Op& op = program_.op(id);
    std::uint8_t inputs = 0, weights = 0;
    for (std::size_t j = 0; j < op.inputs.size(); ++j) {
      if (!op.inputs[j].has_gradient) continue;
      (IsParameter(op.inputs[j].tensor) ? weights : inputs) |= static_cast<std::uint8_t>(1u << j);
    }
    SettleGradient(op.output, op.layer_class);
    if ((inputs | weights) == 0) return;
    Move({op.output, true, Dual(T(op.output).use)}, Dual(op.made),
         Base(op.layer_class, Phase::kInputGradient), false);
    Gradient(op, id, inputs, Phase::kInputGradient);
    Gradient(op, id, weights, Phase::kWeightGradient);
  }

  void Gradient(const Op& op, OpId id, std::uint8_t operands, Phase phase) {
    if (operands == 0) return;
    for (std::size_t j = 0; j < op.inputs.size(); ++j) {
      if (!(operands >> j & 1)) continue;
      for (const int read : op.reads[j]) FetchRead(op, read, phase);
      const Placement produced = Produced(op, j);
      if (IsParameter(op.inputs[j].tensor)) {
        parameter_gradients_[op.inputs[j].tensor].insert(produced);
      } else {
        pending_[op.inputs[j].tensor].insert(produced);
      }
    }
    Step step = Base(op.layer_class, phase);
    step.kind = StepKind::kGradient;
    step.op = id;
    step.operands = operands;
    out_.steps.push_back(step);
  }

  void FetchRead(const Op& op, int read, Phase phase) {
    const TensorId id = read == kReadsOutput ? op.output : op.inputs[Index(read)].tensor;
    const Placement need = read == kReadsOutput ? Dual(op.made) : op.need[Index(read)];
    Replay(id);
    Fetch(id, need, op.layer_class, phase);
  }

  // --- end of the step
  // ------------------------------------------------------------------------------------

  void ReduceAndUpdate() {
    // In the order of the program, so that the report reads from embedding to head.
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const TensorId id(i);
      if (!IsParameter(id) || parameter_gradients_.count(id) == 0) continue;
      const Tensor& w = T(id);
      const AtomMask other = ReducedFirst(w);
      const Version kept{id, true, w.gradient, w.gradient_on_host},
          reduced{id, true, w.state, w.state_on_host};
      for (const Placement& produced : parameter_gradients_[id]) {
        if (w.reduce_each_micro_batch) {
          Bring({id, true, produced}, kept, Base(w.layer_class, Phase::kReduce), true, other);
        } else {
          Bring({id, true, produced}, reduced, Base(w.layer_class, Phase::kReduce, When::kStep),
                true, other);
        }
      }
      if (w.reduce_each_micro_batch)
        Bring(kept, reduced, Base(w.layer_class, Phase::kReduce, When::kStep), true, other);
      BringWeights(w, id, Base(w.layer_class, Phase::kUpdate, When::kStep));
      Step update = Base(w.layer_class, Phase::kUpdate, When::kStep);
      update.kind = StepKind::kUpdate;
      update.source = update.target = {id, false, w.state, w.state_on_host};
      out_.steps.push_back(update);
      Bring(update.target, {id, false, w.home, w.home_on_host},
            Base(w.layer_class, Phase::kRestore, When::kStep), false, 0);
    }
  }

  // Sums over tensor ranks come first, and then all weights of a layer go the same way, in one
  // bucket: a norm's gradient under a cut sequence travels with the matrices'. A weight on borrowed
  // ranks (experts) goes its own way: to it the tensor ranks that do not cut it are more replicas.
  AtomMask ReducedFirst(const Tensor& w) const {
    AtomMask tensor = 0, borrowed = 0;
    for (const Axis& axis : mesh_.axes()) {
      if (axis.borrows) {
        borrowed = static_cast<AtomMask>(borrowed | axis.atoms);
      } else if (axis.role == AxisRole::kTensor) {
        tensor = static_cast<AtomMask>(tensor | axis.atoms);
      }
    }
    return (w.use.AnyCut() & borrowed & ~tensor) != 0 ? AtomMask{0} : tensor;
  }

  const Program& program_;
  const Mesh& mesh_;
  Derived out_;
  std::map<TensorId, OpId> producer_;
  std::set<Version> fetched_;
  std::map<TensorId, std::set<Placement>> reads_;
  std::set<TensorId> wanted_, replayed_;
  std::map<TensorId, std::set<Placement>> pending_, parameter_gradients_;
};

}  // namespace

Derived Derive(const Program& program, const Mesh& mesh) { return Deriver(program, mesh).Run(); }

std::vector<Hop> Hops(const Placement& from, const Placement& to, AtomMask reduce_first) {
  std::vector<Hop> hops;
  Placement at = from;
  const auto pass = [&](Collective kind, AtomMask among) {
    AtomMask group = 0;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      Collective collective;
      if ((among >> a & 1) == 0 || !MoveOf(at.at(a), to.at(a), &collective) || collective != kind)
        continue;
      group = static_cast<AtomMask>(group | (1u << a));
    }
    if (group == 0) return;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if (group >> a & 1) at.Set(a, to.at(a));
    }
    hops.push_back({kind, group, at});
  };
  constexpr AtomMask kAll = static_cast<AtomMask>((1u << kMaxAtoms) - 1);
  pass(Collective::kAllReduce, reduce_first);
  pass(Collective::kAllGather, kAll);
  pass(Collective::kAllToAll, kAll);
  pass(Collective::kReduceScatter, kAll);
  pass(Collective::kSlice, kAll);
  pass(Collective::kAllReduce, kAll);
  return hops;
}

}  // namespace shardlab
