#include "core/edits.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/derive.h"
#include "core/mesh_builder.h"
#include "core/place.h"
#include "core/rows_memory.h"
#include "core/share_layers.h"

namespace shardlab {
namespace {

class Applier {
 public:
  Applier(Program program, const std::vector<StrategyUse>& uses, const AccountingRules& rules,
          Diagnostics* diagnostics, RowsMemory* memory)
      : uses_(uses), rules_(rules), diagnostics_(*diagnostics), memory_(memory) {
    out_.program = std::move(program);
  }

  std::optional<Edited> Run(const std::string& mesh_order, const Place& mesh_place) {
    Record();
    Declare(mesh_order, mesh_place);
    if (diagnostics_.HasErrors()) return std::nullopt;
    Each<RetypeEdit>([&](const RetypeEdit& e, const Edit&) {
      EachTensor(e.which, [&](Tensor& t) { t.dtype = e.dtype; });
    });
    Each<ScaleEdit>([&](const ScaleEdit& e, const Edit&) {
      EachTensor(e.which, [&](Tensor& t) { t.scale *= e.factor; });
    });
    Each<SendOnceEdit>([&](const SendOnceEdit& e, const Edit&) {
      EachTensor(e.which, [&](Tensor& t) {
        t.copies = e.copies;
        t.copy_domains = e.domains;
      });
    });
    for (const bool must : {true, false}) {
      const Program before = out_.program;  // every fill sees the musts, and no other fill
      Each<ShardEdit>([&](const ShardEdit& e, const Edit& edit) {
        if (e.must == must) Shard(e, edit.author, before);
      });
    }
    Each<OpenEdit>([&](const OpenEdit& e, const Edit& edit) { Open(e, edit.author); });
    PlaceWork(out_.program);
    State();
    Each<RecomputeEdit>(
        [&](const RecomputeEdit& e, const Edit& edit) { Recompute(e, edit.author); });
    Each<KeepMovedEdit>([&](const KeepMovedEdit& e, const Edit&) {
      EachTensor(e.which, [](Tensor& t) { t.keep_moved = true; });
    });
    ShareLayers(out_.program);
    OpenSharedEnds(out_.program);
    if (diagnostics_.HasErrors()) return std::nullopt;
    out_.derived = memory_ != nullptr ? memory_->DeriveOf(out_.program, out_.mesh)
                                      : Derive(out_.program, out_.mesh);
    ShareEnds();
    StateFacts();
    Realise();
    RefuseImpossible();
    DeclareTransfers();
    Hide();
    Requirements();
    if (diagnostics_.HasErrors()) return std::nullopt;
    return std::move(out_);
  }

 private:
  void Record() {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      out_.program.authors.push_back(uses_[i].name);
      Editor editor(out_.program, rules_);
      uses_[i].strategy->Apply(editor);
      for (Edit edit : editor.edits()) {
        edit.author = static_cast<std::int16_t>(i);
        edits_.push_back(std::move(edit));
      }
    }
  }

  template <class Verb, class F>
  void Each(F apply) {
    for (const Edit& edit : edits_) {
      if (const auto* verb = std::get_if<Verb>(&edit.verb)) apply(*verb, edit);
    }
  }

  template <class F>
  void EachTensor(const TensorFilter& which, F apply) {
    for (std::size_t i = 0; i < out_.program.tensors.size(); ++i) {
      if (!which || which(TensorView(out_.program, out_.mesh, TensorId(i))))
        apply(out_.program.tensors[i]);
    }
  }

  Place PlaceOf(std::int16_t author, const std::string& parameter = "") const {
    const StrategyUse& use = uses_[static_cast<std::size_t>(author)];
    return use.place_of ? use.place_of(parameter) : Place{};
  }
  const std::string& NameOf(std::int16_t author) const {
    return uses_[static_cast<std::size_t>(author)].name;
  }

  void Declare(const std::string& mesh_order, const Place& mesh_place) {
    std::vector<DeclaredAxis> axes;
    Each<AxisSpec>([&](const AxisSpec& spec, const Edit& edit) {
      axes.push_back({spec, NameOf(edit.author), PlaceOf(edit.author, spec.parameter)});
    });
    // The mesh, too, does not depend on the order of the file.
    std::stable_sort(axes.begin(), axes.end(), [](const DeclaredAxis& a, const DeclaredAxis& b) {
      return std::tie(a.spec.role, a.spec.name) < std::tie(b.spec.role, b.spec.name);
    });
    out_.mesh = BuildMesh(axes, mesh_order, mesh_place, &diagnostics_);
    Each<PlanDegreeEdit>([&](const PlanDegreeEdit& e, const Edit&) {
      AtomMask mask = 0;
      for (const AxisPart& part : e.of) mask = static_cast<AtomMask>(mask | AtomsOf(part));
      for (const AxisPart& part : e.but) mask = static_cast<AtomMask>(mask & ~AtomsOf(part));
      out_.plan_degrees[e.key] = mask;
    });
    Each<RefuseEdit>([&](const RefuseEdit& e, const Edit& edit) {
      const Place place = PlaceOf(edit.author, e.parameter);
      if (e.warning) {
        diagnostics_.Warning("strategy.idle", place, e.message, e.hint);
      } else {
        diagnostics_.Error("strategy.refused", place, e.message, e.hint);
      }
    });
  }

  void StateFacts() {
    // Strategies that do nothing state nothing, so whatever is stated twice must agree.
    std::map<std::string, std::int16_t> stated;
    Each<PlanFactEdit>([&](const PlanFactEdit& e, const Edit& edit) {
      const auto [known, fresh] = stated.emplace(e.key, edit.author);
      if (fresh) {
        out_.plan_facts[e.key] = e.value;
      } else if (known->second != edit.author) {
        Clash(absl::StrCat("both say what \"", e.key, "\" of the plan is"), known->second,
              edit.author);
      }
    });
  }

  void Clash(const std::string& what, std::int16_t first, std::int16_t second) {
    Diagnostic clash;
    clash.code = "strategy.clash";
    clash.message = absl::StrCat("\"", NameOf(second), "\" and \"", NameOf(first),
                                 "\" contradict each other: ", what);
    clash.hint = absl::StrCat("leave out one of [strategy.", NameOf(first), "] and [strategy.",
                              NameOf(second), "]");
    clash.place = PlaceOf(second);
    clash.other_places.push_back(PlaceOf(first));
    // One message per pair of culprits says enough; each row would repeat it.
    for (const Diagnostic& known : diagnostics_.all()) {
      if (known.code == clash.code && known.place == clash.place &&
          known.other_places == clash.other_places)
        return;
    }
    diagnostics_.Add(std::move(clash));
  }

  void Shard(const ShardEdit& e, std::int16_t author, const Program& before) {
    const DimensionId dim = out_.program.FindDimension(e.dimension);
    const AtomMask atoms = AtomsOf(e.part);
    if (!dim.valid() || atoms == 0) return;
    for (std::size_t i = 0; i < out_.program.tensors.size(); ++i) {
      Tensor& tensor = out_.program.tensors[i];
      if (!tensor.Has(dim) || (e.which && !e.which(TensorView(before, out_.mesh, TensorId(i)))))
        continue;
      for (std::size_t a = 0; a < kMaxAtoms; ++a) {
        if (!(atoms >> a & 1)) continue;
        if (!e.must && !before.tensors[i].use.at(a).whole()) continue;
        if (!tensor.use.at(a).whole() && tensor.use.at(a) != Layout::Cut(dim)) {
          Clash(absl::StrCat("both cut \"", tensor.name, "\" along ",
                             out_.mesh.NameOf(static_cast<AtomMask>(1u << a)), ", one over ",
                             out_.program.dimension(dim).name, ", the other over ",
                             tensor.use.at(a).cut()
                                 ? out_.program.dimension(tensor.use.at(a).dim()).name
                                 : "a partial sum"),
                tensor.author[a], author);
          continue;
        }
        tensor.use.Set(a, Layout::Cut(dim));
        if (tensor.author[a] < 0) tensor.author[a] = author;
      }
    }
  }

  void Open(const OpenEdit& e, std::int16_t author) {
    const AtomMask atoms = AtomsOf(e.part);
    EachTensor(e.which, [&](Tensor& tensor) {
      for (std::size_t a = 0; a < kMaxAtoms; ++a) {
        if (!(atoms >> a & 1)) continue;
        if (!tensor.use.at(a).whole() && !tensor.use.at(a).sum()) {
          Clash(absl::StrCat("\"", tensor.name, "\" is both cut and left as an open sum"),
                tensor.author[a], author);
          continue;
        }
        tensor.use.Set(a, Layout::Sum());
        if (tensor.author[a] < 0) tensor.author[a] = author;
      }
    });
  }

  // Those of the parts, or, when there are none, of all axes with these roles.
  AtomMask AtomsOf(const std::vector<AxisPart>& parts, const std::vector<AxisRole>& roles) const {
    AtomMask mask = 0;
    for (const AxisPart& part : parts) mask = static_cast<AtomMask>(mask | AtomsOf(part));
    return static_cast<AtomMask>(mask | AtomsOf(roles));
  }

  AtomMask AtomsOf(const AxisPart& part) const { return shardlab::AtomsOf(out_.mesh, part); }
  AtomMask AtomsOf(const std::vector<AxisRole>& roles) const {
    AtomMask mask = 0;
    for (const Axis& axis : out_.mesh.axes()) {
      if (!axis.borrows && std::find(roles.begin(), roles.end(), axis.role) != roles.end()) {
        mask = static_cast<AtomMask>(mask | axis.atoms);
      }
    }
    return mask;
  }

  void State() {
    for (Tensor& tensor : out_.program.tensors)
      tensor.home = tensor.state = tensor.gradient = tensor.use;
    Each<StateEdit>([&](const StateEdit& e, const Edit& edit) {
      const AtomMask over = AtomsOf(e.over, e.roles);
      const AtomMask home = e.home_over.empty() ? over : AtomsOf(e.home_over, {});
      for (std::size_t i = 0; i < out_.program.tensors.size(); ++i) {
        Tensor& w = out_.program.tensors[i];
        if (w.role != TensorRole::kParameter) continue;
        if (e.which && !e.which(TensorView(out_.program, out_.mesh, TensorId(i)))) continue;
        if (w.state_author >= 0) {
          Clash(absl::StrCat("both say where the state of \"", w.name, "\" lives"), w.state_author,
                edit.author);
          continue;
        }
        w.state_author = edit.author;
        const AtomMask partial = PartialGradient(out_.program, TensorId(i));
        for (std::size_t a = 0; a < kMaxAtoms; ++a) {
          if (!(over & partial & (1u << a)) || !w.use.at(a).whole()) continue;
          if (e.shard_state) w.state.Set(a, Layout::Flat());
          if (e.shard_gradient) w.gradient.Set(a, Layout::Flat());
          if (e.shard_home && (home >> a & 1)) w.home.Set(a, Layout::Flat());
        }
        w.state_on_host = e.state_on_host;
        w.home_on_host = e.home_on_host;
        w.gradient_on_host = e.gradient_on_host && e.reduce_each_micro_batch;
        w.reduce_each_micro_batch = e.reduce_each_micro_batch;
        w.keep_after_forward = e.keep_after_forward;
        w.unit = e.unit;
        w.ahead = e.ahead;
        w.bucket = e.bucket;
        w.bucket_copied = e.bucket_copied;
      }
    });
  }

  void Recompute(const RecomputeEdit& e, std::int16_t author) {
    if (e.segment > 1 && !out_.program.order.empty()) {
      diagnostics_.Error("strategy.segment", PlaceOf(author, "segment"),
                         absl::StrCat("layers of two kinds take turns in this model: no ",
                                      e.segment, " neighbours of a kind share a kept input"),
                         "write segment = 1");
      return;
    }
    for (std::size_t i = 0; i < out_.program.ops.size(); ++i) {
      Op& op = out_.program.ops[i];
      if (e.which && !e.which(OpView(out_.program, OpId(i)))) continue;
      if (op.recompute && op.recompute_author != author) {
        Clash(absl::StrCat("both recompute \"", op.name, "\""), op.recompute_author, author);
        continue;
      }
      op.recompute = true;
      op.recompute_author = author;
      LayerClass& layer = out_.program.classes[op.layer_class.index()];
      if (e.whole_block) {
        layer.whole_block_recompute = true;
        layer.segment = e.segment;
        layer.every = e.every;
        layer.per_rank = e.per_rank;
      }
    }
  }

  // The sum of a gradient of which two pipeline ranks have a part is no transfer between layouts:
  // it is stated, as part of the model.
  void ShareEnds() {
    for (std::size_t c = 0; c < out_.program.classes.size(); ++c) {
      const TensorId both = out_.program.classes[c].both_ends;
      if (!both.valid()) continue;
      Declared row;
      row.name = absl::StrCat(out_.program.tensor(both).name, " gradient, both ends");
      row.why =
          "the first and the last pipeline rank each have a copy of this matrix and a part of "
          "its gradient (Megatron-LM, finalize_model_grads)";
      row.role = AxisRole::kPipeline;
      row.layer_class = ClassId(c);
      out_.derived.declared.push_back(std::move(row));
    }
  }

  TransferView View(const Step& step) const {
    TransferView view;
    view.collective = step.collective;
    view.role =
        step.collective == Collective::kHostCopy ? AxisRole::kHost : out_.mesh.RoleOf(step.group);
    view.phase = step.phase;
    view.when = step.when;
    view.gradient = step.source.gradient;
    view.tensor = &out_.program.tensor(step.source.tensor);
    view.parameter = view.tensor->role == TensorRole::kParameter;
    return view;
  }

  void Realise() {
    Each<RealiseEdit>([&](const RealiseEdit& e, const Edit& edit) {
      std::vector<Step> steps;
      for (const Step& step : out_.derived.steps) {
        if (step.kind != StepKind::kMove || step.realised ||
            step.collective == Collective::kSlice || step.collective == Collective::kHostCopy ||
            !e.which(View(step))) {
          steps.push_back(step);
          continue;
        }
        Placement via = step.source.at;
        for (std::size_t a = 0; a < kMaxAtoms; ++a) {
          if (step.group >> a & 1)
            via.Set(a, e.via(AtomId(a), step.source.at.at(a), step.target.at.at(a)));
        }
        Version at = step.source;
        for (const Placement& to : {via, step.target.at}) {
          for (const Hop& hop : Hops(at.at, to)) {
            Step part = step;
            part.source = at;
            part.target.at = hop.to;
            part.collective = hop.collective;
            part.group = hop.group;
            part.realised = true;
            part.author = edit.author;
            steps.push_back(part);
            at.at = hop.to;
          }
        }
      }
      out_.derived.steps = std::move(steps);
    });
  }

  // A hop is possible when its group holds all that its members need afterwards: of the atoms that
  // cut a dimension (or the flattened tensor) before or after, those that move must nest inside
  // those that stay. Cuts of batch and sequence do not nest.
  bool Possible(const Step& step, const std::vector<AtomId>& nesting) const {
    const Placement &source = step.source.at, &target = step.target.at;
    for (std::size_t a = 0; a < kMaxAtoms; ++a) {
      if (source.at(a) == target.at(a)) continue;  // only layouts that move can be in the way
      for (const Layout layout : {source.at(a), target.at(a)}) {
        if (Nested(layout) && !Nests(source, target, layout, nesting)) return false;
      }
    }
    return true;
  }

  bool Nested(Layout layout) const {
    return layout.flat() ||
           (layout.cut() && out_.program.dimension(layout.dim()).kind == DimensionKind::kFixed);
  }

  static bool Nests(const Placement& source, const Placement& target, Layout layout,
                    const std::vector<AtomId>& nesting) {
    bool moving = false;
    for (const AtomId atom : nesting) {
      const bool before = source.at(atom) == layout, after = target.at(atom) == layout;
      if (before != after) moving = true;
      if (moving && before && after) return false;
    }
    return true;
  }

  void RefuseImpossible() {
    const std::vector<AtomId> nesting = out_.mesh.Nesting(false);
    for (const Step& step : out_.derived.steps) {
      if (step.kind != StepKind::kMove || Possible(step, nesting)) continue;
      const std::string author = step.author >= 0 ? NameOf(step.author) : out_.program.facts.name;
      diagnostics_.Error(
          "strategy.impossible", step.author >= 0 ? PlaceOf(step.author) : Place{},
          absl::StrCat("\"", author, "\" needs a transfer that its group cannot make: ",
                       out_.program.Describe(out_.program.tensor(step.source.tensor),
                                             step.source.at, out_.mesh),
                       " to ",
                       out_.program.Describe(out_.program.tensor(step.source.tensor),
                                             step.target.at, out_.mesh),
                       " (an outer cut would move over an inner one that stays)"),
          "move the inner cut as well, or cut in another order");
      return;  // the same reason for each further one
    }
  }

  void DeclareTransfers() {
    Each<DeclareEdit>([&](const DeclareEdit& e, const Edit& edit) {
      Declared row = e.row;
      row.author = edit.author;
      row.group = static_cast<AtomMask>(row.group | AtomsOf(e.over));
      row.role = out_.mesh.RoleOf(row.group);
      for (const std::string& name : e.dimensions) {
        const DimensionId dim = out_.program.FindDimension(name);
        if (dim.valid()) row.dims.push_back(dim);
      }
      out_.derived.declared.push_back(std::move(row));
    });
  }

  void Hide() {
    std::vector<bool> decided(out_.derived.steps.size(), false);
    for (const bool must : {true, false}) {
      Each<HideEdit>([&](const HideEdit& e, const Edit&) {
        if (e.must != must) return;
        for (std::size_t i = 0; i < out_.derived.steps.size(); ++i) {
          Step& step = out_.derived.steps[i];
          if (step.kind != StepKind::kMove || decided[i] || !e.which(View(step))) continue;
          step.hide = e.behind;
          step.share = e.share;
          decided[i] = true;
          if (e.behind == HideBehind::kOp) HideUnder(e, step);
        }
      });
    }
  }

  // Blocks, where the layer has no such op.
  void HideUnder(const HideEdit& e, Step& step) const {
    step.hide = HideBehind::kNothing;
    for (std::size_t i = 0; i < out_.program.ops.size(); ++i) {
      if (out_.program.ops[i].layer_class != step.layer_class ||
          !e.under(OpView(out_.program, OpId(i))))
        continue;
      step.hide = HideBehind::kOp;
      step.op = OpId(i);
      return;
    }
  }

  void Requirements() {
    Each<RequireEdit>([&](const RequireEdit& e, const Edit& edit) {
      const AtomMask atoms = static_cast<AtomMask>(AtomsOf(e.part) | AtomsOf(e.with));
      Requirement requirement{atoms, {}, e.what, PlaceOf(edit.author, "degree"), "", ""};
      for (const std::string& name : e.dimensions) {
        const DimensionId dim = out_.program.FindDimension(name);
        if (!dim.valid()) return;  // this model has nothing of the kind
        requirement.dimensions.push_back(dim);
      }
      out_.requirements.push_back(std::move(requirement));
    });
    Each<RequireCutEdit>([&](const RequireCutEdit& e, const Edit& edit) {
      const DimensionId dim = out_.program.FindDimension(e.dimension);
      const AtomMask atoms = AtomsOf({e.role});
      bool cut = true;
      EachTensor(e.which, [&](const Tensor& t) { cut &= (atoms & ~t.use.CutOf(dim)) == 0; });
      if (!cut && atoms != 0) {
        out_.requirements.push_back(
            {atoms, {}, "", PlaceOf(edit.author, "degree"), e.message, e.hint});
      }
    });
  }

  const std::vector<StrategyUse>& uses_;
  const AccountingRules& rules_;
  Diagnostics& diagnostics_;
  RowsMemory* const memory_;
  Edited out_;
  std::vector<Edit> edits_;
};

}  // namespace

std::optional<Edited> ApplyStrategies(Program program, const std::vector<StrategyUse>& strategies,
                                      const AccountingRules& rules, const std::string& mesh_order,
                                      const Place& mesh_place, Diagnostics* diagnostics,
                                      RowsMemory* memory) {
  return Applier(std::move(program), strategies, rules, diagnostics, memory)
      .Run(mesh_order, mesh_place);
}

}  // namespace shardlab
