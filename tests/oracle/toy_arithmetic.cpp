#include "oracle/toy_arithmetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace shardlab::oracle {
namespace {

using Factors = std::vector<std::uint8_t>;

constexpr std::size_t kMaxFactors = 10;
constexpr std::size_t kMaxBlocks = 8;
constexpr double kNormEpsilon = 1e-5;

bool Contains(const Factors& factors, std::uint8_t factor) {
  return std::find(factors.begin(), factors.end(), factor) != factors.end();
}

// Loops over factors of an op; every block that takes part follows with its own offset.
class Loops {
 public:
  explicit Loops(const Op& op) : op_(op), indices_(op.factors.size(), nullptr) {}

  // Returns the slot of the block. All blocks must agree on the indices of a factor: the op works
  // on one part.
  std::size_t Follow(const Block& block, const Factors& factors) {
    const std::size_t slot = blocks_++;
    if (!block.shape->whole_box()) throw Fault(op_.name + ": computes on a flat part");
    std::ptrdiff_t stride = 1;
    for (std::size_t d = factors.size(); d-- > 0;) {
      const Indices& indices = block.shape->box[d];
      const std::uint8_t factor = factors[d];
      if (indices_[factor] != nullptr && *indices_[factor] != indices) {
        throw Fault(op_.name + ": its tensors disagree on factor '" + op_.factors[factor].letter +
                    "'");
      }
      indices_[factor] = &indices;
      strides_[slot][factor] += stride;
      stride *= static_cast<std::ptrdiff_t>(indices.size());
    }
    return slot;
  }

  std::ptrdiff_t at(std::size_t slot) const { return offset_[slot]; }
  int index(std::uint8_t factor) const { return index_[factor]; }
  // All blocks have all of it.
  bool Whole(std::uint8_t factor, int size) const {
    return indices_[factor]->size() == static_cast<std::size_t>(size);
  }

  template <class Body>
  void Each(const Factors& factors, const Body& body) {
    EachFrom(factors, 0, body);
  }

 private:
  template <class Body>
  void EachFrom(const Factors& factors, std::size_t depth, const Body& body) {
    if (depth == factors.size()) {
      body();
      return;
    }
    const std::uint8_t factor = factors[depth];
    const Indices& indices = *indices_[factor];
    for (const int i : indices) {
      index_[factor] = i;
      EachFrom(factors, depth + 1, body);
      for (std::size_t b = 0; b < blocks_; ++b) offset_[b] += strides_[b][factor];
    }
    const auto steps = static_cast<std::ptrdiff_t>(indices.size());
    for (std::size_t b = 0; b < blocks_; ++b) offset_[b] -= strides_[b][factor] * steps;
  }

  const Op& op_;
  std::vector<const Indices*> indices_;  // by factor; null where no block has it yet
  std::size_t blocks_ = 0;
  std::array<std::array<std::ptrdiff_t, kMaxFactors>, kMaxBlocks> strides_{};
  std::array<std::ptrdiff_t, kMaxBlocks> offset_{};
  std::array<int, kMaxFactors> index_{};
};

// An op on one rank: named access to what it reads and writes at the loops' present place.
class LocalOp {
 public:
  LocalOp(const Op& op, const DimensionSizes& sizes, const std::vector<const Block*>& inputs,
          const Block* output, Block* made, const Block* output_gradient,
          const std::vector<Block*>& gradients)
      : op_(op), sizes_(sizes), loops_(op) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i])
        input_[i] = {inputs[i]->data.data(), loops_.Follow(*inputs[i], op.inputs[i].factors)};
    }
    if (output) output_ = {output->data.data(), loops_.Follow(*output, op.output_factors)};
    if (made) made_ = {made->data.data(), loops_.Follow(*made, op.output_factors)};
    if (output_gradient) {
      output_gradient_ = {output_gradient->data.data(),
                          loops_.Follow(*output_gradient, op.output_factors)};
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i])
        gradient_[i] = {gradients[i]->data.data(),
                        loops_.Follow(*gradients[i], op.inputs[i].factors)};
    }
    for (std::size_t f = 0; f < op.factors.size(); ++f)
      all_.push_back(static_cast<std::uint8_t>(f));
  }

  void Forward() {
    switch (op_.kind) {
      case OpKind::kProduct:
      case OpKind::kLookup:
        return loops_.Each(all_, [&] { Out() += In(0) * In(1); });
      case OpKind::kAdd:
        return loops_.Each(all_, [&] { Out() = In(0) + In(1); });
      case OpKind::kGatedSilu:
        return loops_.Each(all_, [&] { Out() = In(0) * Sigmoid(In(0)) * In(1) * Routed(); });
      case OpKind::kDispatch:
        return loops_.Each(all_, [&] { Out() = In(1) > 0 ? In(0) : 0; });
      case OpKind::kSum:
        return loops_.Each(all_, [&] { Out() += In(0); });
      case OpKind::kSumExp:
        return loops_.Each(all_, [&] { Out() += std::exp(In(0) - In(1)); });
      case OpKind::kLogLoss:
        return loops_.Each(all_, [&] { Out() = std::log(In(0)) + In(1) - In(2); });
      case OpKind::kMaxReduce:
        loops_.Each(op_.output_factors, [&] { Out() = -std::numeric_limits<double>::infinity(); });
        return loops_.Each(all_, [&] { Out() = std::max(Out(), In(0)); });
      case OpKind::kNorm:
        return Norm();
      case OpKind::kLayerNorm:
        return LayerNorm();
      case OpKind::kBias:
        return loops_.Each(all_, [&] { Out() = In(0) + In(1); });
      case OpKind::kGelu:
        return loops_.Each(all_, [&] { Out() = In(0) * Gate(In(0)); });
      case OpKind::kRelu:
        return loops_.Each(all_, [&] { Out() = std::max(In(0), 0.0); });
      case OpKind::kConcat:
        return Concat([&](std::size_t i) { Out() = In(i); });
      case OpKind::kTopK:
        return TopK();
      case OpKind::kAttention:
        return Attention();
      case OpKind::kLump:
      case OpKind::kWork:
        throw Fault(op_.name + ": has no numbers");
    }
  }

  void Backward() {
    switch (op_.kind) {
      case OpKind::kProduct:
      case OpKind::kLookup:
        if (Asked(0)) loops_.Each(all_, [&] { Gradient(0) += OutGradient() * In(1); });
        if (Asked(1)) loops_.Each(all_, [&] { Gradient(1) += OutGradient() * In(0); });
        return;
      case OpKind::kAdd:
        for (const std::size_t i : {0, 1}) {
          if (Asked(i)) loops_.Each(all_, [&] { Gradient(i) += OutGradient(); });
        }
        return;
      case OpKind::kGatedSilu:
        return loops_.Each(all_, [&] {
          const double a = In(0), s = Sigmoid(a);
          const double g = OutGradient() * Routed();
          if (Asked(0)) Gradient(0) += g * In(1) * s * (1 + a * (1 - s));
          if (Asked(1)) Gradient(1) += g * a * s;
          if (Asked(2)) Gradient(2) += OutGradient() * a * s * In(1);
        });
      case OpKind::kSum:
        return loops_.Each(all_, [&] { Gradient(0) += OutGradient(); });
      case OpKind::kDispatch:
        return loops_.Each(all_, [&] { Gradient(0) += In(1) > 0 ? OutGradient() : 0; });
      case OpKind::kSumExp:
        return loops_.Each(all_, [&] { Gradient(0) += OutGradient() * std::exp(In(0) - In(1)); });
      case OpKind::kLogLoss:
        if (Asked(0)) loops_.Each(all_, [&] { Gradient(0) += OutGradient() / In(0); });
        if (Asked(2)) loops_.Each(all_, [&] { Gradient(2) -= OutGradient(); });
        return;
      case OpKind::kNorm:
        return NormBackward();
      case OpKind::kLayerNorm:
        return LayerNormBackward();
      case OpKind::kBias:
        for (const std::size_t i : {0, 1}) {
          if (Asked(i)) loops_.Each(all_, [&] { Gradient(i) += OutGradient(); });
        }
        return;
      case OpKind::kGelu:
        return loops_.Each(all_, [&] {
          const double x = In(0), g = Gate(x);
          Gradient(0) += OutGradient() * (g + x * g * (1 - g) * GateSlope(x));
        });
      case OpKind::kRelu:
        return loops_.Each(all_, [&] { Gradient(0) += Saved() > 0 ? OutGradient() : 0; });
      case OpKind::kConcat:
        return Concat([&](std::size_t i) {
          if (Asked(i)) Gradient(i) += OutGradient();
        });
      case OpKind::kTopK:
        return TopKBackward();
      case OpKind::kAttention:
        return AttentionBackward();
      case OpKind::kMaxReduce:
      case OpKind::kLump:
      case OpKind::kWork:
        throw Fault(op_.name + ": has no gradient");
    }
  }

 private:
  template <class Number>
  struct View {
    Number* data = nullptr;
    std::size_t slot = 0;
  };

  double In(std::size_t i) const {
    if (!input_[i].data) FailToRead(i);
    return input_[i].data[loops_.at(input_[i].slot)];
  }
  [[noreturn]] __attribute__((noinline)) void FailToRead(std::size_t i) const {
    throw Fault(op_.name + ": reads operand " + std::to_string(i) + ", which its row does not say");
  }
  double Saved() const { return output_.data[loops_.at(output_.slot)]; }
  double& Out() { return made_.data[loops_.at(made_.slot)]; }
  double OutGradient() const { return output_gradient_.data[loops_.at(output_gradient_.slot)]; }
  bool Asked(std::size_t i) const { return gradient_[i].data != nullptr; }
  double& Gradient(std::size_t i) { return gradient_[i].data[loops_.at(gradient_[i].slot)]; }

  static double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // gelu(x) = x * gate(x); 0.5 (1 + tanh u) = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
  static double Gate(double x) { return Sigmoid(2 * kRootOfTwoOverPi * (x + kCubic * x * x * x)); }
  static double GateSlope(double x) { return 2 * kRootOfTwoOverPi * (1 + 3 * kCubic * x * x); }
  static constexpr double kRootOfTwoOverPi = 0.7978845608028654, kCubic = 0.044715;

  double SizeOf(const Factors& factors) const {
    double size = 1;
    for (const std::uint8_t f : factors) size *= sizes_[op_.factors[f].dim.index()];
    return size;
  }
  void NeedWhole(const Factors& factors) const {
    for (const std::uint8_t f : factors) {
      if (!loops_.Whole(f, sizes_[op_.factors[f].dim.index()])) {
        throw Fault(op_.name + ": has only a part of factor '" + op_.factors[f].letter + "'");
      }
    }
  }
  Factors Except(const Factors& factors, const Factors& without) const {
    Factors rest;
    for (const std::uint8_t f : factors) {
      if (!Contains(without, f)) rest.push_back(f);
    }
    return rest;
  }

  double Weight() const { return HasOperand(1) ? In(1) : 1; }
  double Routed() const { return HasOperand(2) ? In(2) : 1; }  // a gated unit's weight
  // 1 / root of the mean square at the loops' present place.
  double InverseRoot() {
    double squares = 0;
    loops_.Each(op_.whole, [&] { squares += In(0) * In(0); });
    return 1 / std::sqrt(squares / SizeOf(op_.whole) + kNormEpsilon);
  }
  void Norm() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      const double root = InverseRoot();
      loops_.Each(op_.whole, [&] { Out() = In(0) * root * Weight(); });
    });
  }
  void NormBackward() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      const double root = InverseRoot();
      double along = 0;
      loops_.Each(op_.whole, [&] { along += OutGradient() * Weight() * In(0); });
      along *= root * root * root / SizeOf(op_.whole);
      loops_.Each(op_.whole, [&] {
        if (Asked(0)) Gradient(0) += OutGradient() * Weight() * root - In(0) * along;
        if (Asked(1)) Gradient(1) += OutGradient() * In(0) * root;
      });
    });
  }

  // Mean and 1 / deviation at the loops' present place.
  std::pair<double, double> MeanAndRoot() {
    const double n = SizeOf(op_.whole);
    double sum = 0, squares = 0;
    loops_.Each(op_.whole, [&] { sum += In(0); });
    const double mean = sum / n;
    loops_.Each(op_.whole, [&] { squares += (In(0) - mean) * (In(0) - mean); });
    return {mean, 1 / std::sqrt(squares / n + kNormEpsilon)};
  }
  bool HasOperand(std::size_t i) const { return op_.inputs.size() > i; }
  void LayerNorm() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      const auto [mean, root] = MeanAndRoot();
      const double m = mean, r = root;
      loops_.Each(op_.whole, [&] {
        Out() = (In(0) - m) * r * (HasOperand(1) ? In(1) : 1) + (HasOperand(2) ? In(2) : 0);
      });
    });
  }
  void LayerNormBackward() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      double m = 0, r = 0;
      // The gradient of the bias alone reads nothing.
      if (Asked(0) || Asked(1)) std::tie(m, r) = MeanAndRoot();
      const double n = SizeOf(op_.whole);
      const auto weighted = [&] { return OutGradient() * (HasOperand(1) ? In(1) : 1); };
      double sum = 0, along = 0;
      if (Asked(0)) {
        loops_.Each(op_.whole, [&] {
          sum += weighted() / n;
          along += weighted() * (In(0) - m) * r / n;
        });
      }
      loops_.Each(op_.whole, [&] {
        if (Asked(0)) Gradient(0) += r * (weighted() - sum - (In(0) - m) * r * along);
        if (Asked(1)) Gradient(1) += OutGradient() * (In(0) - m) * r;
        if (Asked(2)) Gradient(2) += OutGradient();
      });
    });
  }

  // Calls `body(operand)` where a column of the output and the column of an operand are the same.
  template <class Body>
  void Concat(const Body& body) {
    NeedWhole(op_.whole);
    const std::uint8_t out = op_.whole[0];
    int first = 0;
    for (const std::size_t i : {0, 1}) {
      const std::uint8_t own = op_.whole[i + 1];
      Factors loops = Except(all_, op_.whole);
      loops.push_back(own);
      loops.push_back(out);
      loops_.Each(loops, [&] {
        if (loops_.index(out) == first + loops_.index(own)) body(i);
      });
      first += sizes_[op_.factors[own].dim.index()];
    }
  }

  void TopK() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      std::vector<double> best;
      loops_.Each(op_.whole, [&] { best.push_back(In(0)); });
      std::sort(best.rbegin(), best.rend());
      best.resize(static_cast<std::size_t>(op_.top_k));
      double total = 0;
      for (const double x : best) total += std::exp(x);
      loops_.Each(op_.whole, [&] { Out() = In(0) >= best.back() ? std::exp(In(0)) / total : 0; });
    });
  }
  void TopKBackward() {
    NeedWhole(op_.whole);
    loops_.Each(Except(all_, op_.whole), [&] {
      double along = 0;
      loops_.Each(op_.whole, [&] { along += OutGradient() * Saved(); });
      loops_.Each(op_.whole, [&] { Gradient(0) += Saved() * (OutGradient() - along); });
    });
  }

  // Attention: queries (outer factors) against the keys, over the width that queries and keys
  // share.
  struct AttentionFactors {
    Factors outer, keys, width, value;
    std::uint8_t query_position = 0, key_position = 0;
  };
  AttentionFactors Roles() const {
    AttentionFactors roles;
    for (const std::uint8_t f : op_.whole) {
      const bool query = Contains(op_.inputs[0].factors, f);
      (query ? roles.width : roles.keys).push_back(f);
    }
    roles.outer = Except(op_.inputs[0].factors, roles.width);
    roles.value = Except(op_.output_factors, roles.outer);
    roles.key_position = roles.keys.at(0);
    for (const std::uint8_t f : roles.outer) {
      if (op_.factors[f].dim == op_.factors[roles.key_position].dim) roles.query_position = f;
    }
    NeedWhole(op_.whole);
    return roles;
  }
  // Weights of the keys at the loops' present place; keys after the query have none.
  std::vector<double> Weights(const AttentionFactors& roles) {
    std::vector<double> weights;
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    loops_.Each(roles.keys, [&] {
      if (loops_.index(roles.key_position) > loops_.index(roles.query_position)) return;
      double score = 0;
      loops_.Each(roles.width, [&] { score += In(0) * In(1); });
      weights.push_back(score / std::sqrt(SizeOf(roles.width)));
      largest = std::max(largest, weights.back());
    });
    for (double& w : weights) total += w = std::exp(w - largest);
    for (double& w : weights) w /= total;
    return weights;
  }
  void Attention() {
    const AttentionFactors roles = Roles();
    loops_.Each(roles.outer, [&] {
      const std::vector<double> weights = Weights(roles);
      std::size_t key = 0;
      loops_.Each(roles.keys, [&] {
        if (loops_.index(roles.key_position) > loops_.index(roles.query_position)) return;
        const double weight = weights[key++];
        loops_.Each(roles.value, [&] { Out() += weight * In(2); });
      });
    });
  }
  void AttentionBackward() {
    const AttentionFactors roles = Roles();
    loops_.Each(roles.outer, [&] {
      const std::vector<double> weights = Weights(roles);
      double along = 0;
      loops_.Each(roles.value, [&] { along += OutGradient() * Saved(); });
      std::size_t key = 0;
      loops_.Each(roles.keys, [&] {
        if (loops_.index(roles.key_position) > loops_.index(roles.query_position)) return;
        const double weight = weights[key++];
        double slope = -along;
        loops_.Each(roles.value, [&] {
          slope += OutGradient() * In(2);
          if (Asked(2)) Gradient(2) += weight * OutGradient();
        });
        slope *= weight / std::sqrt(SizeOf(roles.width));
        loops_.Each(roles.width, [&] {
          if (Asked(0)) Gradient(0) += slope * In(1);
          if (Asked(1)) Gradient(1) += slope * In(0);
        });
      });
    });
  }

  const Op& op_;
  const DimensionSizes& sizes_;
  Loops loops_;
  Factors all_;
  std::array<View<const double>, 3> input_{};
  View<const double> output_, output_gradient_;
  View<double> made_;
  std::array<View<double>, 3> gradient_{};
};

}  // namespace

Range Part(Range whole, int index, int parts) {
  return {whole.begin + whole.size() * index / parts,
          whole.begin + whole.size() * (index + 1) / parts};
}

int Shape::volume() const {
  int volume = 1;
  for (const Indices& indices : box) volume *= static_cast<int>(indices.size());
  return volume;
}

void ComputeLocally(const Op& op, const DimensionSizes& sizes,
                    const std::vector<const Block*>& inputs, Block& output) {
  LocalOp(op, sizes, inputs, nullptr, &output, nullptr, {}).Forward();
}

void DifferentiateLocally(const Op& op, const DimensionSizes& sizes,
                          const std::vector<const Block*>& inputs, const Block* output,
                          const Block& output_gradient, const std::vector<Block*>& gradients) {
  LocalOp(op, sizes, inputs, output, nullptr, &output_gradient, gradients).Backward();
}

}  // namespace shardlab::oracle
