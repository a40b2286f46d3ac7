#include "core/first_step.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace shardlab {
namespace {

class Finder {
 public:
  Finder(const Composition& c, const Plan& plan, const Workspace& w, const RankMemory& memory)
      : c_(c), plan_(plan), w_(w), memory_(memory), model_(c.edited.program.facts.name) {}

  FirstPeaks Run(const std::function<double(std::size_t)>& layers) {
    for (const StateRow& row : c_.form.state) Add(row, layers(row.layer_class));
    Initialisation();
    FirstStep();
    return std::move(out_);
  }

 private:
  double Steady(Account account) const { return memory_.bytes[static_cast<std::size_t>(account)]; }

  void Add(const StateRow& row, double n) {
    if (row.host || n == 0) return;
    const Tensor& w = c_.edited.program.tensor(row.tensor);
    const double bytes = n * w_.blocks[row.block];
    switch (row.account) {
      case Account::kParameters:
        if (row.copy) break;  // made by the first product
        weights_ += bytes;
        whole_ += bytes * plan_.Size(w.home.Flat());
        break;
      case Account::kGradients:
        if (w.gradient.Flat() == 0) buffers_ += bytes;
        break;
      case Account::kOptimizer:
        (c_.states.table[static_cast<std::size_t>(row.state)].at_initialisation ? early_ : late_) +=
            bytes;
        break;
      default:
        break;
    }
  }

  void Entry(bool initialisation, const std::string& author, const char* row, const char* source,
             double bytes) {
    if (bytes == 0) return;
    out_.entries.push_back(
        {initialisation, author, row, absl::StrCat(ShortNumber(bytes), " B"), source, bytes});
    (initialisation ? out_.initialisation : out_.first_step) += bytes;
  }

  void Rest(bool initialisation) {
    const Machine& machine = c_.hardware->machine();
    const double allocated = initialisation ? out_.initialisation : out_.first_step;
    Entry(initialisation, machine.name, "fragmentation", "as in every step",
          machine.fragmentation * allocated);
    Entry(initialisation, machine.name, "outside the allocator", "as in every step",
          machine.outside_allocator.value());
  }

  void Initialisation() {
    const auto fact = c_.edited.plan_facts.find("initialised_whole");
    const bool whole = fact != c_.edited.plan_facts.end() && fact->second.boolean;
    if (whole && whole_ > weights_ + early_) {
      Entry(true, model_, "weights before they are sharded",
            "made whole on the device: all of the rank's weights until each is cut (PyTorch, "
            "FullyShardedDataParallel without deferred initialisation)",
            whole_);
      return Rest(true);
    }
    Entry(true, model_, "weights", "made as they lie between uses", weights_);
    Entry(true, model_, "gradient buffers",
          "made with the model where gradients are kept whole (Megatron-LM, ParamAndGradBuffer)",
          buffers_);
    Entry(true, c_.optimizer_name, "optimizer state made from weights",
          "master weights are copied when the optimizer is made (Megatron-LM, "
          "DistributedOptimizer)",
          early_);
    Rest(true);
  }

  // Moments are made by the first update, when no activation is left (PyTorch, Adam._init_group):
  // the first passes do without them.
  void FirstStep() {
    const double state = Steady(Account::kParameters) + Steady(Account::kGradients) + early_;
    const double work =
        Steady(Account::kActivations) + Steady(Account::kGathered) + Steady(Account::kTransient);
    Entry(false, model_, "weights, gradients and state made from weights", "held all step long",
          state);
    if (work >= late_) {
      Entry(false, model_, "activations, gathered weights and buffers",
            "of the first passes, before the first update makes the rest of the state", work);
    } else {
      Entry(false, c_.optimizer_name, "the rest of the optimizer state",
            "made by the first update, when activations are gone (PyTorch, torch.optim)", late_);
    }
    Rest(false);
  }

  const Composition& c_;
  const Plan& plan_;
  const Workspace& w_;
  const RankMemory& memory_;
  const std::string& model_;
  double weights_ = 0, whole_ = 0, buffers_ = 0, early_ = 0, late_ = 0;
  FirstPeaks out_;
};

}  // namespace

FirstPeaks FirstPeaksOf(const Composition& c, const Plan& plan, const Workspace& w,
                        const RankMemory& memory,
                        const std::function<double(std::size_t)>& layers) {
  return Finder(c, plan, w, memory).Run(layers);
}

}  // namespace shardlab
