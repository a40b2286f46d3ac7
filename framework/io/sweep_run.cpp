#include "io/sweep_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/ordered_work.h"
#include "io/expectations.h"
#include "io/plan_document.h"
#include "io/sweep_lookup.h"
#include "io/sweep_player.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

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
  SweepOrders orders;
  std::vector<std::unique_ptr<SweepPlayer>> players(
      static_cast<std::size_t>(std::max(1, options.jobs)));
  InOrder((rest + kSweepPiece - 1) / kSweepPiece, options.jobs,
          [&](std::int64_t piece, int thread) {
            const std::int64_t first = options.first + piece * kSweepPiece,
                               past = std::min(size, first + kSweepPiece);
            if (options.elsewhere) return options.elsewhere(first, past, thread);
            std::unique_ptr<SweepPlayer>& player = players[static_cast<std::size_t>(thread)];
            if (player == nullptr)
              player = std::make_unique<SweepPlayer>(sweep, options.documents, &orders);
            return player->Play(first, past);
          },
          [&](std::int64_t, SweepPiece piece) { consume(std::move(piece)); });
}

}  // namespace shardlab
