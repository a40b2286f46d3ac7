#include "core/explain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/overlapped_pairs.h"
#include "core/saved_width.h"
#include "core/summarize.h"

namespace shardlab {
namespace {

std::size_t Size(int n) { return static_cast<std::size_t>(n); }

class Explainer {
 public:
  Explainer(const Composition& c, const Plan& plan, const CompiledOrder* order)
      : c_(c), program_(c.edited.program), plan_(plan), order_(order), w_(c) {
    w_.Reserve(plan, order);
  }

  Explanation Run(int transfer_rank) {
    const Summary summary = Summarize(c_, plan_, order_, w_);
    out_.evaluation = summary.evaluation;
    out_.exposed_pipeline = summary.exposed_pipeline;
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
    Times(out_.evaluation.time_rank);
    return std::move(out_);
  }

 private:
  std::vector<int> StagesOf(int rank) const {
    std::vector<int> stages;
    for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
      const std::size_t slot = Size(rank * plan_.chunks + chunk);
      stages.push_back(order_ == nullptr ? static_cast<int>(slot) : order_->stage_of[slot]);
    }
    return stages;
  }

  // Micro-batches that each stage of a rank sees.
  int Passes() const { return plan_.micro_batches / w_.copies; }

  double LayersOnRank(int rank, std::size_t layer_class) const {
    double n = 0;
    for (const int stage : StagesOf(rank)) n += LayersOn(c_, plan_, stage, layer_class);
    return n;
  }

  std::string Author(std::int16_t author) const {
    return author < 0 ? program_.facts.name : program_.authors[Size(author)];
  }

  // "hidden 8192 x ffn 28672/8": local sizes, cut by the degrees.
  std::string SizeText(const Tensor& tensor, const Placement& at) const {
    std::string out = tensor.scale == 1 ? std::string() : ShortNumber(tensor.scale);
    for (const DimensionId dim : tensor.dims) {
      const Dimension& row = program_.dimension(dim);
      const int cut = plan_.Size(at.CutOf(dim));
      // What is said of the batch is one rank's micro-batch, however many ranks share a step.
      const bool batch = row.kind == DimensionKind::kBatch;
      absl::StrAppend(&out, out.empty() ? "" : " x ", row.name, " ",
                      batch ? plan_.micro_batch_size : row.size);
      if (cut > 1 && !batch) absl::StrAppend(&out, "/", cut);
    }
    return out.empty() ? std::string("1") : out;
  }

  std::string FlatText(const Placement& at) const {
    const int flat = plan_.Size(at.Flat());
    return flat > 1 ? absl::StrCat(" / ", flat, " (", c_.edited.mesh.NameOf(at.Flat()), ")") : "";
  }

  std::string LayersText(double n) const {
    return n == 1 ? "" : absl::StrCat(ShortNumber(n), " layers x ");
  }

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

  std::string RecomputeAuthor(std::size_t layer_class) const {
    for (const Op& op : program_.ops) {
      if (op.layer_class.index() == layer_class && op.recompute_author >= 0)
        return Author(op.recompute_author);
    }
    return Author(-1);
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
      TransferEntry entry = Transfer(row, layers);
      const bool overlapped = row.hide == HideBehind::kPrefetch ||
                              row.hide == HideBehind::kLastBackward || row.hide == HideBehind::kOp;
      if (row.hide == HideBehind::kIgnored || overlapped) entry.exposed_seconds = 0;
      if (row.hide == HideBehind::kShare) entry.exposed_seconds = (1 - row.share) * entry.seconds;
      if (overlapped) hideable[static_cast<std::size_t>(entry.role)] += entry.seconds;
      hides.push_back(overlapped);
      in_pass.push_back(row.hide == HideBehind::kNothing && row.when == When::kMicroBatch);
      out_.transfers.push_back(std::move(entry));
    }
    if (PairsOverlap(c_, order_)) HideInPairs(rank, in_pass);
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
    PipelineTransfers(rank);
  }

  // Overlapped pairs hide so much of what blocks a pass; each takes its share of it.
  void HideInPairs(int rank, const std::vector<bool>& in_pass) {
    const std::array<double, kAxisRoles> hidden = HiddenInPairs(c_, plan_, rank, *order_, w_);
    std::array<double, kAxisRoles> all{};
    const auto role = [&](std::size_t i) {
      return static_cast<std::size_t>(out_.transfers[i].role);
    };
    for (std::size_t i = 0; i < in_pass.size(); ++i)
      all[role(i)] += in_pass[i] ? out_.transfers[i].seconds : 0;
    for (std::size_t i = 0; i < in_pass.size(); ++i) {
      TransferEntry& t = out_.transfers[i];
      if (in_pass[i] && all[role(i)] > 0)
        t.exposed_seconds -= std::min(1.0, hidden[role(i)] / all[role(i)]) * t.seconds;
    }
  }

  // Atoms of size one change no group: an axis is named as a whole with them, and an axis of one
  // rank not at all.
  std::string AxisName(AtomMask mask) const {
    AtomMask with = 0;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if ((mask >> a & 1) && plan_.atom[a] > 1) with = static_cast<AtomMask>(with | (1u << a));
    }
    AtomMask absent = 0;
    for (const Axis& axis : c_.edited.mesh.axes()) {
      if (!axis.borrows && plan_.Size(axis.atoms) == 1) absent |= axis.atoms;
    }
    mask = static_cast<AtomMask>(mask & ~absent);
    for (const Axis& axis : c_.edited.mesh.axes()) {
      if (axis.borrows && (mask & axis.atoms & ~axis.spans) != 0 && (mask & ~axis.atoms) == 0 &&
          plan_.Size(mask) == plan_.Size(axis.atoms))
        return axis.name;
    }
    for (const Axis& axis : c_.edited.mesh.axes()) {
      if (!axis.borrows && plan_.Size(axis.atoms) > 1 &&
          plan_.Size(axis.atoms) == plan_.Size(axis.atoms & mask))
        with |= axis.atoms;
    }
    AtomMask whole = 0;
    for (const Axis& axis : c_.edited.mesh.axes()) {
      if (!axis.borrows && (axis.atoms & ~with) == 0) whole |= axis.atoms;
    }
    // A borrower of part of an axis may have atoms of one rank, of axes that are not there.
    for (const Axis& axis : c_.edited.mesh.axes()) {
      const auto own = static_cast<AtomMask>(axis.atoms & ~axis.spans & ~whole);
      if (axis.borrows && plan_.Size(own) > 1 && plan_.Size(own) == plan_.Size(own & mask))
        with |= axis.atoms & ~axis.spans;
    }
    return c_.edited.mesh.NameOf(with, absent);
  }

  TransferEntry Transfer(const TransferRow& row, double layers) const {
    TransferEntry entry;
    const TransferPrice& price = c_.form.transfer_prices[row.price];
    const double payload = CallBytes(c_, plan_, price, w_);
    const bool copy = price.collective == Collective::kHostCopy;
    const double transfers = layers * (row.when == When::kMicroBatch ? Passes() : 1) / row.unit;
    entry.axis = copy         ? Name(AxisRole::kHost)
                 : price.ends ? Name(AxisRole::kPipeline)
                              : AxisName(c_.form.masks[price.mask]);
    entry.role = row.role;
    entry.collective = Name(price.collective);
    entry.phase = Name(row.phase);
    entry.count = price.bucket > 0 ? transfers * Payload(price, w_) / payload : transfers;
    if (price.ends) {
      entry.span = w_.spans.PipelineHop();
    } else if (!copy) {
      entry.span = w_.span_of[price.mask];
    }
    entry.group_size = entry.span.size;
    const TransferShape shape{price.collective, Bytes(payload), price.copies, price.domains};
    entry.bytes_per_call = SentShare(price.collective, entry.group_size) * payload;
    entry.bytes = entry.count * entry.bytes_per_call;
    entry.tier = copy ? "host" : c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
    entry.algorithm = copy ? "copy" : c_.network->Algorithm(shape, entry.span);
    entry.seconds = entry.exposed_seconds = transfers * w_.transfer_seconds[row.price];
    if (row.step >= 0) {
      const Step& step = c_.edited.derived.steps[Size(row.step)];
      entry.tensor = program_.tensor(step.source.tensor).name;
      if (row.tensors > 1)
        entry.tensor = absl::StrCat(program_.classes[row.layer_class].name, " weights");
      if (step.source.gradient) entry.tensor += " gradient";
      entry.author = Author(step.author);
      entry.realised = step.realised;
    } else if (row.update_of.valid()) {
      entry.tensor = absl::StrCat(program_.classes[row.layer_class].name,
                                  row.phase == Phase::kUpdate ? " matrices, whole to their ranks"
                                                              : " updates, back to their shards");
      entry.why = "the optimizer works on whole matrices, of which each rank has a part";
      entry.author = c_.optimizer_name;
    } else {
      const Declared& declared = c_.edited.derived.declared[Size(row.declared)];
      entry.tensor = declared.name;
      entry.why = declared.why;
      entry.author = Author(declared.author);
      entry.declared = true;
    }
    return entry;
  }

  void PipelineTransfers(int rank) {
    if (plan_.pipeline == 1) return;
    const auto add = [&](double sends, const char* tensor, Phase phase) {
      if (sends == 0) return;
      TransferEntry entry;
      entry.axis = "pipeline";
      entry.role = AxisRole::kPipeline;
      entry.collective = Name(Collective::kSendRecv);
      entry.tensor = tensor;
      entry.phase = Name(phase);
      entry.author = c_.schedule_name;
      entry.count = sends;
      entry.span = w_.spans.PipelineHop();
      entry.group_size = plan_.pipeline;
      entry.bytes_per_call = w_.blocks[c_.form.boundary];
      entry.bytes = entry.count * entry.bytes_per_call;
      entry.tier = c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
      entry.algorithm =
          c_.network->Algorithm({Collective::kSendRecv, Bytes(entry.bytes_per_call)}, entry.span);
      entry.seconds = entry.count * HopSeconds(c_, w_);
      out_.transfers.push_back(std::move(entry));
    };
    add(order_->sends[2 * Size(rank)], "activations", Phase::kForward);
    add(order_->sends[2 * Size(rank) + 1], "gradients", Phase::kInputGradient);
    double sent = 0;
    const auto message = [](const TransferEntry& t) {
      return t.role == AxisRole::kPipeline && !t.declared;
    };
    for (const TransferEntry& t : out_.transfers) sent += message(t) ? t.seconds : 0;
    for (TransferEntry& t : out_.transfers) {
      if (message(t) && sent > 0) t.exposed_seconds = out_.exposed_pipeline * t.seconds / sent;
    }
    if (order_->copies > 1) CopiesTransfer(rank);
  }

  void CopiesTransfer(int rank) {
    TransferEntry entry;
    const double payload = CopiedBytes(c_, plan_, rank, *order_, w_);
    const TransferShape shape{Collective::kAllReduce, Bytes(payload)};
    entry.axis = "pipeline";
    entry.role = AxisRole::kPipeline;
    entry.collective = Name(shape.collective);
    entry.tensor = "gradients of stages held twice";
    entry.phase = Name(Phase::kReduce);
    entry.author = c_.schedule_name;
    entry.count = 1;
    entry.span = CopiesSpan(*order_, w_);
    entry.group_size = order_->copies;
    entry.bytes_per_call = entry.bytes = SentShare(shape.collective, entry.group_size) * payload;
    entry.tier = c_.hardware->machine().tiers[Size(entry.span.outermost)].name;
    entry.algorithm = c_.network->Algorithm(shape, entry.span);
    entry.seconds = c_.network->TransferTime(shape, entry.span).value();
    entry.exposed_seconds = c_.exposed_transfers ? entry.seconds : 0;
    out_.transfers.push_back(std::move(entry));
  }

  // --- time
  // -------------------------------------------------------------------------------------------------

  static const char* Part(Bucket bucket) {
    switch (bucket) {
      case Bucket::kForward:
        return "forward";
      case Bucket::kReplay:
        return "recompute";
      default:
        return "backward";
    }
  }

  void Times(int rank) {
    for (const OpRow& row : c_.form.ops) {
      const double n = LayersOnRank(rank, row.layer_class);
      if (n == 0) continue;
      const OpShape shape = ShapeOf(c_, c_.form.op_prices[row.price], w_);
      TimeEntry entry;
      entry.part = Part(row.bucket);
      entry.author = row.bucket == Bucket::kReplay ? RecomputeAuthor(row.layer_class) : Author(-1);
      entry.row = row.cast ? CastName(row)
                           : absl::StrCat(
                                 program_.op(row.op).name,
                                 row.bucket == Bucket::kWeightGradient ? " (weight gradient)" : "");
      entry.seconds = Passes() * n * c_.hardware->OpTime(shape).value();
      entry.formula = absl::StrCat(Passes(), " micro-batches x ", ShortNumber(n), " layers x (",
                                   Significant(shape.flops / 1e9, 4), " GFLOP, ",
                                   Significant(shape.bytes / 1e6, 4), " MB)");
      out_.times.push_back(std::move(entry));
    }
    for (std::size_t k = 0; k < c_.form.classes.size(); ++k) {
      Waits(rank, k, "forward", w_.costs[k].wait_forward, w_.costs[k].calls_forward);
      Waits(rank, k, "backward", w_.costs[k].wait_backward, w_.costs[k].calls_backward);
      Waits(rank, k, "backward", w_.costs[k].wait_weight, c_.form.classes[k].calls_weight);
    }
    const RankMemory& memory = w_.memory[Size(rank)];
    for (const UpdateRow& row : c_.form.updates) {
      const double n = LayersOnRank(rank, row.layer_class);
      if (n == 0) continue;
      TimeEntry entry;
      entry.part = "optimizer";
      if (row.cast) {
        entry.author = absl::StrCat("precision ", c_.precision.recipe);
        entry.row = absl::StrCat(program_.tensor(row.tensor).name, " to ",
                                 Name(c_.precision.compute), ", once a step");
        entry.formula = absl::StrCat(LayersText(n), Significant(w_.blocks[row.rows] / 1e6, 4),
                                     " MB read and written");
        entry.seconds = n * UpdateSeconds(c_, row, w_);
        out_.times.push_back(std::move(entry));
        continue;
      }
      entry.author = c_.optimizer_name;
      entry.row = absl::StrCat(program_.tensor(row.tensor).name, " as matrices");
      entry.formula = absl::StrCat(
          LayersText(n), ShortNumber(w_.blocks[row.matrices]), " x ",
          ShortNumber(w_.blocks[row.rows]), " x ", ShortNumber(w_.blocks[row.columns]), " (",
          Significant(
              c_.optimizer->FlopsOfMatrix(row.kind, w_.blocks[row.rows], w_.blocks[row.columns]) /
                  1e9,
              4),
          " GFLOP each)");
      entry.seconds = n * UpdateSeconds(c_, row, w_);
      out_.times.push_back(std::move(entry));
    }
    const double host =
        c_.rules.count_optimizer_time && memory.host > 0 ? HostOptimizerSeconds(c_, memory) : 0;
    if (host > 0) {
      out_.times.push_back(
          {"optimizer", c_.optimizer_name, "update on the host",
           absl::StrCat("state read and written, gradient read, weight written "
                        "once, at ",
                        ShortNumber(c_.hardware->machine().host_memory_bandwidth.value()), " B/s"),
           host});
    }
    const double streamed = out_.evaluation.time.optimizer - host - memory.update;
    if (streamed > 0) {
      out_.times.push_back(
          {"optimizer", c_.optimizer_name, "update", "state read and written once", streamed});
    }
  }

  // "o (operands to fp8)".
  std::string CastName(const OpRow& row) const {
    const bool gradient =
        row.bucket == Bucket::kInputGradient || row.bucket == Bucket::kWeightGradient;
    return absl::StrCat(program_.op(row.op).name, gradient ? " (gradient to " : " (operand to ",
                        Name(c_.precision.compute), ")");
  }

  void Waits(int rank, std::size_t layer_class, const char* part, double wait, double calls) {
    const double n = LayersOnRank(rank, layer_class);
    if (wait == 0 || n == 0) return;
    TimeEntry entry;
    entry.part = part;
    entry.author = "software";
    entry.row = absl::StrCat(program_.classes[layer_class].name, " waits for the host");
    entry.seconds = Passes() * n * wait;
    entry.formula = absl::StrCat(Passes(), " micro-batches x ", ShortNumber(n), " layers x (",
                                 ShortNumber(calls), " calls x ",
                                 Significant(c_.host_seconds * 1e6, 3), " us - what they take)");
    out_.times.push_back(std::move(entry));
  }

  const Composition& c_;
  const Program& program_;
  const Plan& plan_;
  const CompiledOrder* order_;
  Workspace w_;
  Explanation out_;
};

}  // namespace

Explanation Explain(const Composition& composition, const Plan& plan, const CompiledOrder* order,
                    int transfer_rank) {
  return Explainer(composition, plan, order).Run(transfer_rank);
}

}  // namespace shardlab
