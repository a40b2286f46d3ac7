#include "core/explain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/explain_times.h"
#include "core/explain_transfers.h"
#include "core/explain_words.h"
#include "core/saved_width.h"
#include "core/summarize.h"

namespace shardlab {
namespace {

class Explainer final : ExplainWords {
 public:
  explicit Explainer(const ExplainInput& input)
      : ExplainWords(input), transfers_(input), times_(input) {}

  Explanation Run(int transfer_rank) {
    const Summary summary = Summarize(c_, plan_, order_, w_);
    out_.evaluation = summary.evaluation;
    out_.exposed_pipeline = summary.exposed_pipeline;
    out_.hidden_pipeline = summary.hidden_pipeline;
    out_.own_bubble = summary.own_bubble;
    out_.recompute_flops_share = summary.recompute_flops_share;
    for (int r = 0; r < plan_.pipeline; ++r) {
      ComputeCosts(c_, plan_, r, w_, true);
      out_.ranks.push_back(Rank(r));
    }
    out_.transfer_rank = transfer_rank < 0 ? out_.evaluation.worst_rank : transfer_rank;
    ComputeCosts(c_, plan_, out_.transfer_rank, w_, true);
    Transfers(out_.transfer_rank);
    ComputeCosts(c_, plan_, out_.evaluation.time_rank, w_, true);
    out_.times = times_.Of(out_.evaluation.time_rank, out_.evaluation.time.optimizer);
    return std::move(out_);
  }

 private:
  // --- memory
  // -----------------------------------------------------------------------------------------------

  RankExplanation Rank(int rank) {
    RankExplanation x;
    x.stages = StagesOf(rank);
    x.memory = w_.memory[Size(rank)];
    States(rank, x);
    Unsharded(x);
    Buffer(x);
    Spare(x);
    GradientBucket(x);
    Activations(rank, x);
    if (x.memory.state >= 0) WaitingGradients(rank, x);
    Machine(x);
    x.first = FirstPeaksOf(c_, plan_, w_, x.memory, [this, rank](std::size_t layer_class) {
      return LayersOnRank(rank, layer_class);
    });
    return x;
  }

  void States(int rank, RankExplanation& x) {
    const StateRow* largest = nullptr;
    double gathered = 0;
    std::vector<double> gathered_of(c_.form.classes.size(), 0);
    for (const StateRow& row : c_.form.state) {
      const double n = LayersOnRank(rank, row.layer_class);
      if (n == 0) continue;
      const Tensor& w = program_.tensor(row.tensor);
      if (row.account == Account::kTransient) continue;
      if (row.account == Account::kGathered) {
        if ((w_.degrees[row.when] <= 1 && row.when != 0) || !c_.rules.count_gathered) continue;
        if (row.kept) {
          x.entries.push_back(GatheredAndKept(row, n));
          continue;
        }
        gathered_of[row.layer_class] += w_.blocks[row.block];
        const double together = GatheredLayers(x, row.layer_class) * gathered_of[row.layer_class];
        if (together > gathered) {
          gathered = together;
          largest = &row;
        }
        continue;
      }
      MemoryEntry entry;
      entry.account = row.account;
      entry.bytes = n * w_.blocks[row.block];
      if (row.host) entry.account = Account::kHost;
      const Placement* at = &w.home;
      double width = BytesOf(c_.precision, DtypeSlot::kParameters);
      if (row.account == Account::kGradients) {
        at = row.host && !w.gradient_on_host ? &w.state : &w.gradient;
        width = BytesOf(c_.precision, DtypeSlot::kGradients);
        entry.row = absl::StrCat(w.name, " gradients");
        entry.source = absl::StrCat("precision ", c_.precision.recipe, ": gradients ",
                                    Name(c_.precision.gradients));
      } else if (row.account == Account::kOptimizer) {
        const OptimizerState& state = c_.states.table[Size(row.state)];
        at = &w.state;
        width = BytesPerElement(state.dtype) * state.per_parameter;
        entry.row = absl::StrCat(w.name, " ", state.name);
        entry.source = absl::StrCat(c_.optimizer_name, ": ", c_.optimizer->source());
      } else if (row.copy) {
        at = &w.use;
        width = c_.precision.weight_copies;
        entry.row = absl::StrCat(w.name, " copies");
        entry.source = absl::StrCat("precision ", c_.precision.recipe, ": copies in ",
                                    Name(c_.precision.compute), " beside the weights");
      } else {
        if (row.host && !w.home_on_host) at = &w.state;
        entry.row = absl::StrCat(w.name, " weights");
        entry.source = absl::StrCat("precision ", c_.precision.recipe, ": parameters ",
                                    Name(c_.precision.parameters));
      }
      const bool copy = row.host && ((row.account == Account::kParameters && !w.home_on_host) ||
                                     (row.account == Account::kGradients && !w.gradient_on_host));
      if (copy) entry.row += " (pinned copy)";
      if (row.layer_class != w.layer_class.index()) entry.row += ", last rank's copy";
      const bool sharded = at->Flat() != 0 && w.state_author >= 0;
      entry.author = sharded ? Author(w.state_author) : CutAuthor(w, *at);
      entry.formula = absl::StrCat(LayersText(n), SizeText(w, *at), " x ", ShortNumber(width), " B",
                                   FlatText(*at));
      x.entries.push_back(std::move(entry));
    }
    if (largest == nullptr || !c_.rules.count_gathered) return;
    MemoryEntry entry;
    entry.account = Account::kGathered;
    entry.author = Author(program_.tensor(largest->tensor).state_author);
    entry.row = absl::StrCat("gathered weights of ", program_.classes[largest->layer_class].name);
    entry.formula = absl::StrCat(ShortNumber(GatheredLayers(x, largest->layer_class)), " blocks x ",
                                 ShortNumber(gathered_of[largest->layer_class]), " B");
    entry.source =
        absl::StrCat("in use, and gathered ahead: ", c_.form.classes[largest->layer_class].ahead);
    entry.bytes = gathered;
    x.entries.push_back(std::move(entry));
  }

  // Gradients of the class whose unit has the most, whole, and the copy of them that is reduced.
  void Unsharded(RankExplanation& x) {
    if (!c_.rules.count_gathered) return;
    std::size_t worst = 0;
    double most = 0, layers = 0;
    for (std::size_t k = 0; k < c_.form.classes.size(); ++k) {
      const double together = UnitLayers(x, k);
      const double bytes =
          together * w_.costs[k].bytes[Size(static_cast<int>(Account::kTransient))];
      if (bytes <= most) continue;
      most = bytes;
      worst = k;
      layers = together;
    }
    if (most == 0) return;
    for (const bool bucket : {false, true}) {
      MemoryEntry entry;
      entry.account = Account::kTransient;
      double of_layer = 0;
      for (const StateRow& row : c_.form.state) {
        if (row.account != Account::kTransient || row.spare || row.layer_class != worst ||
            row.bucket != bucket || w_.degrees[row.when] <= 1)
          continue;
        of_layer += w_.blocks[row.block];
        entry.author = Author(program_.tensor(row.tensor).state_author);
      }
      if (entry.author.empty()) continue;  // no such rows
      entry.row = absl::StrCat(bucket ? "bucket of gradients of " : "whole gradients of ",
                               program_.classes[worst].name);
      entry.formula = absl::StrCat(LayersText(layers), ShortNumber(of_layer), " B");
      entry.source =
          absl::StrCat(bucket ? "copied to what is reduced, in "
                              : "before they are scattered, in the dtype of the weights in use, ",
                       Name(bucket ? c_.precision.gradient_reduce : c_.precision.compute),
                       ": PyTorch FSDP2, foreach_reduce");
      entry.bytes = layers * of_layer;
      x.entries.push_back(std::move(entry));
    }
  }

  // The largest of what an op needs gathered and nobody keeps.
  void Buffer(RankExplanation& x) {
    if (!c_.rules.count_gathered) return;
    MemoryEntry entry;
    for (const BufferRow& row : c_.form.buffers) {
      if (UnitLayers(x, row.layer_class) == 0) continue;
      double bytes = 0;
      for (const BufferRow::Part& part : row.parts)
        bytes += w_.degrees[part.when] > 1 ? w_.blocks[part.block] : 0;
      if (bytes <= entry.bytes) continue;
      const Step& step = c_.edited.derived.steps[Size(row.step)];
      entry.account = Account::kTransient;
      entry.author = Author(step.author);
      const bool gradient = step.source.gradient, pieces = step.hide == HideBehind::kOp;
      entry.row = absl::StrCat(program_.tensor(step.source.tensor).name,
                               gradient ? " gradient gathered" : " gathered");
      entry.formula =
          absl::StrCat(row.parts.size() > 1 ? absl::StrCat(row.parts.size(), " tensors, ") : "",
                       pieces ? "2 pieces of " : "",
                       SizeText(program_.tensor(step.target.tensor), step.target.at),
                       pieces ? absl::StrCat(" / ", plan_.Size(step.group)) : "");
      entry.source =
          absl::StrCat(Name(step.phase), ": the largest that is gathered for one op and not kept");
      entry.bytes = bytes;
    }
    if (entry.bytes > 0) x.entries.push_back(std::move(entry));
  }

  void Spare(RankExplanation& x) {
    if (!c_.form.spares || !c_.rules.count_gathered) return;
    for (std::size_t k = 0; k < c_.form.classes.size(); ++k) {
      const double bytes = w_.costs[k].bytes[kSpareSlot];
      double layers = 0;
      for (const int stage : x.stages) layers += LayersOn(c_, plan_, stage, k);
      if (bytes == 0 || layers == 0) continue;
      MemoryEntry entry;
      entry.account = Account::kTransient;
      entry.author = "software";
      entry.row = absl::StrCat("spare gradients of ", program_.classes[k].name);
      entry.formula = absl::StrCat("one of each matrix, ", ShortNumber(bytes), " B");
      entry.source =
          "products that accumulate their own weight gradients still hand one back: Transformer "
          "Engine 2.3, get_dummy_wgrad";
      entry.bytes = bytes;
      x.entries.push_back(std::move(entry));
    }
  }

  // What gradients are copied to, side by side, before they are reduced in one call.
  void GradientBucket(RankExplanation& x) {
    if (!c_.form.buckets || !c_.rules.count_gathered || w_.bucket_bytes == 0) return;
    for (const TransferRow& row : c_.form.transfers) {
      const TransferPrice& price = c_.form.transfer_prices[row.price];
      if (!price.copied || w_.degrees[price.mask] <= 1 ||
          CallBytes(c_, plan_, price, w_) < w_.bucket_bytes)
        continue;
      const Step& step = c_.edited.derived.steps[Size(row.step)];
      const Tensor& w = program_.tensor(step.source.tensor);
      const double width = price.bucket / w.bucket;
      MemoryEntry entry;
      entry.account = Account::kTransient;
      entry.author = Author(w.state_author);
      entry.row = "bucket of gradients";
      entry.formula = absl::StrCat(ShortNumber(w_.bucket_bytes / width), " elements x ",
                                   ShortNumber(width), " B");
      entry.source =
          "gradients are copied together and reduced in one call (DeepSpeed, "
          "reduce_bucket_size)";
      entry.bytes = w_.bucket_bytes;
      x.entries.push_back(std::move(entry));
      return;
    }
  }

  double UnitLayers(const RankExplanation& x, std::size_t layer_class) const {
    double together = 0;
    for (const int stage : x.stages) {
      together = std::max(together, std::min<double>(c_.form.classes[layer_class].unit,
                                                     LayersOn(c_, plan_, stage, layer_class)));
    }
    return together;
  }

  double GatheredLayers(const RankExplanation& x, std::size_t layer_class) const {
    return (1 + c_.form.classes[layer_class].ahead) * UnitLayers(x, layer_class);
  }

  MemoryEntry GatheredAndKept(const StateRow& row, double n) const {
    const Tensor& w = program_.tensor(row.tensor);
    MemoryEntry entry;
    entry.account = Account::kGathered;
    entry.author = Author(w.state_author);
    entry.row = absl::StrCat(w.name, " gathered");
    entry.formula = absl::StrCat(LayersText(n), SizeText(w, w.use), " x ",
                                 ShortNumber(BytesOf(c_.precision, DtypeSlot::kCompute)), " B");
    entry.source = "gathered in the forward pass and kept for the backward pass";
    entry.bytes = n * w_.blocks[row.block];
    return entry;
  }

  std::string CutAuthor(const Tensor& tensor, const Placement& at) const {
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if (at.at(a).cut() && plan_.atom[a] > 1 && tensor.author[a] >= 0)
        return Author(tensor.author[a]);
    }
    return Author(-1);
  }

  void Activations(int rank, RankExplanation& x) {
    const auto all = [](std::size_t) { return true; };
    std::size_t working = Working(x, all);
    const bool splits = x.memory.state >= 0;
    for (const SavedRow& row : c_.form.saved) {
      if (row.when != 0 && w_.degrees[row.when] <= 1) continue;
      const Form::ClassRow& layer = c_.form.classes[row.layer_class];
      double times = 0, layers_now = 0;
      std::string what;
      for (std::size_t chunk = 0; chunk < x.stages.size(); ++chunk) {
        const double n = LayersOn(c_, plan_, x.stages[chunk], row.layer_class);
        const double held = splits ? InState(rank, x, chunk, 0)
                            : order_ == nullptr
                                ? 1
                                : order_->in_flight[Size(rank * plan_.chunks) + chunk];
        if (n == 0) continue;
        switch (row.residency) {
          case Residency::kKept:
            times += held * n;
            what = absl::StrCat(ShortNumber(held), " in flight x ", LayersText(n));
            break;
          case Residency::kBoundary:
            times += held * std::ceil(n / layer.segment);
            what = absl::StrCat(ShortNumber(held), " in flight x ",
                                ShortNumber(std::ceil(n / layer.segment)), " segments x ");
            break;
          case Residency::kReplayed:
            if (splits) {
              const double pinned = InState(rank, x, chunk, 1);
              layers_now = row.of_inner_layers ? n - std::ceil(n / layer.segment) : n;
              if (pinned * layers_now > 0)
                what = absl::StrCat(ShortNumber(pinned), " kept for weight gradients x ",
                                    LayersText(layers_now));
              times += pinned * layers_now;
              const auto own = [chunk](std::size_t other) { return other == chunk; };
              if (InState(rank, x, chunk, 2) == 0 || row.layer_class != Working(x, own)) break;
              const double now =
                  std::min(n, static_cast<double>(layer.segment)) - (row.of_inner_layers ? 1 : 0);
              if (now > 0 && times == 0)
                what = absl::StrCat("one segment replayed, ", LayersText(now));
              times += now;
              break;
            }
            layers_now =
                std::min(n, static_cast<double>(layer.segment)) - (row.of_inner_layers ? 1 : 0);
            times = std::max(times, layers_now);
            what = absl::StrCat("one segment replayed, ", LayersText(layers_now));
            break;
        }
      }
      const bool one = row.residency == Residency::kReplayed && !splits;
      if (times == 0 || (one && row.layer_class != working)) continue;
      const Tensor& tensor = program_.tensor(row.tensor);
      const Saved& saved = SavedOf(row);
      MemoryEntry entry;
      entry.account = Account::kActivations;
      entry.author = row.residency == Residency::kKept ? CutAuthor(tensor, saved.at)
                                                       : RecomputeAuthor(row.layer_class);
      entry.row = tensor.name;
      const SavedWidth width = SavedWidthOf(program_, c_.precision, c_.rules, saved);
      entry.formula =
          absl::StrCat(what, SizeText(tensor, saved.at), " x ", ShortNumber(width.bytes), " B");
      entry.source = absl::StrCat("kept for the backward pass of ", program_.op(saved.reader).name,
                                  width.number != nullptr ? "; " : "",
                                  width.number != nullptr ? width.number->source : "");
      entry.bytes = times * w_.blocks[row.block];
      x.entries.push_back(std::move(entry));
    }
  }

  // What weight gradients that wait need beyond all that was saved.
  void WaitingGradients(int rank, RankExplanation& x) const {
    for (std::size_t k = 0; k < c_.form.classes.size(); ++k) {
      const auto& slots = w_.costs[k].bytes;
      const Form::ClassRow& row = c_.form.classes[k];
      double bytes = 0;
      for (std::size_t chunk = 0; chunk < x.stages.size(); ++chunk) {
        const double n = LayersOn(c_, plan_, x.stages[chunk], k);
        if (n == 0) continue;
        const double segments = row.replays ? std::ceil(n / row.segment) : 0;
        const double inner = row.replays ? n - segments : 0;
        const double counted = n * (slots[kAccounts] + slots[kAccounts + 2]) +
                               segments * slots[kAccounts + 1] + inner * slots[kAccounts + 3];
        bytes += InState(rank, x, chunk, 1) * std::max(0.0, n * slots[kWaitingSlot] - counted);
      }
      if (bytes <= 0) continue;
      MemoryEntry entry;
      entry.account = Account::kActivations;
      entry.author = c_.schedule_name;
      entry.row = absl::StrCat(program_.classes[k].name, ": gradients that weight gradients need");
      entry.formula =
          "inputs of products with weights and gradients of their outputs, less all "
          "that was saved";
      entry.source = "Qi et al. 2023, arXiv 2401.10241, section 2";
      entry.bytes = bytes;
      x.entries.push_back(std::move(entry));
    }
  }

  // The class whose replayed segment is the largest of these chunks' is alive beside what is kept.
  template <class Which>
  std::size_t Working(const RankExplanation& x, Which which) const {
    std::size_t working = 0;
    double most = 0;
    for (std::size_t chunk = 0; chunk < x.stages.size(); ++chunk) {
      for (std::size_t k = 0; which(chunk) && k < c_.form.classes.size(); ++k) {
        const Form::ClassRow& row = c_.form.classes[k];
        const double n = LayersOn(c_, plan_, x.stages[chunk], k);
        const double together = std::min(n, row.replays ? row.segment : 1.0);
        if (together == 0) continue;
        const auto& slots = w_.costs[k].bytes;
        const double bytes =
            together * slots[kAccounts + 2] + (together - 1) * slots[kAccounts + 3];
        if (bytes <= most) continue;
        most = bytes;
        working = k;
      }
    }
    return working;
  }

  // As CompiledOrder's states: of the one in which the rank holds most.
  double InState(int rank, const RankExplanation& x, std::size_t chunk, std::size_t which) const {
    const std::size_t state = Size(x.memory.state) * 3 * Size(plan_.chunks);
    return order_->states[Size(rank)][state + 3 * chunk + which];
  }

  const Saved& SavedOf(const SavedRow& row) const {
    return c_.edited.derived.saved[static_cast<std::size_t>(&row - c_.form.saved.data())];
  }

  void Machine(RankExplanation& x) const {
    const shardlab::Machine& machine = c_.hardware->machine();
    const auto add = [&](Account account, const char* row, std::string formula) {
      const double bytes = x.memory.bytes[static_cast<std::size_t>(account)];
      if (bytes == 0) return;
      x.entries.push_back({account, machine.name, row, std::move(formula),
                           "the machine's constants; see provenance", bytes});
    };
    add(Account::kFragmentation, "reserved and not used",
        absl::StrCat(ShortNumber(machine.fragmentation), " x allocated bytes"));
    add(Account::kOutsideAllocator, "context and communication libraries",
        absl::StrCat(ShortNumber(machine.outside_allocator.value()), " B"));
  }

  // --- communication
  // ----------------------------------------------------------------------------------------

  void Transfers(int rank) {
    std::array<double, kAxisRoles> hideable{};
    std::vector<bool> hides, in_pass;
    for (const TransferRow& row : c_.form.transfers) {
      const TransferPrice& price = c_.form.transfer_prices[row.price];
      if (price.ends ? plan_.pipeline == 1
                     : w_.degrees[price.mask] <= 1 && price.collective != Collective::kHostCopy)
        continue;
      const double layers = row.per_layer ? LayersOnRank(rank, row.layer_class) : 1;
      if (layers == 0) continue;
      TransferEntry entry = transfers_.Transfer(row, layers);
      const bool overlapped = row.hide == HideBehind::kPrefetch ||
                              row.hide == HideBehind::kLastBackward || row.hide == HideBehind::kOp;
      if (row.hide == HideBehind::kIgnored || overlapped) entry.exposed_seconds = 0;
      if (row.hide == HideBehind::kShare) entry.exposed_seconds = (1 - row.share) * entry.seconds;
      if (overlapped) hideable[static_cast<std::size_t>(entry.role)] += entry.seconds;
      hides.push_back(overlapped);
      in_pass.push_back(row.hide == HideBehind::kNothing && row.when == When::kMicroBatch);
      out_.transfers.push_back(std::move(entry));
    }
    transfers_.HideInPairs(rank, in_pass, out_.transfers);
    // What overlaps is known in sum; each takes its share of it.
    for (std::size_t r = 0; r < kAxisRoles; ++r) {
      if (hideable[r] == 0) continue;
      double blocking = 0;
      const auto of_role = [&](std::size_t i) {
        return static_cast<std::size_t>(out_.transfers[i].role) == r;
      };
      for (std::size_t i = 0; i < out_.transfers.size(); ++i) {
        if (!hides[i] && of_role(i)) blocking += out_.transfers[i].exposed_seconds;
      }
      // Less than a billionth of the step is rounding.
      const double late = out_.evaluation.time.exposed[r] - blocking;
      const bool rounding = late < 1e-9 * out_.evaluation.step;
      const double share = rounding ? 0 : std::min(late / hideable[r], 1.0);
      for (std::size_t i = 0; i < out_.transfers.size(); ++i) {
        if (hides[i] && of_role(i))
          out_.transfers[i].exposed_seconds = share * out_.transfers[i].seconds;
      }
    }
    transfers_.Pipeline(rank, out_.exposed_pipeline, out_.transfers);
  }

  ExplainTransfers transfers_;
  ExplainTimes times_;
  Explanation out_;
};

}  // namespace

Explanation Explain(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                    int transfer_rank) {
  Workspace workspace(composition);
  workspace.Reserve(plan, order);
  return Explainer({composition, plan, order, workspace}).Run(transfer_rank);
}

}  // namespace shardlab
