#include "core/travel.h"

#include <algorithm>
#include <cmath>

#include "core/play_periods.h"

namespace shardlab {
namespace {

constexpr std::size_t kF = 0, kI = 1, kW = 2, kB = 3;  // as WorkKind

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

// The classes of a pass one after another, each in closed form.
class PassSum {
 public:
  explicit PassSum(double overlap_share) : share_(overlap_share) {}

  // n blocks of `cover` seconds that are gathered and reduced `unit` at a time.
  void Add(double cover, double gather, double scatter, double n, double unit) {
    const double lead = unit * gather;
    double backlog = 0;
    if (!begun_) {
      cost_.lead = lead;
    } else {
      // What the class before still reduces shares the link with the first gather of this one.
      const double rest = std::max(0.0, tail_end_ - at_);
      backlog = std::min(lead, rest);
      at_ += std::max(lead, rest);
    }
    double last = unit;
    if (gather + scatter + backlog == 0) {
      if (!begun_) cost_.slack = n * cover;
      at_ += n * cover;
    } else {
      const double units = std::max(1.0, std::ceil(n / unit - 1e-9));
      last = n - unit * (units - 1);
      const double after_first = units == 1 ? 0 : (units == 2 ? last : unit) * gather;
      const double first_cover = (units == 1 ? last : unit) * cover;
      if (!begun_) cost_.slack = std::max(0.0, first_cover - backlog - after_first);
      at_ += Block(first_cover, backlog + after_first);
      if (units > 3) at_ += (units - 3) * Block(unit * cover, unit * (scatter + gather));
      if (units > 2) at_ += Block(unit * cover, unit * scatter + last * gather);
      if (units > 1) at_ += Block(last * cover, unit * scatter);
    }
    begun_ = true;
    if (scatter > 0) tail_end_ = at_ + last * scatter;
  }

  PassCost Finish() {
    cost_.body = at_;
    cost_.tail = std::max(0.0, tail_end_ - at_);
    return cost_;
  }

 private:
  // Kernels of both share processors and memory: what hides slows down what hides it.
  double Block(double cover, double travels) const {
    return std::max(cover, travels) + (1 - share_) * std::min(cover, travels);
  }

  const double share_;
  PassCost cost_;
  bool begun_ = false;
  double at_ = 0, tail_end_ = 0;
};

// `hidden`: what an overlapped pair is shorter than its parts, taken from its backward pass.
void Play(const PassCost& pass, PlayingRank& rank, double* at, double hidden = 0) {
  const double rest = std::max(0.0, rank.tail_end - *at);
  const double backlog = std::max(0.0, std::min(pass.lead, rest) - pass.slack);
  *at += std::max(pass.lead, rest) + pass.body + backlog - hidden;
  if (pass.tail > 0) rank.tail_end = *at + pass.tail;
}

class TravelPlayer {
 public:
  TravelPlayer(const CompiledOrder& order, double hop, absl::Span<const double> hidden,
               Workspace& w)
      : order_(order), lag_{0, hop}, hidden_(hidden), w_(w), ranks_(Size(order.shape.ranks)) {}

  void Run() {
    for (const std::int32_t first : order_.first) w_.ends[static_cast<std::size_t>(first)] = 0;
    PlayPeriods(
        order_, w_.ends.data(), [this](std::size_t from, std::size_t to) { Range(from, to); },
        [this] { Remember(); },
        [this](double seconds, double periods) { Later(seconds, periods); });
  }

 private:
  void Range(std::size_t from, std::size_t to) {
    const std::size_t zero = order_.ZeroCost();
    double* const ends = w_.ends.data();
    for (std::size_t i = from; i < to; ++i) {
      const CompiledOrder::Event& e = order_.events[i];
      PlayingRank& rank = w_.playing[e.rank];
      const double start = std::max(rank.free, ends[e.waits] + lag_[e.hop]);
      double at = start;
      if (e.cost < zero) {
        Play(w_.passes[e.cost], rank, &at);
      } else if (e.cost > zero) {
        const std::pair<int, int>& pair = order_.pairs[e.cost - zero - 1];
        Play(w_.passes[Size(pair.first) * 4 + kF], rank, &at);
        Play(w_.passes[Size(pair.second) * 4 + kB], rank, &at,
             hidden_.empty() ? 0 : hidden_[e.cost - zero - 1]);
      }
      rank.busy += at - start;
      rank.free = ends[i] = at;
    }
  }

  void Remember() {
    for (std::size_t r = 0; r < ranks_; ++r) {
      w_.playing[r].busy_before = w_.playing[r].busy;
      w_.playing[r].free_before = w_.playing[r].free;
    }
  }

  // So many periods are skipped. Ranks that did nothing in the last one have not begun or are done.
  void Later(double seconds, double periods) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      PlayingRank& rank = w_.playing[r];
      if (rank.free == rank.free_before) continue;
      rank.free += seconds;
      rank.tail_end += seconds;
      rank.busy += periods * (rank.busy - rank.busy_before);
    }
  }

  const CompiledOrder& order_;
  const double lag_[2];
  const absl::Span<const double> hidden_;
  Workspace& w_;
  const std::size_t ranks_;
};

// Gradient accumulation: the second micro-batch begins behind the first one's reductions, all
// others as the second.
void PlayAlone(const Plan& plan, Workspace& w) {
  PlayingRank& rank = w.playing[0];
  double before = 0;
  for (int m = 0; m < std::min(2, plan.micro_batches); ++m) {
    before = rank.free;
    for (int chunk = 0; chunk < plan.chunks; ++chunk)
      Play(w.passes[Size(chunk) * 4 + kF], rank, &rank.free);
    for (int chunk = plan.chunks - 1; chunk >= 0; --chunk)
      Play(w.passes[Size(chunk) * 4 + kB], rank, &rank.free);
  }
  const double more = std::max(0, plan.micro_batches - 2) * (rank.free - before);
  rank.free += more;
  rank.tail_end += more;
  rank.busy = rank.free;
}

}  // namespace

bool Travels(const Composition& c, const Workspace& w) noexcept {
  if (c.rules.prefetch_hides_in_slot) return false;
  for (const ClassCosts& cost : w.costs) {
    if (cost.gather_forward + cost.gather_backward + cost.scatter > 0) return true;
  }
  return false;
}

void FillPasses(const Composition& c, const Plan& plan, int stage, bool first,
                Workspace& w) noexcept {
  PassSum passes[4] = {PassSum(c.overlap_share), PassSum(c.overlap_share), PassSum(c.overlap_share),
                       PassSum(c.overlap_share)};
  const std::size_t classes = c.form.classes.size();
  const auto add = [&](std::size_t k, bool forward) {
    const double n = k < classes ? LayersOn(c, plan, stage, k) : first ? 1 : 0;
    if (n == 0) return;
    const ClassCosts& cost = w.costs[k];
    double unit = k < classes ? std::min<double>(c.form.classes[k].unit, n) : 1;
    // Layers whose gradients wait until they fill a bucket.
    if (c.form.buckets && cost.pieces > 0)
      unit = std::min(n, std::max(unit, std::ceil(1 / cost.pieces - 1e-9)));
    if (forward) {
      passes[kF].Add(cost.slot_forward, cost.gather_forward, 0, n, unit);
      return;
    }
    // Input gradients need the weights; weight gradients are what is reduced.
    const double weights = cost.seconds[static_cast<std::size_t>(Bucket::kWeightGradient)];
    const double inputs = cost.slot_backward - weights;
    passes[kI].Add(inputs, cost.gather_backward, 0, n, unit);
    passes[kW].Add(weights, 0, cost.scatter, n, unit);
    passes[kB].Add(cost.slot_backward, cost.gather_backward, cost.scatter, n, unit);
  };
  for (std::size_t k = 0; k <= classes; ++k) add(k, true);
  for (std::size_t k = classes + 1; k-- > 0;) add(k, false);
  for (std::size_t kind = 0; kind < 4; ++kind)
    w.passes[Size(stage) * 4 + kind] = passes[kind].Finish();
}

double PlayTravelling(const Plan& plan, const CompiledOrder* order, double hop, Workspace& w,
                      absl::Span<const double> hidden) noexcept {
  for (int r = 0; r < plan.pipeline; ++r) w.playing[Size(r)] = {};
  if (order == nullptr) {
    PlayAlone(plan, w);
  } else {
    TravelPlayer(*order, hop, hidden, w).Run();
  }
  double latest = 0;
  for (int r = 0; r < plan.pipeline; ++r) {
    w.finish[Size(r)] = w.playing[Size(r)].free;
    latest = std::max(latest, w.finish[Size(r)]);
  }
  return latest;
}

}  // namespace shardlab
