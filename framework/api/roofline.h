#pragma once
// How long one op takes on one device, for machines that are described by numbers: the larger of
// arithmetic and memory time, and a launch. Matrix products lose what tiles, waves of tiles and a
// short inner dimension cost; attention has rates of its own; the classroom's lumps of FLOPs run at
// peak x efficiency.
//
//   Roofline roofline;
//   roofline.Set(device);                    // a RooflineDevice: data sheet and measurements
//   Seconds t = roofline.OpTime(shape);      // at most one division of a product, no allocation

#include <algorithm>
#include <cstdint>

#include "api/plugin.h"
#include "domain/machine.h"

namespace shardlab {

// Fitted on 109 layer shapes measured on A100 PCIe (SimuMax's table; mean error 3.2 %): half of a
// last wave's idle processors is lost, the other half comes back through other tilings and higher
// clocks; k / (k + 128); weight gradients, which accumulate, 0.94.
inline constexpr double kWaveShare = 0.5;
inline constexpr double kInnerHalf = 128;
inline constexpr double kWeightGradientFactor = 0.94;
// The best of all shapes is a record and not a working value: on A100 PCIe, the one device with
// both, the model fits those shapes with a ceiling of 0.773 where the record is 0.811, a ratio of
// 0.953.
inline constexpr double kRecordShare = 0.953;

struct RooflineDevice {
  double peak = 1;         // FLOP/s of the compute dtype, dense
  double vector_peak = 1;  // outside the tensor cores: element-wise arithmetic
  double memory_bandwidth = 1;
  double memory_efficiency = 1;  // share of it that long streams reach
  double launch = 0;             // seconds: gap and ramp of one kernel in a full stream
  double product_ceiling = 1;    // share of the peak that large products reach
  double tile_short = 128, tile_long = 256, processors = 1;
  double attention_forward = 1, attention_backward = 1;  // FLOP/s of long sequences
  double ampere_attention = 1;  // share of it that kernels reach which use Ampere's instructions
  double attention_half_length = 0;        // tokens at which it is half of that
  double attention_block = 128.0 * 128.0;  // elements of the output that a thread block makes
  double elementwise_passes = 1;           // times that a framework moves what must be moved once
  double efficiency = 1, half_tokens = 0;  // the classroom's
};

// What the scenario's software makes of the device: [software] numbers.
inline RooflineDevice WithSoftware(RooflineDevice device, const InitContext& context) {
  device.product_ceiling *= context.Number("products.share", 1);
  const double share =
      context.Fact("attention.ampere_kernels", false) ? device.ampere_attention : 1;
  device.attention_forward *= share * context.Number("attention.forward_share", 1);
  device.attention_backward *= share * context.Number("attention.backward_share", 1);
  device.elementwise_passes = context.Number("elementwise.passes", 1);
  return device;
}

class Roofline final {
 public:
  void Set(const RooflineDevice& device) {
    d_ = device;
    // Constant factors once, so that an op costs one division.
    product_scale_ = 2 * d_.tile_short * d_.tile_long / (d_.peak * d_.product_ceiling);
    weight_product_scale_ = product_scale_ / kWeightGradientFactor;
    vector_scale_ = 1 / d_.vector_peak;
    stream_scale_ = 1 / (d_.memory_bandwidth * d_.memory_efficiency);
    classroom_scale_ = 1 / (d_.peak * d_.efficiency);
    per_tile_short_ = 1 / d_.tile_short;
    per_tile_long_ = 1 / d_.tile_long;
    per_processor_ = 1 / d_.processors;
  }

  Seconds OpTime(const OpShape& shape) const noexcept {
    switch (shape.kind) {
      case OpKind::kLump:
        return Seconds(0);  // the classroom's FLOPs are kWork rows
      case OpKind::kWork:
        return Classroom(shape);
      case OpKind::kProduct:
        return Seconds(std::max(Product(shape), Stream(shape)) + d_.launch);
      case OpKind::kAttention:
        if (shape.scores_in_memory) return Seconds(Eager(shape) + 3 * d_.launch);
        return Seconds(std::max(Attention(shape), Stream(shape)) + d_.launch);
      default:
        return Seconds(
            std::max(shape.flops * vector_scale_, d_.elementwise_passes * Stream(shape)) +
            d_.launch);
    }
  }

  void OpTimes(const OpShape* shapes, std::size_t count, double* seconds) const noexcept {
    for (std::size_t i = 0; i < count; ++i) seconds[i] = OpTime(shapes[i]).value();
  }

 private:
  // FLOPs / (peak x efficiency x x / (x + half)); the curve is exactly 1 where half is 0.
  Seconds Classroom(const OpShape& shape) const noexcept {
    const double flat = shape.flops * classroom_scale_;
    if (d_.half_tokens == 0) return Seconds(flat);
    return Seconds(flat * (shape.tokens + d_.half_tokens) / shape.tokens);
  }

  double Stream(const OpShape& shape) const noexcept { return shape.bytes * stream_scale_; }

  // Truncation to an integer is one instruction; std::ceil is a call without SSE 4.1.
  static double Ceil(double x) noexcept {
    const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
    return whole < x ? whole + 1 : whole;
  }

  // Tiles are counted with the long side along m or along n, whichever needs fewer. With T tiles in
  // waves of as many as there are processors, which would hold W >= T, the rate is the ceiling
  // times filling of tiles times (1 + T/W) / 2 times k / (k + 128): seconds = flops x T x tile x 2W
  // (k + 128) / (m n (W + T) k x peak x ceiling), growing with T and W.
  double Product(const OpShape& shape) const noexcept {
    const double m = std::max(shape.m, 1.0), n = std::max(shape.n, 1.0), k = std::max(shape.k, 1.0);
    const double along_m = Ceil(m * per_tile_long_) * Ceil(n * per_tile_short_);
    const double along_n = Ceil(m * per_tile_short_) * Ceil(n * per_tile_long_);
    const double tiles = std::min(along_m, along_n);
    const double room = Ceil(tiles * per_processor_) * d_.processors;
    const double scale =
        shape.phase == Phase::kWeightGradient ? weight_product_scale_ : product_scale_;
    return shape.flops * scale * tiles * room * (k + kInnerHalf) / (m * n * (room + tiles) * k);
  }

  // Plain products compute the whole square, where a causal kernel computes half of it; what is
  // between them goes through memory.
  double Eager(const OpShape& shape) const noexcept {
    return 2 * shape.flops / (d_.peak * d_.product_ceiling) + d_.elementwise_passes * Stream(shape);
  }

  // m = elements of the output. A forward pass takes 2s FLOPs for each of them when causal, so the
  // ramp s / (s + half) is 2 x half more FLOPs for each element; a backward pass takes 2.5 times as
  // many. Half a wave of thread blocks is idle at the end.
  double Attention(const OpShape& shape) const noexcept {
    const bool backward =
        shape.phase == Phase::kInputGradient || shape.phase == Phase::kWeightGradient;
    const double m = std::max(shape.m, 1.0);
    const double ramp = m * (2 * d_.attention_half_length) * (backward ? 2.5 : 1.0);
    const double tail = 1 + kWaveShare * d_.processors * d_.attention_block / m;
    return shape.flops <= 0 ? 0
                            : (shape.flops * tail + ramp) /
                                  (backward ? d_.attention_backward : d_.attention_forward);
  }

  RooflineDevice d_;
  double product_scale_ = 0, weight_product_scale_ = 0;  // seconds per FLOP and tile
  double vector_scale_ = 0, stream_scale_ = 0, classroom_scale_ = 0;
  double per_tile_short_ = 0, per_tile_long_ = 0, per_processor_ = 0;
};

}  // namespace shardlab
