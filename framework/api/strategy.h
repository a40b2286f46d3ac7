#pragma once
// A strategy says how tensors are cut, where state lives and what is recomputed, by recording
// edits. It never sees a degree's consequences and never names another strategy; the framework
// applies the edits of all of them phase by phase (not in the order of the file) and derives the
// collectives.
//
//   void Apply(Editor& edit) const override {
//     const AxisPart axis = edit.Axis({.name = "data", .role = AxisRole::kData, .degree =
//     degree_}); edit.Fill(axis, "batch", [](const TensorView& t) { return t.Has("batch"); });
//   }

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/plugin.h"
#include "domain/derived.h"
#include "domain/program.h"

namespace shardlab {

// An axis, one of its own atoms, or whatever axes have a role.
struct AxisPart {
  std::string axis;
  int atom = -1;  // index into AxisSpec::bounds (then the rest); -1 = all atoms of the axis
  std::optional<AxisRole> role = std::nullopt;  // instead of a name: axes that borrow no ranks
};
// All axes of a role, by whatever strategy: nothing where there are none.
inline AxisPart AxesOf(AxisRole role) { return {"", -1, role}; }

struct AxisSpec {
  std::string name;
  AxisRole role = AxisRole::kData;
  std::string parameter = "degree";  // the scenario key that says it, for messages
  int degree = 0;                    // 0 = what is left of the machine
  // Caps of the axis's atoms, major first: atom i takes gcd(what is left of the degree, size of
  // bounds[i]); a last atom takes what remains. Empty: one atom. Tensor parallelism: {"kv_heads"}.
  std::vector<std::string> bounds = {};
  // Its ranks are taken from these roles' axes (innermost ranks first) instead of multiplying the
  // world: an atom for each that there is. All but the last give what divides the degree. An axis
  // with bounds lends of each of its atoms, which keeps its task: AxisPart{axis, i} has those too.
  std::vector<AxisRole> borrow_from = {};
  // All ranks of these roles' axes belong to it too, beside what it borrows, and count in its
  // degree; but not those that an axis of that same role has borrowed.
  std::vector<AxisRole> spans = {};
};

// What a filter may ask of a tensor row, as edited so far.
class SHARDLAB_EXPORT TensorView final {
 public:
  TensorView(const Program& program, const Mesh& mesh, TensorId id)
      : program_(program), mesh_(mesh), id_(id) {}
  TensorId id() const { return id_; }
  TensorRole role() const { return program_.tensor(id_).role; }
  const std::string& name() const { return program_.tensor(id_).name; }
  bool Has(std::string_view dimension) const;
  bool CutBy(std::string_view axis) const;  // some atom of the axis cuts it already
  bool InBlock() const;                     // of a repeated block of the model, not of its ends
  const Tensor& row() const { return program_.tensor(id_); }

 private:
  const Program& program_;
  const Mesh& mesh_;
  TensorId id_;
};
using TensorFilter = std::function<bool(const TensorView&)>;

class SHARDLAB_EXPORT OpView final {
 public:
  OpView(const Program& program, OpId id) : program_(program), id_(id) {}
  OpKind kind() const { return program_.op(id_).kind; }
  const std::string& name() const { return program_.op(id_).name; }
  bool InBlock() const;
  int layer_class() const { return program_.op(id_).layer_class.value(); }

 private:
  const Program& program_;
  OpId id_;
};
using OpFilter = std::function<bool(const OpView&)>;

// What a filter may ask of a derived transfer.
struct TransferView {
  Collective collective = Collective::kAllReduce;
  AxisRole role = AxisRole::kData;  // of the group
  Phase phase = Phase::kForward;
  When when = When::kMicroBatch;
  bool parameter = false;  // of a parameter or its gradient
  bool gradient = false;
  const Tensor* tensor = nullptr;
};
using TransferFilter = std::function<bool(const TransferView&)>;

// --- the edits, as values
// -------------------------------------------------------------------------------

struct ShardEdit {  // phases shard (must) and fill
  AxisPart part;
  std::string dimension;
  TensorFilter which;
  bool must = true;
};
struct OpenEdit {  // phase shard: leave a partial sum open through an op that is linear in it
  AxisPart part;
  TensorFilter which;
};
// Phase state: where parameters, gradients and optimizer state live. Sharding is over the atoms of
// `over` along which the parameter's gradient is partial, as a cut of the flattened tensor.
struct StateEdit {
  TensorFilter which;          // among parameters
  std::vector<AxisPart> over;  // and all axes with a role in `roles`
  std::vector<AxisRole> roles;
  bool shard_state = true;               // optimizer state
  bool shard_gradient = false;           // what is kept between micro-batches
  bool shard_home = false;               // the weights between uses
  std::vector<AxisPart> home_over = {};  // which of those atoms cut the home; empty: all of them
  bool reduce_each_micro_batch = false;
  bool keep_after_forward = false;
  // What lies in the memory of the host: optimizer state (and the optimizer works there), weights
  // between uses, gradients between micro-batches (of those that are reduced after each).
  bool state_on_host = false, home_on_host = false, gradient_on_host = false;
  // Elements of what is reduced or gathered in one call at the end of the step; 0: those of a
  // layer. Copied: gradients are copied together for that, and a call's worth of memory is held.
  double bucket = 0;
  bool bucket_copied = false;
  // With shard_home: layers that are gathered as one, and how many of these ahead of their use.
  int unit = 1;
  int ahead = 1;
};
struct RecomputeEdit {       // phase activations
  OpFilter which;            // ops whose outputs are not kept
  bool whole_block = false;  // replay all of a block, its last collective too, from its kept input
  int segment = 1;           // whole_block: layers that share one kept input
  // whole_block: of so many layers only the first, or only so many of each pipeline rank; 0: all.
  int every = 1, per_rank = 0;
};
struct KeepMovedEdit {  // phase activations: saved as used (gathered) instead of as stored (the
                        // slice)
  TensorFilter which;
};
struct RetypeEdit {
  TensorFilter which;
  DtypeSlot dtype;
};
struct ScaleEdit {
  TensorFilter which;
  double factor = 1;
};
// All-to-alls of these tensors send a token's row to each scale-up domain once, where it is passed
// on to the ranks that need it. `copies` rows are one token's; they go to `domains` at most, 0:
// any.
struct SendOnceEdit {
  TensorFilter which;
  double copies = 1;
  int domains = 0;
};
struct HideEdit {  // phase realise: what hides a transfer; the first edit with must wins over fills
  TransferFilter which;
  HideBehind behind = HideBehind::kNothing;
  double share = 0;
  bool must = true;
  OpFilter under = {};  // kOp: the op of the transfer's own layer that hides it
};
// Phase realise: a transfer goes through other placements on its way. `via` maps the layout of each
// atom of the group; {kSum -> kFlat} turns an all-reduce into a reduce-scatter and an all-gather.
// An atom for which `via` gives the old layout moves in the second step only: a two-level
// reduction.
struct RealiseEdit {
  TransferFilter which;
  std::function<Layout(AtomId atom, Layout from, Layout to)> via;
};
struct RequireEdit {  // the product of the dimensions divides by the part's degree; checked for
                      // every plan
  AxisPart part;
  std::vector<std::string> dimensions;
  std::string what;                 // "attention heads": the framework writes the number before it
  std::vector<AxisRole> with = {};  // the degrees of these roles' axes multiply the part's
};
// Wherever an axis of the role has more than one rank, these tensors must be cut along the
// dimension over all of its ranks, by whatever strategy.
struct RequireCutEdit {
  AxisRole role = AxisRole::kTensor;
  std::string dimension;
  TensorFilter which;
  std::string message, hint;
};
struct RefuseEdit {  // a parameter that does not fit this program, or (warning) does nothing to it
  std::string parameter, message, hint;
  bool warning = false;
};
struct DeclareEdit {
  Declared row;
  std::vector<AxisRole> over;  // all axes with these roles
  std::vector<std::string> dimensions;
};
// A number, word or flag for `plan` in the report: zero_stage = 1. Stated only by a strategy that
// does something; two that state the same contradict each other.
struct PlanFactEdit {
  std::string key;
  Value value;
};

struct PlanDegreeEdit {  // the same, a number of ranks: `of` without `but`
  std::string key;
  std::vector<AxisPart> of, but;
};

using EditVerb =
    std::variant<AxisSpec, ShardEdit, OpenEdit, StateEdit, RecomputeEdit, KeepMovedEdit, RetypeEdit,
                 ScaleEdit, SendOnceEdit, HideEdit, RealiseEdit, RequireEdit, RequireCutEdit,
                 RefuseEdit, DeclareEdit, PlanFactEdit, PlanDegreeEdit>;

struct Edit {
  EditVerb verb;
  std::int16_t author = -1;  // set by the framework
};

// Records edits; applied later. `program()` shows the model's rows, uncut.
class SHARDLAB_EXPORT Editor final {
 public:
  Editor(const Program& program, const AccountingRules& rules) : program_(program), rules_(rules) {}

  const Program& program() const { return program_; }
  bool Fact(const std::string& name, bool otherwise) const;

  AxisPart Axis(AxisSpec spec);
  void Shard(AxisPart part, std::string dimension, TensorFilter which);
  void Fill(AxisPart part, std::string dimension, TensorFilter which);
  void Open(AxisPart part, TensorFilter which);
  void State(StateEdit edit);
  void Recompute(RecomputeEdit edit);
  void KeepMoved(TensorFilter which);
  void Retype(TensorFilter which, DtypeSlot dtype);
  void Scale(TensorFilter which, double factor);
  void SendOnce(SendOnceEdit edit);
  void Hide(HideEdit edit);
  void Realise(TransferFilter which, std::function<Layout(AtomId, Layout, Layout)> via);
  void Require(AxisPart part, std::vector<std::string> dimensions, std::string what,
               std::vector<AxisRole> with = {});
  void RequireCut(RequireCutEdit edit);
  void Refuse(std::string parameter, std::string message, std::string hint);
  void Warn(std::string parameter, std::string message, std::string hint);
  void Declare(Declared row, std::vector<AxisRole> over, std::vector<std::string> dimensions);
  void PlanFact(std::string key, Value value);
  void PlanDegree(std::string key, std::vector<AxisPart> of, std::vector<AxisPart> but = {});

  const std::vector<Edit>& edits() const { return edits_; }

 private:
  const Program& program_;
  const AccountingRules& rules_;
  std::vector<Edit> edits_;
};

class SHARDLAB_EXPORT Strategy : public Plugin {
 public:
  static constexpr const char* kKind = "strategy";
  static constexpr int kInterfaceVersion = 1;
  ~Strategy() override;
  // Runs once per composition. Edits of all strategies commute inside a phase; a clash is the
  // framework's error.
  virtual void Apply(Editor& edit) const = 0;
};

}  // namespace shardlab
