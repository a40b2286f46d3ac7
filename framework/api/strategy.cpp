#include "api/strategy.h"

#include <utility>

namespace shardlab {

bool TensorView::Has(std::string_view dimension) const {
  const DimensionId id = program_.FindDimension(dimension);
  return id.valid() && row().Has(id);
}

bool TensorView::CutBy(std::string_view axis) const {
  const AxisId id = mesh_.Find(axis);
  return id.valid() && (row().use.AnyCut() & mesh_.axis(id).atoms) != 0;
}

bool TensorView::InBlock() const { return program_.layer_class(row().layer_class).block; }

bool OpView::InBlock() const { return program_.layer_class(program_.op(id_).layer_class).block; }

bool Editor::Fact(const std::string& name, bool otherwise) const {
  const auto it = rules_.facts.find(name);
  return it == rules_.facts.end() ? otherwise : it->second;
}

AxisPart Editor::Axis(AxisSpec spec) {
  AxisPart part{spec.name, -1};
  edits_.push_back({std::move(spec), -1});
  return part;
}

void Editor::Shard(AxisPart part, std::string dimension, TensorFilter which) {
  edits_.push_back({ShardEdit{std::move(part), std::move(dimension), std::move(which), true}, -1});
}

void Editor::Fill(AxisPart part, std::string dimension, TensorFilter which) {
  edits_.push_back({ShardEdit{std::move(part), std::move(dimension), std::move(which), false}, -1});
}

void Editor::Open(AxisPart part, TensorFilter which) {
  edits_.push_back({OpenEdit{std::move(part), std::move(which)}, -1});
}

void Editor::State(StateEdit edit) { edits_.push_back({std::move(edit), -1}); }

void Editor::Recompute(RecomputeEdit edit) { edits_.push_back({std::move(edit), -1}); }

void Editor::KeepMoved(TensorFilter which) {
  edits_.push_back({KeepMovedEdit{std::move(which)}, -1});
}

void Editor::Retype(TensorFilter which, DtypeSlot dtype) {
  edits_.push_back({RetypeEdit{std::move(which), dtype}, -1});
}

void Editor::Scale(TensorFilter which, double factor) {
  edits_.push_back({ScaleEdit{std::move(which), factor}, -1});
}

void Editor::SendOnce(SendOnceEdit edit) { edits_.push_back({std::move(edit), -1}); }

void Editor::Hide(HideEdit edit) { edits_.push_back({std::move(edit), -1}); }

void Editor::Realise(TransferFilter which, std::function<Layout(AtomId, Layout, Layout)> via) {
  edits_.push_back({RealiseEdit{std::move(which), std::move(via)}, -1});
}

void Editor::Require(AxisPart part, std::vector<std::string> dimensions, std::string what,
                     std::vector<AxisRole> with) {
  edits_.push_back(
      {RequireEdit{std::move(part), std::move(dimensions), std::move(what), std::move(with)}, -1});
}

void Editor::RequireCut(RequireCutEdit edit) { edits_.push_back({std::move(edit), -1}); }

void Editor::Refuse(std::string parameter, std::string message, std::string hint) {
  edits_.push_back({RefuseEdit{std::move(parameter), std::move(message), std::move(hint)}, -1});
}

void Editor::Warn(std::string parameter, std::string message, std::string hint) {
  edits_.push_back(
      {RefuseEdit{std::move(parameter), std::move(message), std::move(hint), true}, -1});
}

void Editor::Declare(Declared row, std::vector<AxisRole> over,
                     std::vector<std::string> dimensions) {
  edits_.push_back({DeclareEdit{std::move(row), std::move(over), std::move(dimensions)}, -1});
}

void Editor::PlanFact(std::string key, Value value) {
  edits_.push_back({PlanFactEdit{std::move(key), std::move(value)}, -1});
}

void Editor::PlanDegree(std::string key, std::vector<AxisPart> of, std::vector<AxisPart> but) {
  edits_.push_back({PlanDegreeEdit{std::move(key), std::move(of), std::move(but)}, -1});
}

}  // namespace shardlab
