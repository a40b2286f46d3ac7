#include "core/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/simulate_memory.h"
#include "core/simulate_pass.h"

namespace shardlab {
namespace {

constexpr std::size_t kF = 0, kI = 1, kW = 2, kB = 3;  // as WorkKind

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// The same number for the same seed, rank and pass, whatever is played before it.
double Normal(std::uint64_t seed, std::uint64_t rank, std::uint64_t pass) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + rank * 0xbf58476d1ce4e5b9u + pass;
  const auto uniform = [&state] {  // splitmix64, Vigna 2015
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  };
  double sum = -6;  // of twelve: variance 1, and never below -6
  for (int i = 0; i < 12; ++i) sum += uniform();
  return sum;
}

class Player {
 public:
  Player(const Composition& c, const Plan& plan, const CompiledOrder* order,
         const SimulateOptions& options)
      : c_(c),
        plan_(plan),
        order_(order),
        options_(options),
        spans_(c.edited.mesh, c.hardware->machine().tiers),
        ranks_(Size(plan.pipeline)) {
    spans_.Set(plan);
  }

  Simulation Run() {
    const int distinct = spans_.Uniform() ? 1 : plan_.pipeline;
    for (int r = 0; r < distinct; ++r)
      out_.prices.push_back(PriceRank(c_, plan_, r, spans_, order_));
    out_.ranks.resize(ranks_);
    out_.contention = options_.contention;
    state_.resize(ranks_);
    if (plan_.pipeline > 1) {
      out_.send_tier = StreamOf(spans_.PipelineHop());
      if (c_.exposed_transfers) out_.hop = MessageSeconds(c_, spans_, out_.prices[0].boundary);
    }
    ShapeStages();
    for (int r = 0; r < plan_.pipeline; ++r)
      holds_.push_back(HoldingsOf(c_, plan_, r, out_.PricesOf(r), order_));
    if (order_ == nullptr) {
      PlayAlone();
    } else {
      PlayOrdered();
    }
    EndStep();
    SumUp();
    return std::move(out_);
  }

 private:
  struct State {
    double free = 0, first = -1, passes = 0;  // when it can go on; its first start; seconds busy
    double tail_end = 0;
    std::map<int, double> sent;   // [receiving rank] when the channel there is free
    std::vector<int> left;        // [chunk] backward passes to do
    double bucket_end = 0;        // of what trails the last backward passes
    double late = 0, blocks = 0;  // seconds of it, blocks of the rank
    int chunks_left = 0;
    std::uint64_t count = 0;
  };

  int StageOf(int rank, int chunk) const {
    const std::size_t slot = Size(rank * plan_.chunks + chunk);
    return order_ == nullptr ? static_cast<int>(slot) : order_->stage_of[slot];
  }
  double Factor(int rank) const {
    return options_.factors.empty() ? 1 : options_.factors[Size(rank)];
  }

  // Each chunk's passes, and what it reduces at the end of the step.
  void ShapeStages() {
    const std::size_t slots = ranks_ * Size(plan_.chunks);
    shapes_.resize(slots * 4);
    double prefetch = 0;
    for (int r = 0; r < plan_.pipeline; ++r) {
      State& state = state_[Size(r)];
      state.left.assign(Size(plan_.chunks), 0);
      state.chunks_left = plan_.chunks;
      for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
        const int stage = StageOf(r, chunk);
        const std::size_t at = Size(r * plan_.chunks + chunk) * 4;
        for (const WorkKind kind : {WorkKind::kF, WorkKind::kI, WorkKind::kW, WorkKind::kB}) {
          shapes_[at + Size(static_cast<int>(kind))] =
              ShapeOfPass(c_, plan_, out_.PricesOf(r), stage, chunk == 0, kind);
        }
        double gathers = 0;
        EachLayer(r, chunk, [&](const LayerPrices& layer, double n, bool block) {
          gathers += n * (layer.gather_forward.seconds + layer.gather_backward.seconds +
                          layer.scatter.seconds);
          state.late += n * layer.step_late.seconds;
          state.blocks += c_.form.buckets ? n * layer.pieces : block ? n : 0;
        });
        prefetch = std::max(prefetch, gathers);
      }
      out_.hides |= state.late > 0;
    }
    const bool hides_in_slot = c_.rules.prefetch_hides_in_slot && prefetch > 0;
    const bool even =
        plan_.pipeline > 1 && c_.rules.equal_passes &&
        c_.schedule->EqualSlots({plan_.pipeline, plan_.chunks, plan_.micro_batches}) < 0;
    out_.hides |= hides_in_slot;
    for (std::size_t at = 0; at < shapes_.size(); at += 4) {
      PassShape* const shape = &shapes_[at];
      out_.hides |=
          shape[kF].lead.seconds > 0 || shape[kB].lead.seconds > 0 || shape[kB].tail.seconds > 0;
      if (hides_in_slot) {
        // The longer of a micro-batch's own work and all that is gathered and reduced for it.
        const double shown = std::max(0.0, prefetch - shape[kF].body - shape[kB].body);
        shape[kB].body += shown;
        shape[kI].body += shown;
      }
      if (!even) continue;
      const double third = (shape[kF].body + shape[kB].body) / 3;
      for (const std::size_t kind : {kF, kI, kW}) shape[kind].body = third;
      shape[kB].body = 2 * third;
    }
  }

  template <class Visitor>
  void EachLayer(int rank, int chunk, Visitor visit) const {
    const RankPrices& prices = out_.PricesOf(rank);
    const std::size_t classes = c_.form.classes.size();
    for (std::size_t k = 0; k <= classes; ++k) {
      const double n = LayersOfClass(c_, plan_, StageOf(rank, chunk), chunk == 0, k);
      const bool block = k < classes && c_.form.classes[k].position == StagePosition::kLayer;
      if (n > 0) visit(prices.layers[k], n, block);
    }
  }

  const PassShape& Shape(int rank, int chunk, std::size_t kind) const {
    return shapes_[Size(rank * plan_.chunks + chunk) * 4 + kind];
  }

  // Gradient accumulation: all of a micro-batch, then the next.
  void PlayAlone() {
    state_[0].left.assign(Size(plan_.chunks), plan_.micro_batches);
    for (int m = 0; m < plan_.micro_batches; ++m) {
      for (int chunk = 0; chunk < plan_.chunks; ++chunk)
        Play(0, {WorkKind::kF, static_cast<std::int16_t>(chunk), m}, 0);
      for (int chunk = plan_.chunks - 1; chunk >= 0; --chunk)
        Play(0, {WorkKind::kB, static_cast<std::int16_t>(chunk), m}, 0);
    }
  }

  void PlayOrdered() {
    const CompiledOrder& order = *order_;
    for (std::size_t i = 0; i < order.works.size(); ++i) {
      if (order.OnlyWaits(order.events[i])) continue;
      std::vector<int>& left = state_[order.events[i].rank].left;
      const Work& work = order.works[i];
      if (work.kind == WorkKind::kFB) ++left[Size(work.backward_chunk)];
      if (work.kind == WorkKind::kB || work.kind == WorkKind::kW) ++left[Size(work.chunk)];
    }
    const std::vector<std::vector<std::uint32_t>> receivers = Receivers(order);
    std::vector<std::vector<std::int32_t>> waiting(ranks_);  // messages of the next pass
    std::vector<double> arrival(ranks_, 0);
    std::vector<std::int32_t> message_of(order.events.size(), -1);  // that an event waits for
    for (std::size_t i = 0; i < order.events.size(); ++i) {
      const CompiledOrder::Event& event = order.events[i];
      const std::size_t r = event.rank;
      if (message_of[i] >= 0) {
        waiting[r].push_back(message_of[i]);
        arrival[r] = std::max(arrival[r], out_.messages[Size(message_of[i])].end);
      }
      if (order.OnlyWaits(event)) continue;
      const auto pass = static_cast<std::int32_t>(out_.passes.size());
      Play(static_cast<int>(r), order.works[i], arrival[r]);
      for (const std::int32_t message : waiting[r]) out_.messages[Size(message)].to = pass;
      waiting[r].clear();
      arrival[r] = 0;
      for (const std::uint32_t to : receivers[i]) {
        message_of[to] = static_cast<std::int32_t>(out_.messages.size());
        Send(pass, to);
      }
    }
  }

  // Of each event those on other ranks that wait for what it makes.
  static std::vector<std::vector<std::uint32_t>> Receivers(const CompiledOrder& order) {
    std::vector<std::vector<std::uint32_t>> receivers(order.events.size());
    for (std::size_t i = 0; i < order.events.size(); ++i) {
      if (order.events[i].hop != 0)
        receivers[order.events[i].waits].push_back(static_cast<std::uint32_t>(i));
    }
    return receivers;
  }

  // A message leaves when its pass ends. Where ports are shared it waits for the one before it to
  // the same rank, and is slower while reductions use the same link; so are these.
  void Send(std::int32_t from, std::size_t to) {
    const SimulatedPass& pass = out_.passes[Size(from)];
    State& sender = state_[Size(pass.rank)];
    double start = pass.end, seconds = out_.hop;
    if (options_.contention && seconds > 0) {
      double& free = sender.sent[order_->events[to].rank];
      start = std::max(start, free);
      const double shared = std::clamp(pass.tail - start, 0.0, seconds);
      seconds += shared;
      // Unless the rank has gone on and waited for it.
      if (sender.tail_end == pass.tail) sender.tail_end += shared;
      free = start + seconds;
      out_.contention_seconds += start + seconds - pass.end - out_.hop;
    }
    out_.messages.push_back({from, -1, Forward(pass, to), start, start + seconds});
  }

  // Whether event `to` of the order waits for the pass's activations, else for gradients. Where a
  // pair waits for both, an event that only waits takes the activations.
  bool Forward(const SimulatedPass& pass, std::size_t to) const {
    const CompiledOrder::Event& event = order_->events[to];
    const Work& awaiting = order_->works[to];
    if (awaiting.kind == WorkKind::kF || order_->OnlyWaits(event)) return true;
    if (awaiting.kind != WorkKind::kFB || order_->OnlyWaits(order_->events[event.before]))
      return false;
    return pass.forward_stage >= 0 && pass.work.micro_batch == awaiting.micro_batch &&
           pass.forward_stage + 1 == StageOf(event.rank, awaiting.chunk);
  }

  // Of a pair each half's collectives travel while the other computes; what hides slows down what
  // hides it.
  double HiddenIn(int rank, const Work& work) const {
    if (work.kind != WorkKind::kFB || !c_.rules.pairs_overlap) return 0;
    const PassShape& f = Shape(rank, work.chunk, kF);
    const PassShape& b = Shape(rank, work.backward_chunk, kB);
    return c_.overlap_share *
           (std::min(f.communicates, b.computes) + std::min(b.communicates, f.computes));
  }

  void Play(int rank, const Work& work, double arrival) {
    State& state = state_[Size(rank)];
    const bool pair = work.kind == WorkKind::kFB;
    SimulatedPass pass;
    pass.rank = rank;
    pass.work = work;
    pass.start = std::max(state.free, arrival);
    pass.scale = Factor(rank);
    if (options_.jitter > 0) {
      const double noise =
          options_.jitter * Normal(options_.seed, static_cast<std::uint64_t>(rank), state.count);
      pass.scale *= std::max(0.1, 1 + noise);
    }
    ++state.count;
    double at = pass.start;
    const auto play = [&](int chunk, std::size_t kind, double hidden) {
      const PassShape& shape = Shape(rank, chunk, kind);
      const double begin = Begin(rank, shape, at);
      if (at == pass.start) pass.compute = begin;
      pass.replay += shape.replay * pass.scale;
      at = begin + shape.body * pass.scale + backlog_ - hidden;
      if (shape.tail.seconds > 0) {
        state.tail_end = at + shape.tail.seconds;
        if (shape.tail.stream == out_.send_tier) pass.tail = state.tail_end;
        out_.traffic.push_back({rank, SimulatedTraffic::Kind::kReduce, shape.tail.stream,
                                shape.tail.transfer, at, state.tail_end});
      }
    };
    if (pair || work.kind == WorkKind::kF) {
      pass.forward_stage = StageOf(rank, work.chunk);
      play(work.chunk, kF, 0);
    }
    if (pair || work.kind != WorkKind::kF) {
      const int chunk = pair ? work.backward_chunk : work.chunk;
      pass.backward_stage = StageOf(rank, chunk);
      play(chunk, pair ? kB : Size(static_cast<int>(work.kind)), HiddenIn(rank, work) * pass.scale);
    }
    if (pass.compute < pass.start) pass.compute = pass.start;
    pass.end = at;
    state.free = at;
    if (options_.blocking_sends && Sends(pass)) state.free += out_.hop;
    state.passes += pass.end - pass.start;
    if (state.first < 0) state.first = pass.start;
    out_.passes.push_back(pass);
    if (work.kind != WorkKind::kF && work.kind != WorkKind::kI)
      LastBackward(rank, pair ? work.backward_chunk : work.chunk, pass);
  }

  // When its first block can begin: gathered, and what trailed the pass before has gone through.
  // Sets what of the two shared the link and is made up for under the first block.
  double Begin(int rank, const PassShape& shape, double at) {
    State& state = state_[Size(rank)];
    const double rest = std::max(0.0, state.tail_end - at);
    const double lead = shape.lead.seconds;
    backlog_ = std::max(0.0, std::min(lead, rest) - shape.slack);
    if (lead > 0) {
      out_.traffic.push_back({rank, SimulatedTraffic::Kind::kGather, shape.lead.stream,
                              shape.lead.transfer, at, at + lead});
    }
    return at + std::max(lead, rest);
  }

  bool Sends(const SimulatedPass& pass) const {
    const int stages = order_ == nullptr ? 1 : order_->stages;
    const bool forward = pass.forward_stage >= 0 && pass.forward_stage + 1 < stages;
    return forward || (pass.backward_stage > 0 && pass.work.kind != WorkKind::kW);
  }

  // Gradients are reduced in buckets of equal size, piece by piece while the last backward passes
  // make them; the last bucket is full when the last of them ends.
  void LastBackward(int rank, int chunk, const SimulatedPass& pass) {
    State& state = state_[Size(rank)];
    if (--state.left[Size(chunk)] > 0) return;
    --state.chunks_left;
    if (state.late == 0) return;
    Traffic late;
    EachLayer(rank, chunk, [&](const LayerPrices& layer, double n, bool) {
      late.Add(n * layer.step_late.seconds, layer.step_late.stream, layer.step_late.transfer);
    });
    const bool last = state.chunks_left == 0;
    const double bucket = state.late / std::max(1.0, state.blocks);
    // What of it has to wait for the end of the last pass.
    const double waits = last ? std::min(bucket, late.seconds) : 0;
    const auto send = [&](double from, double seconds) {
      if (seconds <= 0) return;
      const double start = std::max(from, state.bucket_end);
      state.bucket_end = start + seconds;
      out_.traffic.push_back({rank, SimulatedTraffic::Kind::kBucket, late.stream, late.transfer,
                              start, state.bucket_end});
    };
    send(pass.start, late.seconds - waits);
    if (last) send(pass.end, waits);
  }

  // Behind the last pass: reductions, sums over ranks that hold the same stage, the optimizer.
  void EndStep() {
    for (const State& state : state_) out_.pipeline = std::max(out_.pipeline, state.free);
    for (int r = 0; r < plan_.pipeline; ++r) {
      State& state = state_[Size(r)];
      SimulatedRank& rank = out_.ranks[Size(r)];
      rank.finish = state.free;
      const double behind = std::max(0.0, state.bucket_end - state.free);
      // What hides slows down the pass that hides it.
      const double shown = std::max(behind, state.tail_end - state.free) +
                           (1 - c_.overlap_share) * std::max(0.0, state.late - behind);
      const double barrier = c_.rules.reductions_after_pipeline ? out_.pipeline - state.free : 0;
      double at = state.free + barrier + shown;
      Traffic now;
      for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
        EachLayer(r, chunk, [&](const LayerPrices& layer, double n, bool) {
          now.Add(n * layer.step_now.seconds, layer.step_now.stream, layer.step_now.transfer);
        });
      }
      const auto add = [&](SimulatedTraffic::Kind kind, const Traffic& traffic) {
        if (traffic.seconds <= 0) return;
        out_.traffic.push_back(
            {r, kind, traffic.stream, traffic.transfer, at, at + traffic.seconds});
        at += traffic.seconds;
      };
      add(SimulatedTraffic::Kind::kReduction, now);
      Traffic copies;
      copies.Add(CopiesSeconds(r), out_.send_tier, -1);
      add(SimulatedTraffic::Kind::kCopies, copies);
      Traffic update;
      update.Add(UpdateStep(c_, holds_[Size(r)]) * Factor(r), Stream::kCompute, -1);
      add(SimulatedTraffic::Kind::kOptimizer, update);
      rank.end = at;
      rank.busy = state.passes + (at - state.free - barrier);
    }
  }

  // Ranks that hold the same stage add up their gradients.
  double CopiesSeconds(int rank) const {
    if (order_ == nullptr || order_->copies == 1 || !c_.exposed_transfers) return 0;
    Span span = spans_.PipelineHop();
    const bool together = span.domains[0] == 1;
    span.size = order_->copies;
    for (std::size_t tier = 0; tier < span.ranks.size(); ++tier) {
      if (span.ranks[tier] > 1) span.ranks[tier] = order_->copies;
      if (!together && span.domains[tier] > 1) span.domains[tier] = order_->copies;
    }
    const double bytes = holds_[Size(rank)].fixed[static_cast<std::size_t>(Account::kGradients)];
    return c_.network->TransferTime({Collective::kAllReduce, Bytes(bytes)}, span).value();
  }

  void SumUp() {
    std::vector<std::vector<const SimulatedPass*>> of_rank(ranks_);
    for (const SimulatedPass& pass : out_.passes) of_rank[Size(pass.rank)].push_back(&pass);
    for (const SimulatedRank& rank : out_.ranks) out_.makespan = std::max(out_.makespan, rank.end);
    double idle = 0, peak = -1;
    for (std::size_t r = 0; r < ranks_; ++r) {
      SimulatedRank& rank = out_.ranks[r];
      // Sums of many terms: what is left of them is rounding, not idleness.
      const auto clean = [&](double s) { return s > 1e-12 * out_.makespan ? s : 0; };
      rank.idle = clean(out_.makespan - rank.busy);
      rank.own_bubble = clean(rank.finish - std::max(0.0, state_[r].first) - state_[r].passes);
      idle += rank.idle;
      TrackMemory(c_, holds_[r], of_rank[r], &rank);
      if (rank.peak > peak) {
        peak = rank.peak;
        out_.peak_rank = static_cast<int>(r);
      }
    }
    if (out_.makespan > 0)
      out_.bubble_fraction = idle / out_.makespan / static_cast<double>(ranks_);
  }

  const Composition& c_;
  const Plan& plan_;
  const CompiledOrder* const order_;
  const SimulateOptions& options_;
  SpanTable spans_;
  const std::size_t ranks_;
  std::vector<PassShape> shapes_;  // [rank x chunks + chunk][kind]
  std::vector<State> state_;
  std::vector<RankHoldings> holds_;
  double backlog_ = 0;
  Simulation out_;
};

}  // namespace

const char* Name(SimulatedTraffic::Kind kind) {
  constexpr const char* kNames[] = {"gather",    "reduce", "bucket",
                                    "reduction", "copies", "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

Simulation Simulate(const Composition& c, const Plan& plan, const CompiledOrder* order,
                    const SimulateOptions& options) {
  return Player(c, plan, order, options).Run();
}

}  // namespace shardlab
