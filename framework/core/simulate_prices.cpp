#include "core/simulate_prices.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

class Pricer {
 public:
  Pricer(const Composition& c, const Plan& plan, int rank, const SpanTable& spans,
         const CompiledOrder* order)
      : c_(c), form_(c.form), plan_(plan), rank_(rank), spans_(spans) {
    copies_ = order == nullptr ? 1 : order->copies;
  }

  RankPrices Run() {
    out_.layers.resize(form_.classes.size() + 1);
    FillBlocks();
    out_.boundary = blocks_[form_.boundary];
    FindSteps();
    PriceOps();
    PriceTransfers();
    for (std::size_t k = 0; k < out_.layers.size(); ++k) Finish(k);
    FillMemory();
    return std::move(out_);
  }

 private:
  double Degree(std::size_t mask) const { return plan_.Size(form_.masks[mask]); }

  void FillBlocks() {
    std::vector<double> sizes, products;
    for (const LocalSize& local : form_.locals) {
      const double whole =
          local.batch ? static_cast<double>(plan_.micro_batch_size) * plan_.Size(form_.batch_atoms)
                      : local.size;
      const double cut = whole / Degree(local.mask);
      sizes.push_back(c_.rules.ceiling_division ? std::ceil(cut) : cut);
    }
    products.push_back(1);
    for (std::size_t i = 1; i < form_.products.size(); ++i)
      products.push_back(products[form_.products[i].parent] * sizes[form_.products[i].local]);
    for (const Block& block : form_.blocks)
      blocks_.push_back(block.coefficient * products[block.product] / Degree(block.flat));
  }

  // The first step of each op and pass, so that pieces can be put in the order of the derivation.
  void FindSteps() {
    const std::vector<Step>& steps = c_.edited.derived.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (step.kind != StepKind::kCompute && step.kind != StepKind::kGradient) continue;
      steps_.try_emplace({step.op.value(), step.phase}, static_cast<std::int32_t>(i));
    }
  }

  std::int32_t StepOf(const OpRow& row) const {
    const auto at = [&](Phase phase) {
      const auto found = steps_.find({row.op.value(), phase});
      return found == steps_.end() ? -1 : found->second;
    };
    switch (row.bucket) {
      case Bucket::kForward:
        return at(Phase::kForward);
      case Bucket::kReplay:
        return at(Phase::kReplay);
      case Bucket::kInputGradient:
        return at(Phase::kInputGradient);
      case Bucket::kWeightGradient:
        return at(Phase::kWeightGradient);
    }
    return -1;
  }

  double SecondsOf(const OpPrice& price) const {
    OpShape shape;
    shape.kind = price.kind;
    shape.phase = price.phase;
    shape.scores_in_memory = price.scores_in_memory;
    shape.m = blocks_[price.m];
    shape.n = blocks_[price.n];
    shape.k = blocks_[price.k];
    shape.flops = price.flops * shape.m * shape.n * shape.k;
    for (std::size_t i = 0; i < price.bytes; ++i) shape.bytes += blocks_[price.block[i]];
    shape.tokens = blocks_[form_.tokens];
    return c_.hardware->OpTime(shape).value();
  }

  void PriceOps() {
    for (const OpPrice& price : form_.op_prices) op_seconds_.push_back(SecondsOf(price));
    for (std::size_t i = 0; i < form_.ops.size(); ++i) {
      const OpRow& row = form_.ops[i];
      LayerPrices& layer = out_.layers[row.layer_class];
      Piece piece;
      piece.seconds = op_seconds_[row.price];
      piece.replay = row.bucket == Bucket::kReplay;
      piece.op = static_cast<std::int32_t>(i);
      piece.step = StepOf(row);
      (row.bucket == Bucket::kForward          ? layer.forward
       : row.bucket == Bucket::kWeightGradient ? layer.weight
                                               : layer.input)
          .push_back(piece);
    }
  }

  // Seconds of one call, and the stream that it occupies.
  double CallSeconds(const TransferPrice& price, Stream* stream) const {
    double bytes = PayloadOf(price);
    if (price.collective == Collective::kHostCopy) {
      *stream = Stream::kHost;
      return bytes / c_.hardware->machine().host_bandwidth.value();
    }
    if (price.ends ? plan_.pipeline == 1 : Degree(price.mask) <= 1) return 0;
    const Span span = price.ends ? spans_.PipelineHop() : spans_.Of(form_.masks[price.mask], rank_);
    *stream = StreamOf(span);
    const double calls = CallsOf(price, bytes);
    return calls *
           c_.network
               ->TransferTime({price.collective, Bytes(bytes / calls), price.copies, price.domains},
                              span)
               .value();
  }

  double PayloadOf(const TransferPrice& price) const {
    double bytes = 0;
    for (const std::uint16_t block : price.payload) bytes += blocks_[block];
    return bytes;
  }

  // In how many calls a layer's share of a bucket goes. A bucket is never fuller than all that goes
  // the same way, spread over the pipeline ranks.
  double CallsOf(const TransferPrice& price, double bytes) const {
    if (price.bucket == 0 || bytes == 0) return 1;
    const std::vector<double>& counts = c_.splits[Size(plan_.split)].counts;
    const std::size_t classes = form_.classes.size();
    double all = 0;
    for (const TransferRow& row : form_.transfers) {
      const TransferPrice& other = form_.transfer_prices[row.price];
      if (other.bucket != price.bucket || other.collective != price.collective ||
          other.mask != price.mask)
        continue;
      for (std::size_t at = row.layer_class; at < counts.size(); at += classes)
        all += counts[at] * PayloadOf(other) / row.unit;
    }
    return std::max(bytes / price.bucket, bytes * plan_.pipeline / all);
  }

  void PriceTransfers() {
    struct Round {  // of the pieces that go round under one op
      double seconds = 0;
      Piece piece;
    };
    std::vector<Round> rounds(form_.rings.size());
    const std::size_t once = form_.classes.size();
    calls_forward_.assign(once, 0);
    calls_backward_.assign(once, 0);
    for (std::size_t i = 0; i < form_.transfers.size(); ++i) {
      const TransferRow& row = form_.transfers[i];
      const auto index = static_cast<std::int32_t>(i);
      Stream stream = Stream::kIntraNode;
      const double seconds = CallSeconds(form_.transfer_prices[row.price], &stream) / row.unit;
      if (seconds <= 0) continue;
      const std::size_t k = row.per_layer ? row.layer_class : once;
      LayerPrices& layer = out_.layers[k];
      const TransferPrice& price = form_.transfer_prices[row.price];
      if (price.bucket > 0 && row.phase == Phase::kReduce) {
        const double bytes = PayloadOf(price), calls = CallsOf(price, bytes);
        layer.pieces += calls / row.unit;
        if (price.copied) out_.bucket = std::max(out_.bucket, bytes / calls);
      }
      Piece piece{seconds, stream, row.phase == Phase::kReplay, -1, index, row.step};
      if (row.ring >= 0) {
        Round& round = rounds[Size(row.ring)];
        round.seconds += seconds;
        if (round.piece.transfer < 0) round.piece = piece;
        continue;
      }
      const bool blocks = row.hide == HideBehind::kNothing && row.phase == Phase::kReduce;
      if (c_.rules.reductions_after_pipeline && blocks && row.when == When::kMicroBatch) {
        layer.step_now.Add(seconds * plan_.micro_batches / copies_, stream, index);
        continue;
      }
      if (row.when == When::kStep) {
        if (row.hide == HideBehind::kIgnored) continue;
        (row.hide == HideBehind::kLastBackward ? layer.step_late : layer.step_now)
            .Add(seconds, stream, index);
        continue;
      }
      const bool forward = row.phase == Phase::kForward;
      switch (row.hide) {
        case HideBehind::kIgnored:
          continue;
        case HideBehind::kPrefetch:
          (forward                       ? layer.gather_forward
           : row.phase == Phase::kReduce ? layer.scatter
                                         : layer.gather_backward)
              .Add(seconds, stream, index);
          continue;
        case HideBehind::kLastBackward:
          layer.scatter.Add(seconds, stream, index);
          continue;
        case HideBehind::kShare:
          piece.seconds *= 1 - row.share;
          break;
        case HideBehind::kNothing:
        case HideBehind::kOp:
          break;
      }
      if (k < once) (forward ? calls_forward_ : calls_backward_)[k] += 1.0 / row.unit;
      (forward ? layer.forward : layer.input).push_back(piece);
    }
    for (std::size_t i = 0; i < rounds.size(); ++i) PlayRing(form_.rings[i], rounds[i]);
  }

  // The op works on one piece while the next is on its way: what it does not cover is seen.
  template <class Round>
  void PlayRing(const Ring& ring, Round& round) {
    if (round.seconds == 0) return;
    const double pieces = Degree(ring.mask);
    const double covered =
        std::min(round.seconds, op_seconds_[ring.op_price] * (pieces - 1) / pieces);
    round.piece.seconds = round.seconds - covered + (1 - c_.overlap_share) * covered;
    LayerPrices& layer = out_.layers[ring.layer_class];
    (ring.forward ? layer.forward : layer.input).push_back(round.piece);
  }

  // Sorted, summed up; where the host starts kernels more slowly than the device does them, the
  // device waits.
  void Finish(std::size_t k) {
    LayerPrices& layer = out_.layers[k];
    const auto sum = [](std::vector<Piece>& pieces) {
      std::stable_sort(pieces.begin(), pieces.end(),
                       [](const Piece& a, const Piece& b) { return a.step < b.step; });
      double seconds = 0;
      for (const Piece& piece : pieces) seconds += piece.seconds;
      return seconds;
    };
    layer.forward_seconds = sum(layer.forward);
    layer.input_seconds = sum(layer.input);
    layer.weight_seconds = sum(layer.weight);
    for (const Piece& piece : layer.input) {
      // What the classroom's chart calls recomputation: ops that are done again.
      if (piece.replay && piece.op >= 0) layer.replay_seconds += piece.seconds;
    }
    if (c_.host_seconds <= 0 || k >= form_.classes.size()) return;
    const auto wait = [&](std::vector<Piece>& pieces, double calls, double& seconds) {
      const double more = calls * c_.host_seconds - seconds;
      if (more <= 0) return;
      Piece piece;
      piece.seconds = more;
      pieces.push_back(piece);
      seconds += more;
    };
    const Form::ClassRow& row = form_.classes[k];
    wait(layer.forward, row.calls_forward + calls_forward_[k], layer.forward_seconds);
    wait(layer.input, row.calls_backward + calls_backward_[k], layer.input_seconds);
    wait(layer.weight, row.calls_weight, layer.weight_seconds);
  }

  void FillMemory() {
    for (const MemoryTerm& term : form_.memory_terms) {
      if (term.when == 0 || Degree(term.when) > 1)
        out_.layers[term.layer_class].bytes[term.slot] += blocks_[term.block];
    }
    for (const BufferRow& row : form_.buffers) {
      double bytes = 0;
      for (const BufferRow::Part& part : row.parts)
        bytes += Degree(part.when) > 1 ? blocks_[part.block] : 0;
      double& most = out_.layers[row.layer_class].bytes[kBufferSlot];
      most = std::max(most, bytes);
    }
    for (const UpdateRow& row : form_.updates) {
      OpShape shape;
      shape.kind = OpKind::kProduct;
      shape.phase = Phase::kUpdate;
      if (row.cast) {
        shape.bytes = blocks_[row.rows];
        out_.layers[row.layer_class].update += c_.hardware->OpTime(shape).value();
        continue;
      }
      shape.m = blocks_[row.rows];
      shape.n = blocks_[row.columns];
      shape.k = std::min(shape.m, shape.n);
      shape.flops = c_.optimizer->FlopsOfMatrix(row.kind, shape.m, shape.n);
      out_.layers[row.layer_class].update +=
          blocks_[row.matrices] * c_.hardware->OpTime(shape).value();
    }
  }

  const Composition& c_;
  const Form& form_;
  const Plan& plan_;
  const int rank_;
  const SpanTable& spans_;
  double copies_ = 1;
  std::vector<double> blocks_, op_seconds_, calls_forward_, calls_backward_;
  std::map<std::pair<std::int32_t, Phase>, std::int32_t> steps_;
  RankPrices out_;
};

}  // namespace

const char* Name(Stream stream) {
  constexpr const char* kNames[] = {"compute", "intra-node", "inter-node", "host", "send/recv"};
  return kNames[static_cast<std::size_t>(stream)];
}

void Traffic::Add(double more, Stream on, std::int32_t row) {
  seconds += more;
  if (more <= longest) return;
  longest = more;
  stream = on;
  transfer = row;
}

Stream StreamOf(const Span& span) {
  return span.outermost == 0 ? Stream::kIntraNode : Stream::kInterNode;
}

double MessageSeconds(const Composition& c, const SpanTable& spans, double bytes) {
  return c.network->TransferTime({Collective::kSendRecv, Bytes(bytes)}, spans.PipelineHop())
      .value();
}

RankPrices PriceRank(const Composition& c, const Plan& plan, int rank, const SpanTable& spans,
                     const CompiledOrder* order) {
  return Pricer(c, plan, rank, spans, order).Run();
}

}  // namespace shardlab
