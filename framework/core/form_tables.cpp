#include "core/form_tables.h"

#include <algorithm>

namespace shardlab {

std::uint8_t FormTables::Mask(AtomMask mask) {
  const auto it = std::find(form_.masks.begin(), form_.masks.end(), mask);
  if (it != form_.masks.end()) return static_cast<std::uint8_t>(it - form_.masks.begin());
  form_.masks.push_back(mask);
  return static_cast<std::uint8_t>(form_.masks.size() - 1);
}

std::uint8_t FormTables::Local(DimensionId dim, AtomMask cut) {
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

std::uint16_t FormTables::AddBlock(const Block& block) {
  const auto known = std::find(form_.blocks.begin(), form_.blocks.end(), block);
  const auto index = static_cast<std::uint16_t>(known - form_.blocks.begin());
  if (known == form_.blocks.end()) form_.blocks.push_back(block);
  return index;
}

std::uint16_t FormTables::Product(std::vector<std::uint8_t> locals) {
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

std::uint16_t FormTables::TensorBlock(const Tensor& tensor, const Placement& at,
                                      double per_element) {
  std::vector<std::uint8_t> locals;
  for (const DimensionId dim : tensor.dims) locals.push_back(Local(dim, at.CutOf(dim)));
  return AddBlock({tensor.scale * per_element, Product(std::move(locals)), Mask(at.Flat())});
}

std::uint16_t FormTables::PriceOf(TransferPrice price) {
  std::sort(price.payload.begin(), price.payload.end());
  const auto known = std::find(form_.transfer_prices.begin(), form_.transfer_prices.end(), price);
  const auto index = static_cast<std::uint16_t>(known - form_.transfer_prices.begin());
  if (known == form_.transfer_prices.end()) form_.transfer_prices.push_back(std::move(price));
  return index;
}

std::vector<std::pair<TensorId, std::size_t>> FormTables::Parameters() const {
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

bool FormTables::IsCopy(const LayerClass& row) {
  return row.both_ends.valid() && row.position == StagePosition::kLast;
}

int FormTables::Unit(const Tensor& w) const {
  return std::min(w.unit, program_.layer_class(w.layer_class).repeat);
}

bool FormTables::IsMatrix(const Tensor& w) const {
  return w.dims.size() >= 2 && w.scale == 1 &&
         program_.layer_class(w.layer_class).position != StagePosition::kFirst;
}

bool FormTables::Has(const std::vector<std::uint8_t>& factors, std::size_t f) {
  return std::find(factors.begin(), factors.end(), static_cast<std::uint8_t>(f)) != factors.end();
}

Bucket FormTables::BucketOf(Phase phase) {
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

}  // namespace shardlab
