#include "io/sweep_player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "io/parameter_io.h"
#include "io/plan_document.h"
#include "io/sweep_lookup.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using Scalar = Condition::Scalar;

// A cell holds a scalar: lists and tables are their text.
Json Flat(const Value& value) {
  Json json = ValueToJson(value);
  if (json.is_array() || json.is_object()) return json.dump();
  return json;
}

std::string Document(const SweepRow& row, const Json& plan) {
  Json document = {{"combination", row.combination},
                   {"legal", row.legal ? 1 : 0},
                   {"reason", row.reason},
                   {"keys", Json::object()}};
  if (row.legal) document.erase("reason");
  for (const auto& [key, value] : row.keys) document["keys"][key] = value;
  for (const auto& [key, value] : plan.items()) document[key] = value;
  return document.dump();
}

}  // namespace

SweepPlayer::SweepPlayer(const Sweep& sweep, bool documents, SweepOrders* orders)
    : sweep_(sweep),
      documents_(documents),
      keys_(sweep.table.Keys()),
      layouts_(sweep, orders),
      steps_(sweep.table.groups.size()),
      values_(keys_.size()) {
  Cells::NameList names;
  for (const SweptKey* key : keys_) names.push_back(key->key);
  key_names_ = std::make_shared<const Cells::NameList>(std::move(names));
  for (std::size_t g = 0; g < sweep.table.groups.size(); ++g) {
    const SweepGroup& group = sweep.table.groups[g];
    for (std::size_t m = 0; m < group.keys.size(); ++m) places_.emplace_back(g, m);
    shown_.emplace_back();
    for (const std::vector<Value>& step : group.values) {
      shown_.back().emplace_back();
      for (const Value& value : step) shown_.back().back().push_back(Flat(value));
    }
  }
  // A name of `when` is a swept key, or the same in every combination.
  if (!sweep.table.when) return;
  for (const auto& [name, place] : sweep.table.when->names()) {
    WhenName one{name, -1, KeyValue(sweep.scenario, sweep.defaults, name)};
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const std::string path = absl::StrJoin(keys_[k]->path, ".");
      if (path == name) one.key = static_cast<int>(k);
      when_by_name_ = when_by_name_ && name.rfind(path + ".", 0) != 0;
    }
    when_names_.push_back(std::move(one));
  }
}

SweepPiece SweepPlayer::Play(std::int64_t first, std::int64_t past) {
  piece_ = {};
  piece_.first = first;
  piece_.past = past;
  noted_.assign(noted_.size(), false);
  for (std::int64_t i = first; i < past; ++i) One(i);
  return std::move(piece_);
}

// As SweepTable::At, into what is there already.
void SweepPlayer::Step(std::int64_t combination) {
  const std::vector<SweepGroup>& groups = sweep_.table.groups;
  for (std::size_t g = groups.size(); g-- > 0;) {
    const auto n = static_cast<std::int64_t>(groups[g].values.size());
    steps_[g] = static_cast<int>(combination % n);
    combination /= n;
  }
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const auto [g, m] = places_[k];
    values_[k] = &groups[g].values[static_cast<std::size_t>(steps_[g])][m];
  }
}

SweepRow SweepPlayer::Begun(std::int64_t combination) const {
  SweepRow row;
  row.combination = combination;
  std::vector<Json> keys;
  keys.reserve(keys_.size());
  for (const auto& [g, m] : places_)
    keys.push_back(shown_[g][static_cast<std::size_t>(steps_[g])][m]);
  row.keys = Cells(key_names_, std::move(keys));
  return row;
}

void SweepPlayer::One(std::int64_t combination) {
  ++piece_.counts.considered;
  Step(combination);
  if (!When()) {
    ++piece_.counts.pruned;
    return;
  }
  SweepRow row = Begun(combination);
  if (documents_ || !KeepsByRow() || !OfLayout(&row)) Alone(std::move(row));
}

bool SweepPlayer::When() {
  if (!sweep_.table.when) return true;
  std::string problem;
  std::optional<bool> holds;
  if (when_by_name_) {
    const auto look_up = [&](const std::string& name) -> std::optional<Scalar> {
      for (const WhenName& one : when_names_) {
        if (one.name != name) continue;
        if (one.key < 0) return one.fixed;
        return ScalarOf(ValueToJson(*values_[static_cast<std::size_t>(one.key)]));
      }
      return std::nullopt;
    };
    holds = sweep_.table.when->Holds(look_up, &problem);
  } else {
    Diagnostics ignored;
    const Scenario with = WithValues(sweep_.scenario, keys_, values_, &ignored);
    const auto look_up = [&](const std::string& name) {
      return KeyValue(with, sweep_.defaults, name);
    };
    holds = sweep_.table.when->Holds(look_up, &problem);
  }
  // What cannot be decided (a word among numbers) is played rather than lost.
  return holds.value_or(true);
}

// `keep` may name more of a document than a row has.
bool SweepPlayer::KeepsByRow() const {
  if (!sweep_.table.keep) return true;
  const auto& names = sweep_.table.keep->names();
  return std::all_of(names.begin(), names.end(), [&](const auto& one) {
    const std::string& name = one.first;
    for (const char* section : {"plan.", "memory.", "time.", "throughput."}) {
      if (name.rfind(section, 0) == 0) return true;
    }
    return layouts_.IsPlanNumber(name);
  });
}

bool SweepPlayer::OfLayout(SweepRow* row) {
  SweepLayout* layout = layouts_.Of(steps_, values_);
  if (layout == nullptr) return false;
  Diagnostics diagnostics;
  const std::optional<Plan> plan = layout->MakePlan(&diagnostics);
  if (!plan) {
    Illegal(diagnostics, std::move(*row));
    return true;
  }
  if (!layout->Evaluate(*plan)) return false;
  Cells cells = layout->Row(*plan, &names_);
  bool known = true;
  const auto look_up = [&](const std::string& name) -> std::optional<Scalar> {
    if (const Json* cell = SweepLayout::Find(cells, name)) return ScalarOf(*cell);
    if (layouts_.IsPlanNumber(name)) {
      for (std::size_t k = 0; k < keys_.size(); ++k) {
        if (keys_[k]->key == name) return static_cast<double>(values_[k]->integer);
      }
    }
    known = false;
    return std::nullopt;
  };
  // Asked before anything is counted: with a name that a row lacks all is done the long way.
  if (sweep_.table.keep) {
    for (const auto& [name, place] : sweep_.table.keep->names()) look_up(name);
    if (!known) return false;
  }
  ++piece_.counts.evaluated;
  if (!layout->summary().evaluation.fits) ++piece_.counts.not_fitting;
  Note(layout->constants(plan->pipeline > 1));
  if (!Keep(look_up)) return true;
  row->legal = true;
  row->cells = std::move(cells);
  piece_.rows.push_back(std::move(*row));
  return true;
}

void SweepPlayer::Alone(SweepRow row) {
  Diagnostics diagnostics;
  const Scenario with = WithValues(sweep_.scenario, keys_, values_, &diagnostics);
  PlannedScenario planned;
  if (!diagnostics.HasErrors()) planned = PlanScenario(*sweep_.registry, with, &diagnostics);
  if (diagnostics.HasErrors() || planned.composed.composition == nullptr)
    return Illegal(diagnostics, std::move(row));
  ++piece_.counts.evaluated;
  if (!planned.explanation.evaluation.fits) ++piece_.counts.not_fitting;
  Json document = PlanDocument(planned, diagnostics);
  Note(layouts_.constants().Add(document["provenance"]));
  document.erase("provenance");  // once for all rows
  if (!Keep([&](const std::string& name) { return InDocument(document, name); })) return;
  row.legal = true;
  Cells::NameList names;
  std::vector<Json> values;
  for (Cell& cell : ScalarPaths(document, {"plan", "memory", "time", "throughput"})) {
    if (cell.second.is_null()) continue;
    names.push_back(std::move(cell.first));
    values.push_back(std::move(cell.second));
  }
  row.cells = Cells(names_.Of(std::move(names)), std::move(values));
  if (documents_) row.document = Document(row, document);
  piece_.rows.push_back(std::move(row));
}

void SweepPlayer::Illegal(const Diagnostics& diagnostics, SweepRow row) {
  ++piece_.counts.illegal;
  std::vector<std::string> reasons;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError) reasons.push_back(d.message);
  }
  row.reason = absl::StrJoin(reasons, "; ");
  if (documents_) row.document = Document(row, Json::object());
  piece_.rows.push_back(std::move(row));
}

bool SweepPlayer::Keep(const Condition::LookUp& look_up) {
  if (!sweep_.table.keep) return true;
  std::string problem;
  const std::optional<bool> keep = sweep_.table.keep->Holds(look_up, &problem);
  if (!keep && piece_.problem.empty()) piece_.problem = problem;
  if (!keep.value_or(true)) {
    ++piece_.counts.filtered;
    return false;
  }
  return true;
}

void SweepPlayer::Note(const std::vector<int>& constants) {
  if (noted_.size() < layouts_.constants().size()) noted_.resize(layouts_.constants().size());
  for (const int id : constants) {
    if (noted_[static_cast<std::size_t>(id)]) continue;
    noted_[static_cast<std::size_t>(id)] = true;
    piece_.provenance.push_back(layouts_.constants().at(id));
  }
}

}  // namespace shardlab
