#include "core/simulate_pass.h"

#include <algorithm>
#include <cmath>

namespace shardlab {
namespace {

// What a layer does in a pass of this kind.
struct LayerPass {
  double seconds = 0, replay = 0;
  double communicates = 0;  // of these seconds
  Traffic gather, scatter;
};

// Of a split backward the input gradients need the weights, and the weight gradients are reduced.
LayerPass PassOf(const LayerPrices& layer, WorkKind kind) {
  const auto on_links = [](const std::vector<Piece>& pieces) {
    double seconds = 0;
    for (const Piece& piece : pieces)
      seconds += piece.stream == Stream::kCompute ? 0 : piece.seconds;
    return seconds;
  };
  switch (kind) {
    case WorkKind::kF:
      return {layer.forward_seconds, 0, on_links(layer.forward), layer.gather_forward, {}};
    case WorkKind::kI:
      return {layer.input_seconds,
              layer.replay_seconds,
              on_links(layer.input),
              layer.gather_backward,
              {}};
    case WorkKind::kW:
      return {layer.weight_seconds, 0, on_links(layer.weight), {}, layer.scatter};
    default:
      return {layer.input_seconds + layer.weight_seconds, layer.replay_seconds,
              on_links(layer.input) + on_links(layer.weight), layer.gather_backward, layer.scatter};
  }
}

Traffic Times(Traffic traffic, double n) {
  traffic.seconds *= n;
  return traffic;
}

class PassPlayer {
 public:
  PassPlayer(double overlap_share, const PassVisitor* visit)
      : share_(overlap_share), visit_(visit) {}

  // n layers, gathered `unit` at a time.
  void Play(std::size_t k, const LayerPass& pass, double n, double unit) {
    out_.replay += n * pass.replay;
    out_.communicates += n * pass.communicates;
    out_.computes += n * (pass.seconds - pass.communicates);
    const double lead = unit * pass.gather.seconds;
    double backlog = 0;
    if (!begun_) {
      out_.lead = Times(pass.gather, unit);
    } else {
      const double rest = std::max(0.0, tail_end_ - at_);
      backlog = std::min(lead, rest);
      at_ += std::max(lead, rest);
    }
    const double travels = pass.gather.seconds + pass.scatter.seconds;
    if (travels == 0 && backlog == 0 && visit_ == nullptr) {
      if (!begun_) out_.slack = n * pass.seconds;
      at_ += n * pass.seconds;
    } else {
      Blocks(k, pass, n, unit, backlog);
    }
    begun_ = true;
    if (pass.scatter.seconds > 0) {
      tail_end_ = at_ + last_ * pass.scatter.seconds;
      out_.tail = pass.scatter;
    }
  }

  PassShape Finish() {
    out_.body = at_;
    out_.tail.seconds = std::max(0.0, tail_end_ - at_);
    return out_;
  }

 private:
  void Blocks(std::size_t k, const LayerPass& pass, double n, double unit, double backlog) {
    const int units = std::max(1, static_cast<int>(std::ceil(n / unit - 1e-9)));
    const auto size = [&](int i) { return i + 1 < units ? unit : n - unit * (units - 1); };
    for (int i = 0; i < units; ++i) {
      const double cover = size(i) * pass.seconds;
      double travels = i == 0 ? backlog : size(i - 1) * pass.scatter.seconds;
      if (i + 1 < units) travels += size(i + 1) * pass.gather.seconds;
      if (!begun_ && i == 0) out_.slack = std::max(0.0, cover - travels);
      // Kernels of both share processors and memory: what hides slows down what hides it.
      const double slower = (1 - share_) * std::min(cover, travels);
      if (visit_ != nullptr) {
        const int whole = std::max(1, static_cast<int>(std::ceil(size(i) - 1e-9)));
        const double stretch = cover > 0 ? (cover + slower) / cover : 1;
        for (int layer = 0; layer < whole; ++layer) {
          visit_->block(k, static_cast<int>(std::lround(i * unit)) + layer, size(i) / whole,
                        at_ + layer * stretch * cover / whole, stretch);
        }
        double from = at_ + (i == 0 ? backlog : 0);
        const auto travel = [&](const Traffic& traffic, double layers) {
          const double seconds = layers * traffic.seconds;
          if (seconds > 0) visit_->traffic(traffic, from, from + seconds);
          from += seconds;
        };
        if (i + 1 < units) travel(pass.gather, size(i + 1));
        if (i > 0) travel(pass.scatter, size(i - 1));
      }
      at_ += std::max(cover, travels) + slower;
    }
    last_ = size(units - 1);
  }

  const double share_;
  const PassVisitor* visit_;
  PassShape out_;
  bool begun_ = false;
  double at_ = 0, tail_end_ = 0, last_ = 1;
};

}  // namespace

double LayersOfClass(const Composition& c, const Plan& plan, int stage, bool first, std::size_t k) {
  const std::size_t classes = c.form.classes.size();
  if (k == classes) return first ? 1 : 0;
  return c.splits[static_cast<std::size_t>(plan.split)]
      .counts[static_cast<std::size_t>(stage) * classes + k];
}

PassShape ShapeOfPass(const Composition& c, const Plan& plan, const RankPrices& prices, int stage,
                      bool first, WorkKind kind, const PassVisitor* visit) {
  PassPlayer player(c.overlap_share, visit);
  const std::size_t classes = c.form.classes.size();
  for (std::size_t i = 0; i <= classes; ++i) {
    const std::size_t k = kind == WorkKind::kF ? i : classes - i;
    const double n = LayersOfClass(c, plan, stage, first, k);
    if (n == 0) continue;
    LayerPass pass = PassOf(prices.layers[k], kind);
    // The classroom hides all of them under the whole micro-batch.
    if (c.rules.prefetch_hides_in_slot) pass.gather = pass.scatter = {};
    double unit = k < classes ? std::min<double>(c.form.classes[k].unit, n) : 1;
    const double pieces = prices.layers[k].pieces;
    if (pieces > 0) unit = std::min(n, std::max(unit, std::ceil(1 / pieces - 1e-9)));
    player.Play(k, pass, n, unit);
  }
  return player.Finish();
}

void EachPiece(const Composition& c, const Plan& plan, const Simulation& simulation,
               const SimulatedPass& pass, const std::function<void(const PieceSlice&)>& visit) {
  const RankPrices& prices = simulation.PricesOf(pass.rank);
  double begin = pass.compute, room = pass.end - pass.compute;
  const bool pair = pass.forward_stage >= 0 && pass.backward_stage >= 0;
  const auto play = [&](int stage, bool first, WorkKind kind, double seconds) {
    const PassShape whole = ShapeOfPass(c, plan, prices, stage, first, kind);
    // Straggling, jitter, or a schedule whose passes are equal by an accounting's rule.
    const double scale = whole.body > 0 ? seconds / whole.body : 0;
    PassVisitor visitor;
    visitor.block = [&](std::size_t k, int block, double layers, double start, double stretch) {
      const LayerPrices& layer = prices.layers[k];
      double at = begin + start * scale;
      const auto each = [&](const std::vector<Piece>& pieces) {
        for (const Piece& piece : pieces) {
          const double end = at + piece.seconds * layers * stretch * scale;
          if (end > at) visit({k, block, &piece, at, end});
          at = end;
        }
      };
      if (kind == WorkKind::kF) each(layer.forward);
      if (kind == WorkKind::kI || kind == WorkKind::kB) each(layer.input);
      if (kind == WorkKind::kW || kind == WorkKind::kB) each(layer.weight);
    };
    visitor.traffic = [&](const Traffic& traffic, double start, double end) {
      Piece piece;
      piece.stream = traffic.stream;
      piece.transfer = traffic.transfer;
      visit({c.form.classes.size() + 1, -1, &piece, begin + start * scale, begin + end * scale});
    };
    ShapeOfPass(c, plan, prices, stage, first, kind, &visitor);
    begin += seconds;
  };
  if (pair) {
    const double f =
        ShapeOfPass(c, plan, prices, pass.forward_stage, pass.work.chunk == 0, WorkKind::kF).body;
    const double b = ShapeOfPass(c, plan, prices, pass.backward_stage,
                                 pass.work.backward_chunk == 0, WorkKind::kB)
                         .body;
    const double share = f + b > 0 ? f / (f + b) : 0;
    play(pass.forward_stage, pass.work.chunk == 0, WorkKind::kF, share * room);
    play(pass.backward_stage, pass.work.backward_chunk == 0, WorkKind::kB, (1 - share) * room);
  } else if (pass.forward_stage >= 0) {
    play(pass.forward_stage, pass.work.chunk == 0, WorkKind::kF, room);
  } else {
    play(pass.backward_stage, pass.work.chunk == 0, pass.work.kind, room);
  }
}

}  // namespace shardlab
