#include "io/sweep_run.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/ordered_work.h"
#include "io/expectations.h"
#include "io/parameter_io.h"
#include "io/plan_document.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using Scalar = Condition::Scalar;

std::optional<Scalar> ScalarOf(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  return std::nullopt;
}

// A cell holds a scalar: lists and tables are their text.
Json Flat(const Value& value) {
  Json json = ValueToJson(value);
  if (json.is_array() || json.is_object()) return json.dump();
  return json;
}

const Json* AtDotted(const Json& json, const std::string& path) {
  const Json* at = &json;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    if (!at->is_object()) return nullptr;
    const auto found = at->find(path.substr(from, dot - from));
    if (found == at->end()) return nullptr;
    at = &*found;
    from = dot + 1;
  }
  return at;
}

// A key of the scenario as it stands for a combination, or as its default.
std::optional<Scalar> KeyValue(const Scenario& with, const Json& defaults,
                               const std::string& name) {
  if (const Value* value = with.root.FindPath(name)) return ScalarOf(ValueToJson(*value));
  const Json* json = AtDotted(defaults, name);
  return json != nullptr ? ScalarOf(*json) : std::nullopt;
}

// What is wrong however degrees are chosen, rather than an illegal combination of them.
bool IsMistake(const Diagnostic& d) {
  static const std::vector<std::string> kCodes = {
      "key.",      "toml.", "plugin.", "value.", "file.",        "precision.",
      "software.", "set.",  "csv.",    "hf.",    "model.preset", "mesh.order"};
  return d.severity == Severity::kError &&
         std::any_of(kCodes.begin(), kCodes.end(),
                     [&](const std::string& code) { return d.code.rfind(code, 0) == 0; });
}

class MistakeFinder {
 public:
  MistakeFinder(const PluginRegistry& registry, const Scenario& scenario, const SweepTable& table,
                Diagnostics* diagnostics)
      : registry_(registry), scenario_(scenario), table_(table), diagnostics_(*diagnostics) {}

  // Each value once, the others at their first. A mistake of every combination is the file's; one
  // at a value is the value's; others belong to their combination.
  void Find(Json* defaults, std::string* name) {
    std::int64_t stride = table_.size();
    std::vector<Diagnostics> all;
    all.push_back(Try(0, defaults, name));
    for (const SweepGroup& group : table_.groups) {
      stride /= static_cast<std::int64_t>(group.values.size());
      const std::size_t most = std::min(group.values.size(), kMostTried);
      for (std::size_t step = 1; step < most; ++step)
        all.push_back(Try(static_cast<std::int64_t>(step) * stride, nullptr, nullptr));
    }
    for (const Diagnostics& one : all) {
      for (const Diagnostic& d : one.all()) {
        if (IsMistake(d) && !Told(d) && (IsAtValue(d) || InAll(d, all))) diagnostics_.Add(d);
      }
    }
  }

 private:
  static constexpr std::size_t kMostTried = 200;

  Diagnostics Try(std::int64_t combination, Json* defaults, std::string* name) {
    Diagnostics diagnostics;
    const Scenario with =
        WithValues(scenario_, table_.Keys(), table_.At(combination), &diagnostics);
    ComposedScenario composed = ComposeScenario(registry_, with, &diagnostics);
    if (defaults != nullptr) *defaults = std::move(composed.resolved);
    if (name != nullptr) *name = composed.name;
    return diagnostics;
  }

  bool IsAtValue(const Diagnostic& d) const {
    for (const SweepGroup& group : table_.groups) {
      for (const std::vector<Value>& step : group.values) {
        for (const Value& value : step) {
          if (value.place.line == d.place.line && value.place.column == d.place.column &&
              value.place.line > 0)
            return true;
        }
      }
    }
    return false;
  }

  static bool Same(const Diagnostic& a, const Diagnostic& b) {
    // A key that is not there is so whatever its value: one mistake, told at the first.
    const bool placed = a.code != "key.unknown";
    return a.code == b.code && a.message == b.message && (!placed || a.place == b.place);
  }
  static bool InAll(const Diagnostic& d, const std::vector<Diagnostics>& all) {
    return std::all_of(all.begin(), all.end(), [&](const Diagnostics& one) {
      return std::any_of(one.all().begin(), one.all().end(),
                         [&](const Diagnostic& other) { return Same(d, other); });
    });
  }
  bool Told(const Diagnostic& d) const {
    return std::any_of(diagnostics_.all().begin(), diagnostics_.all().end(),
                       [&](const Diagnostic& other) { return Same(d, other); });
  }

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  const SweepTable& table_;
  Diagnostics& diagnostics_;
};

// Names that stand for nothing are told before anything is played.
void CheckWhen(const Sweep& sweep, Diagnostics* diagnostics) {
  if (!sweep.table.when) return;
  const Condition& when = *sweep.table.when;
  Diagnostics ignored;
  const Scenario with = WithValues(sweep.scenario, sweep.table.Keys(), sweep.table.At(0), &ignored);
  std::vector<std::string> known;
  for (const SweptKey* key : sweep.table.Keys()) known.push_back(key->key);
  bool good = true;
  for (const auto& [name, place] : when.names()) {
    if (KeyValue(with, sweep.defaults, name)) continue;
    good = false;
    const std::string near = Nearest(name, known);
    diagnostics->Error("condition.name", place,
                       absl::StrCat("\"", name, "\" is no key of this scenario with one value"),
                       near.empty() ? absl::StrCat("varied: ", Enumerate(known))
                                    : absl::StrCat("did you mean \"", near, "\"?"));
  }
  std::string problem;
  const auto look_up = [&](const std::string& name) {
    return KeyValue(with, sweep.defaults, name);
  };
  if (good && !when.Holds(look_up, &problem))
    diagnostics->Error("condition.value", when.place(),
                       absl::StrCat("the condition cannot be decided: ", problem));
}

std::optional<Scalar> InDocument(const Json& document, const std::string& name) {
  std::string problem, hint;
  if (const Json* found = AtPath(document, name, &problem, &hint)) return ScalarOf(*found);
  const Json* key = AtDotted(document["resolved"], name);
  return key != nullptr ? ScalarOf(*key) : std::nullopt;
}

// As CheckWhen, of a plan document; the first legal combination has one.
void CheckKeep(const Sweep& sweep, Diagnostics* diagnostics) {
  if (!sweep.table.keep) return;
  const Condition& keep = *sweep.table.keep;
  constexpr std::int64_t kMostTried = 64;
  const std::int64_t size = sweep.table.size(), tried = std::min(size, kMostTried);
  for (std::int64_t i = 0; i < tried; ++i) {
    Diagnostics own;
    const Scenario with =
        WithValues(sweep.scenario, sweep.table.Keys(), sweep.table.At(i * (size / tried)), &own);
    const PlannedScenario planned = PlanScenario(*sweep.registry, with, &own);
    if (own.HasErrors() || planned.composed.composition == nullptr) continue;
    const Json document = PlanDocument(planned, own);
    bool good = true;
    for (const auto& [name, place] : keep.names()) {
      if (InDocument(document, name)) continue;
      good = false;
      std::string problem, hint;
      if (AtPath(document, name, &problem, &hint) != nullptr)
        problem = absl::StrCat("\"", name, "\" is no single value");
      diagnostics->Error("condition.name", place, problem, hint);
    }
    std::string problem;
    const auto look_up = [&](const std::string& name) { return InDocument(document, name); };
    if (good && !keep.Holds(look_up, &problem))
      diagnostics->Error("condition.value", keep.place(),
                         absl::StrCat("the condition cannot be decided: ", problem));
    return;
  }
}

class Piece {
 public:
  Piece(const Sweep& sweep, bool documents) : sweep_(sweep), documents_(documents) {
    keys_ = sweep.table.Keys();
  }

  SweepPiece Run(std::int64_t first, std::int64_t past) {
    piece_.first = first;
    piece_.past = past;
    for (std::int64_t i = first; i < past; ++i) One(i);
    return std::move(piece_);
  }

 private:
  void One(std::int64_t combination) {
    ++piece_.counts.considered;
    Diagnostics diagnostics;
    const std::vector<const Value*> values = sweep_.table.At(combination);
    const Scenario with = WithValues(sweep_.scenario, keys_, values, &diagnostics);
    if (!When(with)) {
      ++piece_.counts.pruned;
      return;
    }
    SweepRow row;
    row.combination = combination;
    for (std::size_t i = 0; i < keys_.size(); ++i)
      row.keys.emplace_back(keys_[i]->key, Flat(*values[i]));
    PlannedScenario planned;
    if (!diagnostics.HasErrors()) planned = PlanScenario(*sweep_.registry, with, &diagnostics);
    if (diagnostics.HasErrors() || planned.composed.composition == nullptr) {
      Illegal(diagnostics, std::move(row));
    } else {
      Legal(planned, diagnostics, std::move(row));
    }
  }

  bool When(const Scenario& with) const {
    if (!sweep_.table.when) return true;
    std::string problem;
    const auto look_up = [&](const std::string& name) {
      return KeyValue(with, sweep_.defaults, name);
    };
    // What cannot be decided (a word among numbers) is played rather than lost.
    return sweep_.table.when->Holds(look_up, &problem).value_or(true);
  }

  void Illegal(const Diagnostics& diagnostics, SweepRow row) {
    ++piece_.counts.illegal;
    std::vector<std::string> reasons;
    for (const Diagnostic& d : diagnostics.all()) {
      if (d.severity == Severity::kError) reasons.push_back(d.message);
    }
    row.reason = absl::StrJoin(reasons, "; ");
    if (documents_) row.document = Document(row, Json::object());
    piece_.rows.push_back(std::move(row));
  }

  void Legal(const PlannedScenario& planned, const Diagnostics& diagnostics, SweepRow row) {
    ++piece_.counts.evaluated;
    if (!planned.explanation.evaluation.fits) ++piece_.counts.not_fitting;
    Json document = PlanDocument(planned, diagnostics);
    for (Json& constant : document["provenance"]) {
      if (std::find(piece_.provenance.begin(), piece_.provenance.end(), constant) ==
          piece_.provenance.end())
        piece_.provenance.push_back(std::move(constant));
    }
    document.erase("provenance");  // once for all rows
    if (!Keep(document)) {
      ++piece_.counts.filtered;
      return;
    }
    row.legal = true;
    for (Cell& cell : ScalarPaths(document, {"plan", "memory", "time", "throughput"})) {
      if (!cell.second.is_null()) row.cells.push_back(std::move(cell));
    }
    if (documents_) row.document = Document(row, document);
    piece_.rows.push_back(std::move(row));
  }

  bool Keep(const Json& document) {
    if (!sweep_.table.keep) return true;
    std::string problem;
    const auto look_up = [&](const std::string& name) { return InDocument(document, name); };
    const std::optional<bool> keep = sweep_.table.keep->Holds(look_up, &problem);
    if (!keep && piece_.problem.empty()) piece_.problem = problem;
    return keep.value_or(true);
  }

  static std::string Document(const SweepRow& row, const Json& plan) {
    Json document = {{"combination", row.combination},
                     {"legal", row.legal ? 1 : 0},
                     {"reason", row.reason},
                     {"keys", Json::object()}};
    if (row.legal) document.erase("reason");
    for (const auto& [key, value] : row.keys) document["keys"][key] = value;
    for (const auto& [key, value] : plan.items()) document[key] = value;
    return document.dump();
  }

  const Sweep& sweep_;
  bool documents_;
  std::vector<const SweptKey*> keys_;
  SweepPiece piece_;
};

}  // namespace

Json CountsToJson(const SweepCounts& counts) {
  return {{"considered", counts.considered},   {"illegal", counts.illegal},
          {"not_fitting", counts.not_fitting}, {"pruned", counts.pruned},
          {"evaluated", counts.evaluated},     {"filtered", counts.filtered}};
}

void Add(const SweepCounts& more, SweepCounts* counts) {
  counts->considered += more.considered;
  counts->illegal += more.illegal;
  counts->pruned += more.pruned;
  counts->evaluated += more.evaluated;
  counts->not_fitting += more.not_fitting;
  counts->filtered += more.filtered;
}

std::optional<Sweep> ReadSweep(const PluginRegistry& registry, const Scenario& scenario,
                               Diagnostics* diagnostics) {
  if (scenario.root.kind != Value::kTable) return std::nullopt;
  std::optional<SweepTable> table = ReadSweepTable(scenario, diagnostics);
  if (!table) {
    // The rest of the file is read all the same: all mistakes at once.
    Diagnostics of_file;
    ComposeScenario(registry, scenario, &of_file);
    for (const Diagnostic& d : of_file.all()) {
      if (IsMistake(d)) diagnostics->Add(d);
    }
    return std::nullopt;
  }
  Sweep sweep;
  sweep.registry = &registry;
  sweep.scenario = scenario;
  sweep.table = std::move(*table);
  sweep.canonical = ToToml(scenario.root);
  MistakeFinder(registry, scenario, sweep.table, diagnostics).Find(&sweep.defaults, &sweep.name);
  if (diagnostics->HasErrors()) return std::nullopt;
  CheckWhen(sweep, diagnostics);
  CheckKeep(sweep, diagnostics);
  if (diagnostics->HasErrors()) return std::nullopt;
  return sweep;
}

void RunSweep(const Sweep& sweep, const SweepOptions& options,
              const std::function<void(SweepPiece)>& consume) {
  const std::int64_t size = sweep.table.size(),
                     rest = std::max<std::int64_t>(0, size - options.first);
  InOrder((rest + kSweepPiece - 1) / kSweepPiece, options.jobs,
          [&](std::int64_t piece, int) {
            const std::int64_t first = options.first + piece * kSweepPiece;
            return Piece(sweep, options.documents).Run(first, std::min(size, first + kSweepPiece));
          },
          [&](std::int64_t, SweepPiece piece) { consume(std::move(piece)); });
}

}  // namespace shardlab
