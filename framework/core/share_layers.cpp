#include "core/share_layers.h"

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

// Makes room for a class behind `original`.
void OpenClassBehind(Program& program, ClassId original) {
  const auto behind = [original](ClassId& id) {
    if (id.valid() && id.index() > original.index()) id = ClassId(id.index() + 1);
  };
  LayerClass copy = program.layer_class(original);
  absl::StrAppend(&copy.name, " without recomputation");
  copy.copy_of = original;
  copy.whole_block_recompute = false;
  copy.segment = copy.every = 1;
  copy.per_rank = 0;
  program.classes.insert(
      program.classes.begin() + static_cast<std::ptrdiff_t>(original.index()) + 1, copy);
  for (LayerClass& row : program.classes) behind(row.copy_of);
  for (ClassId& turn : program.order) behind(turn);
  for (Tensor& tensor : program.tensors) behind(tensor.layer_class);
  for (Op& op : program.ops) behind(op.layer_class);
}

void CopyRows(Program& program, ClassId original) {
  const ClassId copy(original.index() + 1);
  std::vector<TensorId> map(program.tensors.size());
  const std::size_t tensors = program.tensors.size();
  for (std::size_t t = 0; t < tensors; ++t) {
    if (program.tensors[t].layer_class != original) continue;
    map[t] = TensorId(program.tensors.size());
    Tensor row = program.tensors[t];
    row.layer_class = copy;
    program.tensors.push_back(std::move(row));
  }
  // A parameter of another class stays that class's.
  const auto moved = [&map](TensorId& id) {
    if (id.valid() && map[id.index()].valid()) id = map[id.index()];
  };
  std::vector<Op> copies;
  std::size_t end = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].layer_class != original) continue;
    end = i + 1;
    Op op = program.ops[i];
    op.layer_class = copy;
    op.recompute = false;
    op.recompute_author = -1;
    for (Operand& operand : op.inputs) moved(operand.tensor);
    for (TensorId& stash : op.stash) moved(stash);
    moved(op.output);
    copies.push_back(std::move(op));
  }
  program.ops.insert(program.ops.begin() + static_cast<std::ptrdiff_t>(end), copies.begin(),
                     copies.end());
  LayerClass& row = program.classes[copy.index()];
  moved(row.input);
  moved(row.output);
}

bool UsedAtTheLastStage(const Program& program, TensorId id) {
  for (const Op& op : program.ops) {
    if (program.layer_class(op.layer_class).position != StagePosition::kLast) continue;
    for (const Operand& operand : op.inputs) {
      if (operand.tensor == id) return true;
    }
  }
  return false;
}

}  // namespace

void OpenSharedEnds(Program& program) {
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor& w = program.tensors[t];
    if (w.role != TensorRole::kParameter ||
        program.layer_class(w.layer_class).position != StagePosition::kFirst ||
        !UsedAtTheLastStage(program, TensorId(t)))
      continue;
    for (const StagePosition end : {StagePosition::kFirst, StagePosition::kLast}) {
      LayerClass row;
      row.name = absl::StrCat(w.name, end == StagePosition::kLast ? ", copy on the last rank"
                                                                  : ", used on the last rank");
      row.position = end;
      row.both_ends = TensorId(t);
      program.classes.push_back(std::move(row));
    }
  }
}

void ShareLayers(Program& program) {
  for (std::size_t c = 0; c < program.classes.size(); ++c) {
    if (!program.classes[c].shared() || program.classes[c].copy_of.valid()) continue;
    OpenClassBehind(program, ClassId(c));
    CopyRows(program, ClassId(c));
  }
}

}  // namespace shardlab
