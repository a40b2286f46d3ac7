#include "domain/program.h"

#include <algorithm>

namespace shardlab {

const char* Name(TensorRole role) {
  switch (role) {
    case TensorRole::kParameter:
      return "parameter";
    case TensorRole::kData:
      return "data";
    case TensorRole::kStream:
      return "stream";
    case TensorRole::kActivation:
      return "activation";
    case TensorRole::kRouted:
      return "routed";
    case TensorRole::kStatistic:
      return "statistic";
  }
  return "activation";
}

const char* Name(OpKind kind) {
  switch (kind) {
    case OpKind::kProduct:
      return "product";
    case OpKind::kLookup:
      return "lookup";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kNorm:
      return "norm";
    case OpKind::kLayerNorm:
      return "layer-norm";
    case OpKind::kAdd:
      return "add";
    case OpKind::kBias:
      return "bias";
    case OpKind::kGatedSilu:
      return "gated-silu";
    case OpKind::kGelu:
      return "gelu";
    case OpKind::kRelu:
      return "relu";
    case OpKind::kConcat:
      return "concat";
    case OpKind::kSum:
      return "sum";
    case OpKind::kMaxReduce:
      return "max";
    case OpKind::kSumExp:
      return "sum-exp";
    case OpKind::kLogLoss:
      return "log-loss";
    case OpKind::kTopK:
      return "top-k";
    case OpKind::kDispatch:
      return "dispatch";
    case OpKind::kLump:
      return "lump";
    case OpKind::kWork:
      return "work";
  }
  return "product";
}

bool Tensor::Has(DimensionId dim) const {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

std::vector<LayerAt> Program::LayersInOrder() const {
  std::vector<LayerAt> layers;
  std::vector<int> seen(classes.size(), 0);
  layers.reserve(order.size());
  for (const ClassId turn : order) layers.push_back({turn, seen[turn.index()]++});
  if (!order.empty()) return layers;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const LayerClass& row = classes[c];
    if (row.position != StagePosition::kLayer || row.copy_of.valid()) continue;
    layers.reserve(layers.size() + static_cast<std::size_t>(std::max(0, row.repeat)));
    for (int i = 0; i < row.repeat; ++i) layers.push_back({ClassId(c), i});
  }
  return layers;
}

ClassId Program::TreatedBy(const LayerAt& layer, int on_rank) const {
  const LayerClass& row = layer_class(layer.layer_class);
  const bool own = row.per_rank > 0 ? on_rank < row.per_rank : layer.index % row.every == 0;
  return own ? layer.layer_class : ClassId(layer.layer_class.index() + 1);
}

DimensionId Program::FindDimension(std::string_view name) const {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].name == name) return DimensionId(i);
  }
  return DimensionId();
}

DimensionId Program::FindKind(DimensionKind kind) const {
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i].kind == kind) return DimensionId(i);
  }
  return DimensionId();
}

std::string Program::Describe(const Tensor& tensor, const Placement& placement,
                              const Mesh& mesh) const {
  std::string out = tensor.name + "[";
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    if (i > 0) out += ", ";
    out += dimension(tensor.dims[i]).name;
    const AtomMask cut = placement.CutOf(tensor.dims[i]);
    if (cut != 0) out += "/" + mesh.NameOf(cut);
  }
  out += "]";
  if (const AtomMask flat = placement.Flat()) out += " / " + mesh.NameOf(flat);
  if (const AtomMask partial = placement.Partial()) out += " partial over " + mesh.NameOf(partial);
  return out;
}

}  // namespace shardlab
