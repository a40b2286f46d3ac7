#pragma once
// What one layer does on one pipeline rank, op by op and collective by collective, in the order of
// the derivation: what Simulate plays. Priced from the rows of a Form by the machine and the
// network; nothing of Evaluate's sums is used, so that either can be held against the other.
//
//   RankPrices prices = PriceRank(composition, plan, rank, spans, order);
//   for (const Piece& piece : prices.layers[k].forward) play(piece.stream, piece.seconds);

#include <array>
#include <cstdint>
#include <vector>

#include "core/composition.h"
#include "core/order.h"
#include "core/span.h"

namespace shardlab {

// Where work is done: one thing at a time on each.
enum class Stream : std::uint8_t { kCompute, kIntraNode, kInterNode, kHost, kSend };
inline constexpr int kStreams = 5;
const char* Name(Stream stream);  // "compute", "intra-node", "inter-node", "host", "send/recv"

// An op or a collective of one layer.
struct Piece {
  double seconds = 0;
  Stream stream = Stream::kCompute;
  bool replay = false;
  std::int32_t op = -1, transfer = -1;  // into the form's rows; neither: waiting for the host
  std::int32_t step = 0;                // into Derived::steps
};

// Of data-parallel traffic that is not part of a pass's own order, where it travels.
struct Traffic {
  double seconds = 0;
  Stream stream = Stream::kIntraNode;  // of its longest part
  double longest = 0;
  std::int32_t transfer = -1;  // row of it

  void Add(double more, Stream on, std::int32_t row);
};

struct LayerPrices {
  std::vector<Piece> forward, input, weight;  // `input` with what is replayed for it
  double forward_seconds = 0, input_seconds = 0, weight_seconds = 0, replay_seconds = 0;
  Traffic gather_forward, gather_backward, scatter;  // ahead of the compute, and behind it
  Traffic step_now, step_late;  // once a step: after the last op, and behind the last backward
  std::array<double, kMemorySlots> bytes{};
  double update = 0;  // seconds of the optimizer's work on whole matrices
  double pieces = 0;  // calls for its reductions, where they go in buckets
};

struct RankPrices {
  std::vector<LayerPrices> layers;  // [class], and behind them what a rank does once
  double boundary = 0;              // bytes that it sends on
  double bucket = 0;                // bytes into which gradients are copied to be reduced
};

RankPrices PriceRank(const Composition& composition, const Plan& plan, int rank,
                     const SpanTable& spans, const CompiledOrder* order);

// Of a message between neighbouring pipeline ranks, and on which stream.
double MessageSeconds(const Composition& composition, const SpanTable& spans, double bytes);
Stream StreamOf(const Span& span);

}  // namespace shardlab
