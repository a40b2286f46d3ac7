#include "io/compose_scenario.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/model.h"
#include "base/text.h"
#include "core/edits.h"
#include "io/compose_plugins.h"
#include "io/compose_settings.h"
#include "io/compose_tables.h"
#include "io/guarded.h"
#include "io/import_hf.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

class Composer final : ComposeTables {
 public:
  Composer(ComposeState* state, ComposeWhat what)
      : ComposeTables(state), what_(what), plugins_(state), settings_(state) {}

  void Run() {
    if (scenario_.root.kind != Value::kTable) return;
    for (const Override& set : scenario_.overrides) {
      out_.overrides.push_back(absl::StrCat(set.key, " = ", ToToml(set.value)));
    }
    settings_.TopLevel();
    if (!accounting_) return;
    settings_.StrategyDefaults();
    settings_.ReadPrecision();
    settings_.ReadTraining();
    ReadMesh();
    ReadModel();
    ReadHardware();
    ReadOptimizer();
    ReadStrategies();
    ReadSchedule();
    if (diagnostics_.HasErrors()) return;
    Compose();
  }

 private:
  // All that initialising a plugin depends on, beside the file that the scenario stands in.
  std::string KeyOf(const std::string& kind, const std::string& name, const std::string& path,
                    const Value* table) const {
    const Value* defaults = Defaults(path);
    const Precision& p = precision_;
    std::string key = absl::StrCat(kind, " ", name, "\n", table != nullptr ? ToToml(*table) : "",
                                   "\n", defaults != nullptr ? ToToml(*defaults) : "", "\n",
                                   accounting_->rules.name, " ", out_.software, "\n", p.recipe);
    for (const Dtype dtype :
         {p.parameters, p.compute, p.gradients, p.gradient_reduce, p.master, p.moments})
      absl::StrAppend(&key, " ", Name(dtype));
    absl::StrAppend(&key, " ", ShortNumber(p.weight_copies));
    // A network is connected to its machine.
    if (kind == Network::kKind) absl::StrAppend(&key, "\n", hardware_key_);
    return key;
  }

  // One that has been initialised with the same parameters; its reader answers where they stand. Of
  // a model its rows are kept, and there is no plugin.
  std::optional<Loaded> Reuse(const std::string& kind, const std::string& key,
                              const std::string& name, const Value* table, const std::string& path,
                              std::vector<std::string> reserved) {
    Loaded loaded;
    if (kind == Model::kKind) {
      program_ = memory_->Find(memory_->programs, ProgramKey(key));
      if (!program_) return std::nullopt;
    } else {
      const auto known = memory_->Find(memory_->plugins, key);
      if (!known) return std::nullopt;
      loaded.plugin = *known;
    }
    loaded.name = name;
    loaded.key = key;
    loaded.reused = true;
    loaded.reader = std::make_shared<ParameterReader>(
        table, PlaceOfTable(table, path), std::move(reserved), &diagnostics_, Defaults(path));
    return loaded;
  }

  double LossBytes() const {
    const auto& numbers = accounting_->rules.numbers;
    const auto it = numbers.find("loss.bytes_per_logit");
    return it == numbers.end() ? 0 : it->second.value;
  }
  bool WeightsInsideExperts() const {
    const auto& facts = accounting_->rules.facts;
    const auto it = facts.find("experts.weights_inside");
    return it != facts.end() && it->second;
  }

  std::string ProgramKey(const std::string& model_key) const {
    return absl::StrCat(model_key, "\n", ShortNumber(training_.sequence_length), " ",
                        ShortNumber(training_.dropout), " ", training_.eager_attention, " ",
                        ShortNumber(LossBytes()), " ", WeightsInsideExperts());
  }

  // The plugin that a table names, or the default; read, initialised, resolved.
  std::optional<Loaded> Single(const std::string& kind, const std::string& path,
                               std::vector<std::string> reserved = {}) {
    const Value* table = Table(path);
    Place place;
    std::string name = Word(table, path, "plugin", &place, registry_.Names(kind));
    // A machine file is read by the plugin that the accounting names for it.
    if (name.empty() && table != nullptr && table->Find("plugin") == nullptr &&
        table->Find("file") != nullptr)
      name = Word(nullptr, path, "plugin_of_file", &place);
    if (name.empty()) {
      if (!Complained(path) && (table == nullptr || table->Find("plugin") == nullptr)) {
        diagnostics_.Error("key.missing", place, absl::StrCat("[", path, "] names no plugin"),
                           absl::StrCat("write plugin = \"...\" under [", path, "]; ",
                                        ThereAre(registry_.Names(kind))));
      }
      return std::nullopt;
    }
    std::string key;
    if (memory_ != nullptr) {
      key = KeyOf(kind, name, path, table);
      if (std::optional<Loaded> known = Reuse(kind, key, name, table, path, reserved)) return known;
    }
    const std::size_t before = diagnostics_.all().size();
    std::optional<Loaded> loaded =
        plugins_.Load(kind, name, place, table, path, std::move(reserved));
    if (!loaded) return std::nullopt;
    loaded->reader->Finish();
    plugins_.Init(*loaded, kind, place);
    if (!key.empty() && diagnostics_.all().size() == before) {
      loaded->key = key;
      if (kind == Hardware::kKind || kind == Optimizer::kKind)
        loaded->plugin = memory_->Keep(&memory_->plugins, key, loaded->plugin);
    }
    // "hardware.network" is a table within a table.
    nlohmann::ordered_json* into = &out_.resolved;
    for (const absl::string_view part : absl::StrSplit(path, '.'))
      into = &(*into)[std::string(part)];
    plugins_.Resolve(*loaded, *into);
    return loaded;
  }

  void ReadMesh() {
    const Value* table = Table("mesh");
    out_.mesh_order = Word(table, "mesh", "order", &mesh_place_);
    UnknownKeys(table, "mesh", {"order"});
    if (out_.mesh_order.empty()) out_.mesh_order = "tp-cp-ep-dp-pp";
    out_.resolved["mesh"]["order"] = out_.mesh_order;
  }

  void ReadModel() { model_ = Single(Model::kKind, "model"); }

  void ReadHardware() {
    hardware_ = Single(Hardware::kKind, "hardware", {"network"});
    const Value* table = Table("hardware");
    if (memory_ != nullptr && hardware_) {
      hardware_key_ = KeyOf(Hardware::kKind, hardware_->name, "hardware", table);
    }
    out_.request.hardware_place = PlaceOfTable(table, "hardware");
    // network = "rail", or [hardware.network] plugin = "rail" with parameters.
    const Value* network = table != nullptr ? table->Find("network") : nullptr;
    if (network != nullptr && network->kind == Value::kTable) {
      network_ = Single(Network::kKind, "hardware.network");
      return;
    }
    Place place;
    const std::string name =
        Word(table, "hardware", "network", &place, registry_.Names(Network::kKind));
    if (name.empty()) return;
    std::string key;
    if (memory_ != nullptr) {
      key = KeyOf(Network::kKind, name, "hardware.network", nullptr);
      network_ = Reuse(Network::kKind, key, name, nullptr, "hardware.network", {});
      if (network_) return;
    }
    const std::size_t before = diagnostics_.all().size();
    network_ = plugins_.Load(Network::kKind, name, place, nullptr, "hardware.network", {});
    if (!network_) return;
    plugins_.Init(*network_, Network::kKind, place);
    if (diagnostics_.all().size() == before) network_->key = std::move(key);
    plugins_.Resolve(*network_, out_.resolved["hardware"]["network"]);
  }

  void ReadOptimizer() { optimizer_ = Single(Optimizer::kKind, "optimizer"); }

  void ReadStrategies() {
    const Value* table = Table("strategy");
    std::vector<std::string> names = accounting_->implied_strategies;
    if (table != nullptr) {
      for (const auto& [name, value] : table->table) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      const std::string path = absl::StrCat("strategy.", name);
      const Value* own = Table(path);
      if (own == nullptr && table != nullptr && table->Find(name) != nullptr)
        continue;  // not a table: said
      Place place = PlaceOfTable(own, path);
      std::string plugin = name;
      if (own != nullptr && own->Find("plugin") != nullptr)
        plugin = Word(own, path, "plugin", &place, registry_.Names(Strategy::kKind));
      if (plugin.empty()) continue;
      std::optional<Loaded> loaded = plugins_.Load(Strategy::kKind, plugin, place, own, path, {});
      if (!loaded) continue;
      loaded->reader->Finish();
      plugins_.Init(*loaded, Strategy::kKind, place);
      plugins_.Resolve(*loaded, out_.resolved["strategy"][name]);
      StrategyUse use;
      use.name = name;
      use.strategy = static_cast<const Strategy*>(loaded->plugin.get());
      const std::shared_ptr<ParameterReader> reader = loaded->reader;
      const Place table_place = place;
      use.place_of = [reader, table_place](const std::string& parameter) {
        return parameter.empty() ? table_place : reader->PlaceOf(parameter);
      };
      uses_.push_back(std::move(use));
    }
  }

  void ReadSchedule() {
    const Value* table = Table("schedule");
    Place place;
    const std::string name =
        Word(table, "schedule", "plugin", &place, registry_.Names(Schedule::kKind));
    if (name.empty()) return;
    std::optional<Loaded> loaded =
        plugins_.Load(Schedule::kKind, name, place, table, "schedule", {});
    if (!loaded) return;
    ParameterReader& reader = *loaded->reader;
    PlanRequest& request = out_.request;
    std::string transfers = "exposed";
    reader.Integer({"degree", "pipeline ranks", 1, 1 << 16}, &request.pipeline);
    const auto& schedule = static_cast<const Schedule&>(*loaded->plugin);
    plugins_.Init(*loaded, Schedule::kKind, place);
    if (request.pipeline > 1) request.chunks = schedule.DefaultChunks();
    reader.Integer({"chunks", "stages per pipeline rank", 1, 1 << 12}, &request.chunks);
    reader.Integers({"layers", "layers of each stage, in stage order", 0, 1 << 20},
                    &request.layers);
    std::string balance = "even";
    reader.Text({"balance",
                 "what is spread over the stages: layers, their seconds or their bytes",
                 0,
                 0,
                 {"even", "time", "memory"}},
                &balance);
    reader.Boolean({"count_ends", "embedding and head count as a layer each"}, &request.count_ends);
    reader.Text(
        {"transfers", "what sends between pipeline ranks cost", 0, 0, {"exposed", "ignore"}},
        &transfers);
    reader.Finish();
    request.pipeline_place = reader.PlaceOf("degree");
    // A schedule's own number of chunks is nobody's mistake.
    request.chunks_place = reader.PlaceOf(reader.IsGiven("chunks") ? "chunks" : "degree");
    request.layers_place = reader.PlaceOf("layers");
    if (transfers == "exposed" && accounting_->rules.coarse_program) {
      diagnostics_.Error(
          "schedule.transfers", reader.PlaceOf("transfers"),
          absl::StrCat("the ", accounting_->rules.name,
                       " accounting does not count the seconds of pipeline transfers"),
          "write transfers = \"ignore\", or choose another accounting");
    }
    exposed_transfers_ = transfers == "exposed";
    request.balance = balance == "time"     ? Balance::kTime
                      : balance == "memory" ? Balance::kMemory
                                            : Balance::kEven;
    request.count_ends_place = reader.PlaceOf("count_ends");
    request.schedule_place = place;
    nlohmann::ordered_json& resolved = out_.resolved["schedule"];
    plugins_.ResolveAlways(*loaded, resolved);  // sweeps tell schedules apart by it
    resolved["degree"] = request.pipeline;
    resolved["chunks"] = request.chunks;
    resolved["layers"] = request.layers;
    resolved["balance"] = balance;
    resolved["count_ends"] = request.count_ends;
    resolved["transfers"] = transfers;
    schedule_ = std::move(loaded);
  }

  // One that is reused is connected, and others may be asking it.
  void Connect(const Machine& machine) {
    if (network_->reused) return;
    static_cast<Network*>(network_->plugin.get())->Connect(machine);
    if (memory_ != nullptr && !network_->key.empty())
      network_->plugin = memory_->Keep(&memory_->plugins, network_->key, network_->plugin);
  }

  // Puts the model's rows into program_, or says why there are none.
  void Describe(const AccountingRules& rules) {
    const Place place = model_->reader->PlaceOf("");
    ProgramBuilder builder;
    const auto& model = static_cast<const Model&>(*model_->plugin);
    const absl::Status described =
        Guarded(absl::StrCat("model \"", model_->name, "\" cannot be described"), [&] {
          ModelRequest request;
          request.coarse = rules.coarse_program;
          request.sequence_length = training_.sequence_length;
          request.dropout = training_.dropout;
          request.eager_attention = training_.eager_attention;
          request.loss_bytes = LossBytes();
          request.weights_inside_experts = WeightsInsideExperts();
          return model.Describe(builder, request);
        });
    if (!described.ok()) {
      diagnostics_.Error("model.failed", place, std::string(described.message()));
      return;
    }
    absl::StatusOr<Program> program = builder.Take();
    if (!program.ok()) {
      diagnostics_.Error("model.rows", place,
                         absl::StrCat("model \"", model_->name, "\" writes rows that do not fit: ",
                                      program.status().message()));
      return;
    }
    program_ = *std::move(program);
    if (memory_ != nullptr && !model_->key.empty())
      memory_->Keep(&memory_->programs, ProgramKey(model_->key), *program_);
  }

  // --- putting together
  // ---------------------------------------------------------------------------------------

  template <class Interface>
  static std::shared_ptr<const Interface> As(const std::optional<Loaded>& loaded) {
    return loaded ? std::static_pointer_cast<const Interface>(
                        std::static_pointer_cast<Interface>(loaded->plugin))
                  : nullptr;
  }

  void Compose() {
    auto composition = std::make_unique<Composition>();
    Composition& c = *composition;
    c.rules = accounting_->rules;
    c.precision = precision_;
    c.training = training_;
    c.hardware = As<Hardware>(hardware_);
    c.network = As<Network>(network_);
    c.schedule = As<Schedule>(schedule_);
    c.optimizer = As<Optimizer>(optimizer_);
    c.schedule_name = schedule_ ? schedule_->name : "";
    c.network_name = network_ ? network_->name : "";
    c.optimizer_name = optimizer_ ? optimizer_->name : "";
    c.exposed_transfers = exposed_transfers_;
    const auto number = [&c](const char* name, double otherwise) {
      const auto it = c.rules.numbers.find(name);
      return it == c.rules.numbers.end() ? otherwise : it->second.value;
    };
    c.host_seconds = number("host.seconds_per_op", 0);
    c.overlap_share = number("overlap.share", 1);
    Connect(c.hardware->machine());

    if (!program_) Describe(c.rules);
    if (!program_) return;
    // Beyond 2^53 a double no longer counts to the element, and 64-bit byte counts overflow soon
    // after.
    constexpr double kMost = 9007199254740992.0;
    const double parameters = program_->facts.parameters;
    if (parameters > kMost) {
      const Value* table = Table("model");
      diagnostics_.Error(
          "model.too_large", PlaceOfTable(table, "model"),
          absl::StrCat("the model is too large to count (", Significant(parameters, 4),
                       " parameters; ", Significant(kMost, 4), " at most)"),
          "make layers, hidden, heads, ffn or vocabulary smaller");
      return;
    }
    std::optional<Edited> edited;
    const absl::Status applied = Guarded("the strategies cannot be applied", [&] {
      edited = ApplyStrategies(std::move(*program_), uses_, c.rules, out_.mesh_order, mesh_place_,
                               &diagnostics_, memory_ != nullptr ? &memory_->rows : nullptr);
    });
    if (!applied.ok())
      diagnostics_.Error("strategy.threw", FilePlace("strategy"), std::string(applied.message()));
    if (!edited) return;
    c.edited = std::move(*edited);
    c.states = OptimizerStatesOf(c.edited.program, *c.optimizer, c.precision);
    c.form = memory_ != nullptr
                 ? memory_->rows.FormOf(c.edited, c.precision, c.states, c.rules, c.optimizer)
                 : CompileForm(c.edited, c.precision, c.states, c.rules, *c.optimizer);
    if (what_ == ComposeWhat::kCompositionOnly) {
      out_.composition = std::move(composition);
      return;
    }
    const std::optional<Plan> plan = MakePlan(c, out_.request, &c.splits, &diagnostics_);
    if (!plan) return;
    c.plan = *plan;
    out_.composition = std::move(composition);
  }

  const ComposeWhat what_;
  ComposePlugins plugins_;
  ComposeSettings settings_;
  Place mesh_place_;
  std::optional<Loaded> model_, hardware_, network_, optimizer_, schedule_;
  std::optional<Program> program_;
  std::string hardware_key_;
  std::vector<StrategyUse> uses_;
  bool exposed_transfers_ = false;
};

}  // namespace

ComposedScenario ComposeScenario(const PluginRegistry& registry, const Scenario& scenario,
                                 Diagnostics* diagnostics, ComposeWhat what,
                                 ComposeMemory* memory) {
  const auto compose = [&](const Scenario& of) {
    ComposeState state{registry, of, *diagnostics, memory};
    Composer(&state, what).Run();
    return std::move(state.out);
  };
  if (!ImportsHf(scenario)) return compose(scenario);
  Scenario imported = scenario;
  if (!ImportHf(registry, &imported, diagnostics)) return {};
  return compose(imported);
}

}  // namespace shardlab
