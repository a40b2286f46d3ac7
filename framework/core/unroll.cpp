#include "absl/strings/str_cat.h"
#include "core/edits.h"

namespace shardlab {
namespace {

// Copies rows with their ids shifted; parameters of each layer are its own.
class Unroller {
 public:
  explicit Unroller(const Program& program) : in_(program) {
    out_.facts = program.facts;
    out_.dimensions = program.dimensions;
    out_.authors = program.authors;
  }

  Program Run() {
    bool layers_done = false;
    for (std::size_t c = 0; c < in_.classes.size(); ++c) {
      const LayerClass& row = in_.classes[c];
      if (row.position == StagePosition::kLayer) {
        if (!layers_done) Layers();
        layers_done = true;
        continue;
      }
      OpenClass(row, 0);
      CopyLayer(ClassId(c), 0);
    }
    return std::move(out_);
  }

 private:
  // One pipeline rank has all of them.
  void Layers() {
    ClassId last;
    int together = 0, position = 0;
    for (const LayerAt& layer : in_.LayersInOrder()) {
      const ClassId treated = in_.TreatedBy(layer, position++);
      const LayerClass& row = in_.layer_class(treated);
      const int segment = row.whole_block_recompute ? row.segment : 1;
      if (treated != last || together == segment) {
        OpenClass(row, layer.index);
        together = 0;
      }
      ++together;
      last = treated;
      CopyLayer(treated, layer.index);
    }
  }

  void OpenClass(const LayerClass& row, int layer) {
    LayerClass copy = row;
    copy.name = absl::StrCat(row.name, " ", layer);
    copy.repeat = 1;
    copy.segment = copy.every = 1;
    copy.per_rank = 0;
    copy.copy_of = ClassId();
    copy.input = TensorId();
    copy.output = TensorId();
    out_.classes.push_back(std::move(copy));
  }

  void CopyLayer(ClassId id, int layer) {
    const LayerClass& row = in_.layer_class(id);
    map_.resize(in_.tensors.size());
    std::vector<TensorId>& map = map_;
    LayerClass& into = out_.classes.back();
    const ClassId into_id(out_.classes.size() - 1);
    for (std::size_t t = 0; t < in_.tensors.size(); ++t) {
      if (in_.tensors[t].layer_class != id) continue;
      if (TensorId(t) == row.input && stream_.valid()) {
        map[t] = stream_;
        continue;
      }
      Tensor copy = in_.tensors[t];
      copy.name = absl::StrCat(copy.name, "@", row.name, layer);
      copy.layer_class = into_id;
      out_.tensors.push_back(std::move(copy));
      map[t] = TensorId(out_.tensors.size() - 1);
    }
    if (row.input.valid() && !into.input.valid()) into.input = map[row.input.index()];
    for (const Op& op : in_.ops) {
      if (op.layer_class != id) continue;
      Op copy = op;
      copy.layer_class = into_id;
      for (Operand& operand : copy.inputs) operand.tensor = map[operand.tensor.index()];
      for (TensorId& stash : copy.stash) stash = map[stash.index()];
      copy.output = map[copy.output.index()];
      out_.ops.push_back(std::move(copy));
    }
    if (row.output.valid()) {
      into.output = map[row.output.index()];
      stream_ = into.output;
    }
  }

  const Program& in_;
  Program out_;
  TensorId stream_;
  std::vector<TensorId> map_;
};

}  // namespace

Program Unroll(const Program& program) { return Unroller(program).Run(); }

}  // namespace shardlab
