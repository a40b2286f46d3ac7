#include "core/make_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/balance.h"
#include "core/split_layers.h"

namespace shardlab {
namespace {

class PlanMaker {
 public:
  PlanMaker(const Composition& c, const PlanRequest& request, std::vector<LayerSplit>* splits,
            Diagnostics* d)
      : c_(c),
        mesh_(c.edited.mesh),
        request_(request),
        diagnostics_(*d),
        splitter_(c, request, splits, d),
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
      plan_.split = splitter_.Keep(
          BalancedLayers(c_, plan_, request_.balance, splitter_.stages(), splitter_.layers()));
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

  // Every layer on some stage; where stages are balanced by what they take once degrees are known.
  void SplitLayers() {
    if (const std::optional<std::int32_t> split = splitter_.Split()) plan_.split = *split;
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
  Diagnostics& diagnostics_;
  LayerSplitter splitter_;
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
