#include "core/make_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/balance.h"

namespace shardlab {
namespace {

class PlanMaker {
 public:
  PlanMaker(const Composition& c, const PlanRequest& request, std::vector<LayerSplit>* splits,
            Diagnostics* d)
      : c_(c),
        mesh_(c.edited.mesh),
        request_(request),
        splits_(splits),
        diagnostics_(*d),
        degree_(mesh_.axes().size(), 0),
        whole_(mesh_.axes().size()) {
    plan_.pipeline = request_.pipeline;
    plan_.chunks = request_.chunks;
    plan_.micro_batch_size = request_.micro_batch_size;
  }

  std::optional<Plan> Run() {
    const std::size_t before = ErrorCount();
    SplitLayers();
    AllButLayers();
    if (ErrorCount() != before) return std::nullopt;
    Schedule();
    Warnings();
    if (ErrorCount() != before) return std::nullopt;
    if (request_.layers.empty() && request_.balance != Balance::kEven) {
      Keep(BalancedLayers(c_, plan_, request_.balance, Stages(plan_.pipeline), LayersOfModel()));
    }
    return plan_;
  }

  std::optional<Plan> WithoutLayers() {
    const std::size_t before = ErrorCount();
    AllButLayers();
    if (ErrorCount() != before) return std::nullopt;
    return plan_;
  }

  std::optional<std::int32_t> Layers() {
    const std::size_t before = ErrorCount();
    SplitLayers();
    if (plan_.pipeline == 1) Schedule();
    if (ErrorCount() != before) return std::nullopt;
    return plan_.split;
  }

 private:
  void AllButLayers() {
    Degrees();
    if (degrees_known_ && !Borrowers()) degrees_known_ = false;  // no atoms, so no batch to divide
    Requirements();
    Limits();
    HostLink();
    if (degrees_known_) MicroBatches();
  }

  std::size_t ErrorCount() const {
    return static_cast<std::size_t>(
        std::count_if(diagnostics_.all().begin(), diagnostics_.all().end(),
                      [](const Diagnostic& d) { return d.severity == Severity::kError; }));
  }

  int Declared(const Axis& axis) const {
    const auto it = request_.degrees.find(axis.name);
    return it != request_.degrees.end() ? it->second : axis.degree;
  }

  int LayersOfModel() const {
    int layers = 0;
    for (const LayerClass& row : c_.edited.program.classes) {
      if (row.position == StagePosition::kLayer && !row.copy_of.valid()) layers += row.repeat;
    }
    return layers;
  }

  int Stages(int pipeline) const {
    const ScheduleShape shape{pipeline, plan_.chunks, plan_.micro_batches};
    return pipeline == 1 || c_.schedule == nullptr ? pipeline * plan_.chunks
                                                   : c_.schedule->Stages(shape);
  }

  // Every layer on some stage.
  void SplitLayers() {
    const int layers = LayersOfModel(), stages = Stages(plan_.pipeline);
    if (!request_.layers.empty()) {
      if (StatedSplit(layers, stages)) Keep(request_.layers);
      return;
    }
    if (request_.balance != Balance::kEven) {
      if (request_.count_ends) {
        diagnostics_.Error("schedule.count_ends", request_.count_ends_place,
                           "count_ends is a rule of balance = \"even\"; time and memory know what "
                           "embedding and head take",
                           "leave count_ends out");
      }
      return;  // once the degrees are known
    }
    const int ends = request_.count_ends ? 2 : 0;
    if ((layers + ends) % stages != 0 || (layers + ends) / stages < (stages == 1 ? ends : ends / 2))
      return Uneven(layers, ends);
    std::vector<int> split(static_cast<std::size_t>(stages), (layers + ends) / stages);
    split.front() -= ends / 2;
    split.back() -= ends / 2;
    Keep(std::move(split));
  }

  bool StatedSplit(int layers, int stages) {
    const std::vector<int>& split = request_.layers;
    const std::size_t before = ErrorCount();
    const long long sum = std::accumulate(split.begin(), split.end(), 0LL);
    if (request_.balance != Balance::kEven || request_.count_ends) {
      diagnostics_.Error("schedule.layers", request_.layers_place,
                         "layers says the split already; balance and count_ends would choose one",
                         "leave out either");
    }
    if (split.size() != static_cast<std::size_t>(stages)) {
      diagnostics_.Error(
          "schedule.layers", request_.layers_place,
          absl::StrCat("layers has ", split.size(), " numbers for ", stages, " stages"),
          absl::StrCat("write ", stages, " numbers whose sum is ", layers));
    } else if (sum != layers || *std::min_element(split.begin(), split.end()) < 0) {
      diagnostics_.Error(
          "schedule.layers", request_.layers_place,
          absl::StrCat("layers add up to ", sum, ", the model has ", layers),
          absl::StrCat("write ", stages, " numbers, none negative, whose sum is ", layers));
    }
    return ErrorCount() == before;
  }

  void Uneven(int layers, int ends) {
    // Legal degrees are those whose stages divide what is to be spread.
    std::vector<int> legal;
    for (const int stages : Divisors(layers + ends)) {
      const int degree =
          stages * std::max(1, plan_.pipeline * plan_.chunks / std::max(1, Stages(plan_.pipeline)));
      if (degree % plan_.chunks == 0) legal.push_back(degree / plan_.chunks);
    }
    const std::string chunks = plan_.chunks > 1 ? absl::StrCat(" x ", plan_.chunks, " chunks") : "";
    const std::string counted = ends > 0 ? " and two ends" : "";
    diagnostics_.Error(
        "schedule.degree", request_.pipeline_place,
        absl::StrCat(layers, " layers", counted, " do not divide evenly by ", plan_.pipeline,
                     " pipeline ranks", chunks),
        legal.empty()
            ? absl::StrCat("no degree is legal with ", plan_.chunks, " chunks: chunks must divide ",
                           layers + ends, "; or write layers = [...] for each stage")
            : absl::StrCat("legal with this model: ", Enumerate(legal, "or"),
                           "; or write layers = [...] for each stage"));
  }

  void Keep(std::vector<int> split) {
    // The same numbers of layers may be other classes: where a rank holds both ends, or so many
    // layers of each rank are treated differently.
    const auto& classes = c_.edited.program.classes;
    const bool by_shape = std::any_of(classes.begin(), classes.end(), [](const LayerClass& row) {
      return row.both_ends.valid() || row.per_rank > 0;
    });
    std::vector<double> counts;
    if (by_shape) counts = CountClasses(split);
    const auto known = std::find_if(splits_->begin(), splits_->end(), [&](const LayerSplit& s) {
      return s.layers == split && (!by_shape || s.counts == counts);
    });
    plan_.split = static_cast<std::int32_t>(known - splits_->begin());
    if (known == splits_->end()) {
      if (!by_shape) counts = CountClasses(split);
      std::vector<std::int32_t> alike = Alike(counts, split.size());
      splits_->push_back({std::move(split), std::move(counts), std::move(alike)});
    }
  }

  static std::vector<std::int32_t> Alike(const std::vector<double>& counts, std::size_t stages) {
    const auto classes =
        static_cast<std::ptrdiff_t>(counts.size() / std::max<std::size_t>(1, stages));
    const auto at = [&](std::size_t stage) {
      return counts.begin() + static_cast<std::ptrdiff_t>(stage) * classes;
    };
    std::vector<std::int32_t> alike(stages);
    for (std::size_t stage = 0; stage < stages; ++stage) {
      // Stages that are alike stand together in most splits: the one before is asked first.
      const std::size_t before = stage > 0 ? static_cast<std::size_t>(alike[stage - 1]) : 0;
      std::size_t first =
          stage > 0 && std::equal(at(stage), at(stage + 1), at(before)) ? before : 0;
      while (!std::equal(at(stage), at(stage + 1), at(first))) ++first;
      alike[stage] = static_cast<std::int32_t>(first);
    }
    return alike;
  }

  // A stage holds a run of the whole sequence of layers.
  std::vector<double> CountClasses(const std::vector<int>& split) const {
    const Program& program = c_.edited.program;
    const std::vector<LayerAt> layers = program.LayersInOrder();
    std::vector<double> counts(split.size() * program.classes.size(), 0);
    double* of_stage = counts.data();
    std::size_t next = 0;
    const bool ends_apart =
        std::any_of(program.classes.begin(), program.classes.end(),
                    [](const LayerClass& row) { return row.both_ends.valid(); }) &&
        EndsApart();
    for (std::size_t stage = 0; stage < split.size(); ++stage) {
      for (std::size_t c = 0; c < program.classes.size(); ++c) {
        const StagePosition position = program.classes[c].position;
        if (program.classes[c].both_ends.valid() && !ends_apart) continue;
        if ((position == StagePosition::kFirst && stage == 0) ||
            (position == StagePosition::kLast && stage + 1 == split.size()))
          of_stage[c] = 1;
        if (position == StagePosition::kSpread)
          of_stage[c] = 1.0 / static_cast<double>(split.size());
      }
      for (int i = 0; i < split[stage]; ++i, ++next)
        of_stage[program.TreatedBy(layers[next], OnRank(stage, i)).index()] += 1;
      of_stage += program.classes.size();
    }
    return counts;
  }

  // The first and the last stage are on different pipeline ranks.
  bool EndsApart() const {
    if (plan_.pipeline == 1 || c_.schedule == nullptr) return false;
    const ScheduleShape shape{plan_.pipeline, plan_.chunks, 1};
    for (int rank = 0; rank < plan_.pipeline; ++rank) {
      bool first = false, last = false;
      for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
        const int stage = c_.schedule->StageOf(shape, rank, chunk);
        first |= stage == 0;
        last |= stage + 1 == c_.schedule->Stages(shape);
      }
      if (first && last) return false;
    }
    return true;
  }

  // A rank's share of layers is dealt out to its chunks in turn: to the first layer of each, then
  // to the second.
  int OnRank(std::size_t stage, int layer) const {
    return layer * plan_.chunks + static_cast<int>(stage) / plan_.pipeline;
  }

  void Degrees() {
    const long long world = c_.hardware->machine().devices;
    long long used = plan_.pipeline;
    // "tensor 8 x pipeline 2 = 16"; a factor of 1 says nothing, and one factor alone needs no sum.
    std::vector<std::string> factors;
    if (plan_.pipeline > 1) factors.push_back(absl::StrCat("pipeline ", plan_.pipeline));
    const Axis* rest = nullptr;
    for (const Axis& axis : mesh_.axes()) {
      if (axis.borrows) continue;
      const int degree = Declared(axis);
      if (degree == 0) {
        rest = &axis;
        continue;
      }
      used *= degree;
      if (degree > 1) factors.push_back(absl::StrCat(axis.name, " ", degree));
      degree_[Index(axis)] = degree;
    }
    const Place& place = BlamedPlace();
    std::string product = factors.empty() ? "one rank" : absl::StrJoin(factors, " x ");
    if (factors.size() > 1) absl::StrAppend(&product, " = ", used);
    if (rest == nullptr) {
      degrees_known_ = used == world;
      if (used == world) return SetAtoms();
      const Axis* data = nullptr;
      for (const Axis& axis : mesh_.axes()) {
        if (axis.role == AxisRole::kData && !axis.borrows) data = &axis;
      }
      std::string hint = absl::StrCat("the product of all degrees must be ", world);
      if (data != nullptr && used / Declared(*data) > 0 && world % (used / Declared(*data)) == 0) {
        hint = absl::StrCat("the other axes leave ", data->name, " degree ",
                            world / (used / Declared(*data)), "; or leave it out");
      }
      diagnostics_.Error(
          "plan.world", data != nullptr ? data->place : place,
          absl::StrCat(product, factors.size() > 1 ? " ranks on " : " on ", world, " devices"),
          hint);
      return;
    }
    if (world % used != 0) {
      diagnostics_.Error(
          "plan.world", place, absl::StrCat(world, " devices do not divide by ", product),
          absl::StrCat("the product must be one of ", Enumerate(Divisors(world), "or")));
      return;
    }
    degree_[Index(*rest)] = static_cast<int>(world / used);
    degrees_known_ = true;
    SetAtoms();
  }

  // The degree to point at when the product is wrong: the largest that the user wrote.
  const Place& BlamedPlace() const {
    const Place* place = plan_.pipeline > 1 ? &request_.pipeline_place : &request_.hardware_place;
    int largest = plan_.pipeline;
    for (const Axis& axis : mesh_.axes()) {
      if (axis.borrows || Declared(axis) <= largest) continue;
      largest = Declared(axis);
      place = &axis.place;
    }
    return *place;
  }

  bool Owns(const Axis& axis, AtomId atom) const {
    return mesh_.atoms()[atom.index()].owner.index() == Index(axis);
  }
  std::size_t Index(const Axis& axis) const {
    return static_cast<std::size_t>(&axis - mesh_.axes().data());
  }

  // First the atoms of each axis as if nobody borrowed; then borrowers take of them, and what is
  // left is the axis's own.
  void SetAtoms() {
    for (const Axis& axis : mesh_.axes()) {
      if (axis.borrows) continue;
      int rest = degree_[Index(axis)];
      for (const AtomId atom : axis.order) {
        if (!Owns(axis, atom)) continue;
        const std::string& bound = mesh_.atoms()[atom.index()].bound;
        const int size = bound.empty() ? rest : std::gcd(rest, LeftOf(bound));
        if (!bound.empty()) Taken(bound) = size * std::max(1, Taken(bound));
        whole_[Index(axis)].push_back(size);
        rest /= size;
      }
    }
    Borrow();
    for (const Axis& axis : mesh_.axes()) {
      if (axis.borrows) continue;
      for (std::size_t slot = 0; slot < whole_[Index(axis)].size(); ++slot)
        plan_.atom[axis.order[slot].index()] = std::max(
            1, whole_[Index(axis)][slot] / std::max(1, Lent(axis, static_cast<int>(slot))));
    }
  }

  // Of a bound, the product of the atoms that it caps; 0: there is none yet.
  int& Taken(const std::string& bound) {
    const auto known = std::find_if(taken_.begin(), taken_.end(),
                                    [&](const auto& one) { return *one.first == bound; });
    return known != taken_.end() ? known->second : taken_.emplace_back(&bound, 0).second;
  }

  // What earlier atoms with this bound have left of the dimension.
  int LeftOf(const std::string& bound) {
    const DimensionId dim = c_.edited.program.FindDimension(bound);
    if (!dim.valid()) return 1;
    return static_cast<int>(c_.edited.program.dimension(dim).size) / std::max(1, Taken(bound));
  }

  // Ranks of this axis that borrowers have taken, of all of its atoms or of one.
  int Lent(const Axis& lender, int slot = -1, AtomMask but = 0) const {
    int lent = 1;
    for (const AtomId atom : lender.order) {
      if (!Owns(lender, atom) && (but & Bit(atom)) == 0 &&
          (slot < 0 || mesh_.atoms()[atom.index()].slot == slot))
        lent *= plan_.atom[atom.index()];
    }
    return lent;
  }

  // The atoms of borrowers come first: lenders keep what is left. An axis that spans others has
  // their ranks already.
  void Borrow() {
    for (const Axis& axis : mesh_.axes()) {
      if (!axis.borrows) continue;
      int spanned = 1;
      bool divides = true;
      for (const Axis& other : mesh_.axes()) {
        if (other.borrows || (other.atoms & axis.spans) == 0) continue;
        const int lent = std::max(1, Lent(other, -1, axis.spans));
        divides &= degree_[Index(other)] % lent == 0;
        spanned *= std::max(1, degree_[Index(other)] / lent);
      }
      if (!divides) continue;  // said of the borrower
      const int degree = std::max(1, Declared(axis));
      if (degree % spanned != 0 || (axis.order.empty() && degree != spanned)) {
        Spanned(axis, degree, spanned);
        continue;
      }
      Take(axis, degree / spanned);
    }
  }

  // All lenders but the last give what divides the degree; each first of its first atom.
  void Take(const Axis& axis, int rest) {
    for (std::size_t i = 0; i < axis.order.size();) {
      const Axis& lender = LenderOf(axis.order[i]);
      const auto& whole = whole_[Index(lender)];
      const bool last = i + whole.size() == axis.order.size();
      int taken = last ? rest : std::gcd(rest, degree_[Index(lender)] / Lent(lender));
      rest /= taken;
      for (std::size_t slot = 0; slot < whole.size(); ++slot, ++i) {
        const int left = whole[slot] / std::max(1, Lent(lender, static_cast<int>(slot)));
        const int size = slot + 1 == whole.size() ? taken : std::gcd(taken, left);
        plan_.atom[axis.order[i].index()] = size;
        taken /= size;
      }
    }
  }

  const Axis& LenderOf(AtomId atom) const {
    const auto lends = [atom](const Axis& axis) {
      return !axis.borrows && (axis.atoms & Bit(atom)) != 0;
    };
    return *std::find_if(mesh_.axes().begin(), mesh_.axes().end(), lends);
  }

  void Spanned(const Axis& axis, int degree, int spanned) {
    std::string of;
    for (const Axis& other : mesh_.axes()) {
      if (other.borrows || (other.atoms & axis.spans) == 0) continue;
      absl::StrAppend(&of, of.empty() ? "" : " and ", other.name);
    }
    if (axis.order.empty()) {
      diagnostics_.Error("plan.span_degree", axis.place,
                         absl::StrCat(axis.name, " degree ", degree, " is not the ", spanned,
                                      " ranks of ", of, " that it stands for"),
                         absl::StrCat("write ", spanned));
      return;
    }
    diagnostics_.Error("plan.span_degree", axis.place,
                       absl::StrCat(axis.name, " degree ", degree, " does not hold the ", spanned,
                                    " ranks of ", of, " that belong to it"),
                       absl::StrCat("write a multiple of ", spanned));
  }

  bool Borrowers() {
    bool good = true;
    for (const Axis& lender : mesh_.axes()) {
      if (lender.borrows) continue;
      const int lent = Lent(lender), degree = degree_[Index(lender)];
      if (degree % lent == 0) continue;
      good = false;
      for (const Axis& axis : mesh_.axes()) {
        if (!axis.borrows || (axis.atoms & ~axis.spans & lender.atoms) == 0) continue;
        diagnostics_.Error("plan.borrow", axis.place,
                           absl::StrCat(axis.name, " ", lent, " does not divide the ", degree,
                                        " ranks of ", lender.name, " that it borrows"),
                           absl::StrCat("legal: ", Enumerate(Divisors(degree), "or")));
      }
    }
    return good;
  }

  void Requirements() {
    for (const Requirement& requirement : c_.edited.requirements) {
      if (!requirement.message.empty()) {
        if (plan_.Size(requirement.atoms) > 1) {
          diagnostics_.Error("plan.required", requirement.place, requirement.message,
                             requirement.hint);
        }
        continue;
      }
      double size = 1;
      for (const DimensionId dim : requirement.dimensions)
        size *= c_.edited.program.dimension(dim).size;
      // The declared degree, because atoms are known only when the whole mesh is legal.
      const Axis* axis = nullptr;
      for (const Axis& candidate : mesh_.axes()) {
        if (candidate.atoms == requirement.atoms) axis = &candidate;
      }
      const int degree =
          axis != nullptr ? std::max(1, Declared(*axis)) : plan_.Size(requirement.atoms);
      const auto whole = static_cast<long long>(size);
      if (degree <= 1 || whole % degree == 0) continue;
      std::vector<int> legal;
      for (const int d : Divisors(whole)) {
        if (d <= c_.hardware->machine().devices) legal.push_back(d);
      }
      diagnostics_.Error(
          "plan.divide", requirement.place,
          absl::StrCat(whole, " ", requirement.what, " do not divide by ",
                       axis != nullptr ? axis->name : mesh_.NameOf(requirement.atoms), " degree ",
                       degree),
          absl::StrCat("legal: ", Enumerate(legal, "or")));
    }
  }

  // What the model cannot be cut along at all.
  void Limits() {
    for (const Limit& limit : c_.edited.program.limits) {
      if (limit.role == AxisRole::kPipeline) {
        if (plan_.pipeline > 1) {
          diagnostics_.Error("plan.limit", request_.pipeline_place, limit.why, limit.hint);
        }
        continue;
      }
      const AxisId axis = mesh_.Find(limit.role);
      if (!axis.valid() || Declared(mesh_.axis(axis)) == 1) continue;
      diagnostics_.Error("plan.limit", mesh_.axis(axis).place, limit.why, limit.hint);
    }
  }

  void HostLink() {
    const Machine& machine = c_.hardware->machine();
    if (!c_.form.on_host ||
        (machine.host_bandwidth.value() > 0 && machine.host_memory_bandwidth.value() > 0))
      return;
    diagnostics_.Error("plan.host", request_.hardware_place,
                       absl::StrCat(machine.name,
                                    " does not say how fast its devices reach the "
                                    "memory of their host"),
                       "keep all state on the devices, or choose a machine with host_bandwidth "
                       "and host_memory_bandwidth");
  }

  void MicroBatches() {
    const long long replicas = plan_.Size(c_.form.batch_atoms);
    const long long together = replicas * plan_.micro_batch_size;
    if (request_.global_batch_size % together == 0) {
      plan_.micro_batches = static_cast<std::int32_t>(request_.global_batch_size / together);
      return;
    }
    const long long below = request_.global_batch_size / together * together,
                    above = below + together;
    constexpr long long kMost = 1 << 30;  // what global_batch_size may be
    if (below == 0 && above > kMost) {
      diagnostics_.Error("plan.batch", request_.global_batch_place, BatchMessage(replicas),
                         "make micro_batch_size or the data degree smaller");
      return;
    }
    const std::string nearest =
        below > 0 ? absl::StrCat(below, " or ", above) : absl::StrCat(above);
    diagnostics_.Error("plan.batch", request_.global_batch_place, BatchMessage(replicas),
                       absl::StrCat("the nearest that divide: ", nearest));
  }

  std::string BatchMessage(long long replicas) const {
    return absl::StrCat("global batch ", request_.global_batch_size, " does not divide by data ",
                        replicas, " x micro-batch ", plan_.micro_batch_size);
  }

  void Schedule() {
    if (plan_.pipeline == 1) {
      if (plan_.chunks > 1) {
        diagnostics_.Error("schedule.chunks", request_.chunks_place,
                           "chunks need at least two pipeline ranks",
                           "leave chunks out or set degree");
      }
      return;
    }
    if (c_.schedule == nullptr) return;
    const std::string refusal =
        c_.schedule->Refusal({plan_.pipeline, plan_.chunks, plan_.micro_batches});
    if (!refusal.empty()) {
      diagnostics_.Error("schedule.refused",
                         plan_.chunks > 1 ? request_.chunks_place : request_.pipeline_place,
                         refusal);
    }
  }

  void Warnings() {
    for (const Axis& axis : mesh_.axes()) {
      if (axis.role != AxisRole::kTensor || axis.borrows) continue;
      WarnOfSpan(axis);
      WarnOfReplication(axis);
    }
  }

  void WarnOfSpan(const Axis& axis) {
    const std::vector<Tier>& tiers = c_.hardware->machine().tiers;
    const int degree = plan_.Size(axis.atoms);
    if (tiers.size() < 2 || degree <= tiers[0].devices) return;
    diagnostics_.Warning(
        "plan.span", axis.place,
        absl::StrCat(axis.name, " degree ", degree, " leaves the ", tiers[0].name, " domain of ",
                     tiers[0].devices, " devices: its collectives cross ", tiers[1].name),
        absl::StrCat("at most ", tiers[0].devices, " stays inside"));
  }

  void WarnOfReplication(const Axis& axis) {
    const int degree = plan_.Size(axis.atoms);
    for (const AtomId atom : axis.order) {
      const std::string& bound = mesh_.atoms()[atom.index()].bound;
      const DimensionId dim = c_.edited.program.FindDimension(bound);
      if (!dim.valid() || degree <= c_.edited.program.dimension(dim).size) continue;
      diagnostics_.Warning("plan.replicated", axis.place,
                           absl::StrCat(axis.name, " degree ", degree, " is more than the ",
                                        ShortNumber(c_.edited.program.dimension(dim).size), " ",
                                        bound, ": several ranks hold the same ones"));
    }
  }

  const Composition& c_;
  const Mesh& mesh_;
  const PlanRequest& request_;
  std::vector<LayerSplit>* splits_;
  Diagnostics& diagnostics_;
  Plan plan_;
  std::vector<int> degree_;                                // [axis]
  std::vector<std::pair<const std::string*, int>> taken_;  // see Taken
  // [axis] its own atoms, what is lent included
  std::vector<absl::InlinedVector<int, 4>> whole_;
  bool degrees_known_ = false;
};

}  // namespace

std::optional<Plan> MakePlan(const Composition& composition, const PlanRequest& request,
                             std::vector<LayerSplit>* splits, Diagnostics* diagnostics) {
  return PlanMaker(composition, request, splits, diagnostics).Run();
}

std::optional<Plan> MakePlanWithoutLayers(const Composition& composition,
                                          const PlanRequest& request, Diagnostics* diagnostics) {
  return PlanMaker(composition, request, nullptr, diagnostics).WithoutLayers();
}

std::optional<std::int32_t> MakeSplit(const Composition& composition, const PlanRequest& request,
                                      std::vector<LayerSplit>* splits, Diagnostics* diagnostics) {
  return PlanMaker(composition, request, splits, diagnostics).Layers();
}

int DegreeOf(const Composition& composition, const Plan& plan, AxisRole role) {
  if (role == AxisRole::kPipeline) return plan.pipeline;
  const AxisId axis = composition.edited.mesh.Find(role);
  return axis.valid() ? plan.Size(composition.edited.mesh.axis(axis).atoms) : 1;
}

}  // namespace shardlab
