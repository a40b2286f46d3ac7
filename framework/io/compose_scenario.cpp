#include "io/compose_scenario.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "api/model.h"
#include "base/text.h"
#include "core/edits.h"
#include "io/catalog.h"
#include "io/guarded.h"
#include "io/import_hf.h"
#include "io/parameter_io.h"
#include "io/read_file.h"
#include "io/toml_value.h"
#include "io/user_files.h"

namespace shardlab {
namespace {

const std::vector<std::string> kTables = {
    "model",    "hardware", "training", "strategy", "schedule", "precision", "optimizer",
    "software", "mesh",     "sweep",    "filter",   "search",   "expect"};

// A plugin object with where its parameters stand.
struct Loaded {
  std::shared_ptr<Plugin> plugin;
  std::shared_ptr<ParameterReader> reader;
  std::string name;  // of the plugin
  std::string key;   // in the memory; "": it is not kept there
  bool reused = false;
};

class Composer {
 public:
  Composer(const PluginRegistry& registry, const Scenario& scenario, Diagnostics* diagnostics,
           ComposeWhat what, ComposeMemory* memory)
      : registry_(registry),
        scenario_(scenario),
        diagnostics_(*diagnostics),
        what_(what),
        memory_(memory) {}

  ComposedScenario Run() {
    if (scenario_.root.kind != Value::kTable) return std::move(out_);
    for (const Override& set : scenario_.overrides) {
      out_.overrides.push_back(absl::StrCat(set.key, " = ", ToToml(set.value)));
    }
    TopLevel();
    if (!accounting_) return std::move(out_);
    StrategyDefaults();
    ReadPrecision();
    ReadTraining();
    ReadMesh();
    ReadModel();
    ReadHardware();
    ReadOptimizer();
    ReadStrategies();
    ReadSchedule();
    if (diagnostics_.HasErrors()) return std::move(out_);
    Compose();
    return std::move(out_);
  }

 private:
  // --- what other compositions have made already
  // ---------------------------------------------------------------------------------------------

  // What `make` makes, once where there is a memory.
  template <class T, class Make>
  std::optional<T> Once(ComposeMemory::Kept<T> ComposeMemory::*kept, const std::string& key,
                        Make make) {
    if (memory_ == nullptr) return make();
    if (std::optional<T> known = memory_->Find(memory_->*kept, key)) return known;
    const std::size_t before = diagnostics_.all().size();
    std::optional<T> made = make();
    if (made && diagnostics_.all().size() == before) memory_->Keep(&(memory_->*kept), key, *made);
    return made;
  }

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

  // --- tables
  // -----------------------------------------------------------------------------------------------

  Place FilePlace(const std::string& key = "") const { return {scenario_.file, 0, 0, key}; }

  // The user's table, or null. A value of another kind is a diagnostic.
  const Value* Table(const std::string& path) {
    const Value* value = scenario_.root.FindPath(path);
    if (value == nullptr) return nullptr;
    if (value->kind == Value::kTable) return value;
    if (!Complained(path)) {
      complained_.push_back(path);
      diagnostics_.Error("key.kind", value->place,
                         absl::StrCat(path, " must be a table, not ", Value::Name(value->kind)),
                         absl::StrCat("write [", path, "] on a line of its own"));
    }
    return nullptr;
  }

  // It was said already that this is no table.
  bool Complained(const std::string& path) const {
    return std::find(complained_.begin(), complained_.end(), path) != complained_.end();
  }

  const Value* Defaults(const std::string& path) const {
    const Value* value = accounting_->defaults.FindPath(path);
    return value != nullptr && value->kind == Value::kTable ? value : nullptr;
  }

  Place PlaceOfTable(const Value* table, const std::string& path) const {
    return table != nullptr ? table->key_place.line > 0 ? table->key_place : table->place
                            : FilePlace(path);
  }

  // A word under `path`.KEY of the user or of the accounting's defaults; "" for neither, and for a
  // mistake that is told. `names`: what it may be.
  std::string Word(const Value* table, const std::string& path, const std::string& key,
                   Place* place, const std::vector<std::string>& names = {}) {
    *place = PlaceOfTable(table, path);
    const Value* value = table != nullptr ? table->Find(key) : nullptr;
    if (value == nullptr) {
      if (const Value* defaults = Defaults(path)) value = defaults->Find(key);
      return value != nullptr && value->kind == Value::kText ? value->text : "";
    }
    *place = value->place;
    if (value->kind == Value::kText && value->text.empty()) {
      diagnostics_.Error("key.empty", value->place, absl::StrCat(path, ".", key, " is empty"),
                         names.empty()
                             ? absl::StrCat("write ", key, " = \"...\", or leave it out")
                             : absl::StrCat("write ", key, " = \"...\"; ", ThereAre(names)));
    }
    if (value->kind == Value::kText) return value->text;
    diagnostics_.Error(
        "key.kind", value->place,
        absl::StrCat(path, ".", key, " must be a string, not ", Value::Name(value->kind)),
        absl::StrCat("write ", key, " = \"...\""));
    return "";
  }

  void TopLevel() {
    std::vector<std::string> known = kTables;
    known.insert(known.end(), {"name", "accounting"});
    for (const auto& [key, value] : scenario_.root.table) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = Nearest(key, known);
      diagnostics_.Error("key.unknown", value.key_place.line > 0 ? value.key_place : value.place,
                         absl::StrCat("a scenario has no key \"", key, "\""),
                         near.empty() ? absl::StrCat("its tables are ", Enumerate(kTables))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
    out_.name = std::filesystem::path(scenario_.file).stem().string();
    std::string accounting;
    Place accounting_place = FilePlace("accounting");
    for (const char* key : {"name", "accounting"}) {
      const Value* value = scenario_.root.Find(key);
      if (value == nullptr) continue;
      if (value->kind != Value::kText) {
        diagnostics_.Error("key.kind", value->place,
                           absl::StrCat(key, " must be a string, not ", Value::Name(value->kind)));
        continue;
      }
      if (std::string(key) == "name") {
        out_.name = value->text;
      } else {
        accounting = value->text;
        accounting_place = value->place;
      }
    }
    const Value* named = scenario_.root.Find("accounting");
    if (named == nullptr || named->kind != Value::kText) {
      accounting = *Once(&ComposeMemory::default_accounting, "",
                         [&] { return std::optional<std::string>(DefaultAccounting(registry_)); });
    }
    accounting_ = Once(&ComposeMemory::accountings, accounting, [&] {
      return ReadAccounting(registry_, accounting, accounting_place, diagnostics_);
    });
    if (!accounting_) return;
    out_.resolved["name"] = out_.name;
    out_.resolved["accounting"] = accounting;

    const Value* software = Table("software");
    Place place;
    const std::string preset = Word(software, "software", "preset", &place);
    UnknownKeys(software, "software", {"preset"});
    const std::optional<Software> read = Once(&ComposeMemory::software, preset, [&] {
      return ReadSoftware(registry_, preset, place, diagnostics_);
    });
    if (read) {
      out_.software = read->name;
      // The accounting's facts are what it is; software fills in the others.
      for (const auto& [fact, value] : read->facts) accounting_->rules.facts.emplace(fact, value);
      // The classroom's numbers are all in its formulas.
      if (!accounting_->rules.coarse_program) accounting_->rules.numbers = read->numbers;
    }
    out_.resolved["software"]["preset"] = preset;
    if (const Value* expect = Table("expect")) out_.expect = *expect;
  }

  void UnknownKeys(const Value* table, const std::string& path,
                   const std::vector<std::string>& known) {
    if (table == nullptr) return;
    for (const auto& [key, value] : table->table) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = Nearest(key, known);
      diagnostics_.Error("key.unknown", value.key_place.line > 0 ? value.key_place : value.place,
                         absl::StrCat("[", path, "] has no key \"", key, "\""),
                         near.empty() ? absl::StrCat("it has ", Enumerate(known))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  // --- plugins
  // ----------------------------------------------------------------------------------------------

  std::optional<Loaded> Load(const std::string& kind, const std::string& name,
                             const Place& name_place, const Value* table, const std::string& path,
                             std::vector<std::string> reserved) {
    absl::StatusOr<std::unique_ptr<Plugin>> made = registry_.Make(kind, name);
    if (!made.ok()) {
      // The message lists what there is, unless it has a better guess; then the list is worth a
      // line.
      const std::string message(made.status().message());
      const bool guessed = message.find("(there are") == std::string::npos &&
                           message.find("(there is") == std::string::npos;
      diagnostics_.Error(
          "plugin.unknown", name_place, message,
          guessed ? absl::StrCat("plugins of kind ", kind, ": ", Enumerate(registry_.Names(kind)))
                  : "");
      return std::nullopt;
    }
    Loaded loaded;
    loaded.plugin = std::move(*made);
    loaded.name = name;
    reserved.push_back("plugin");
    loaded.reader = std::make_shared<ParameterReader>(table, PlaceOfTable(table, path), reserved,
                                                      &diagnostics_, Defaults(path));
    const absl::Status visited =
        Guarded(absl::StrCat("plugin \"", name, "\" cannot read its parameters"),
                [&] { loaded.plugin->Visit(*loaded.reader); });
    if (!visited.ok())
      diagnostics_.Error("plugin.threw", name_place, std::string(visited.message()));
    out_.plugins.push_back(loaded.plugin);
    return loaded;
  }

  void Init(const Loaded& loaded, const std::string& kind, const Place& place) {
    InitContext context;
    context.rules = &accounting_->rules;
    context.precision = &precision_;
    context.diagnostics = &diagnostics_;
    const PluginInfo* info = registry_.Find(kind, loaded.name);
    context.directory =
        info != nullptr ? std::filesystem::path(info->file).parent_path().string() : "";
    const std::string directory = context.directory;
    Diagnostics* diagnostics = &diagnostics_;
    context.read_toml = [directory, diagnostics](const std::string& file) {
      return ReadTomlFile(absl::StrCat(directory, "/", file), *diagnostics);
    };
    const auto files =
        std::make_shared<UserFiles>(std::filesystem::path(scenario_.file).parent_path());
    context.read_user_toml = [files, diagnostics](const std::string& file) {
      return ReadTomlFile(files->PathOf(file), *diagnostics);
    };
    context.read_user_text = [files, diagnostics](const std::string& file) {
      return ReadTextFile(files->PathOf(file), *diagnostics);
    };
    context.read_table = [diagnostics](const Value& table, const std::vector<std::string>& reserved,
                                       const std::function<void(ParameterVisitor&)>& visit) {
      ParameterReader reader(&table, table.place, reserved, diagnostics);
      visit(reader);
      reader.Finish();
    };
    context.list_files = [directory](const std::string& subdirectory) {
      std::vector<std::string> names;
      std::error_code error;
      for (const auto& entry :
           std::filesystem::directory_iterator(absl::StrCat(directory, "/", subdirectory), error)) {
        names.push_back(entry.path().filename().string());
      }
      std::sort(names.begin(), names.end());
      return names;
    };
    const std::shared_ptr<ParameterReader> reader = loaded.reader;
    context.place_of = [reader](const std::string& parameter) {
      return reader->PlaceOf(parameter);
    };
    context.is_given = [reader](const std::string& parameter) {
      return reader->IsGiven(parameter);
    };
    const std::size_t before = diagnostics_.all().size();
    const absl::Status done =
        Guarded(absl::StrCat("plugin \"", loaded.name, "\" cannot be initialised"),
                [&] { loaded.plugin->Init(context); });
    files->PutPaths(before, &diagnostics_);
    if (!done.ok()) diagnostics_.Error("plugin.threw", place, std::string(done.message()));
  }

  void Resolve(const Loaded& loaded, nlohmann::ordered_json& into) {
    if (memory_ != nullptr) return;
    into["plugin"] = loaded.name;
    ParameterResolver resolver(&into);
    loaded.plugin->Visit(resolver);
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
    std::optional<Loaded> loaded = Load(kind, name, place, table, path, std::move(reserved));
    if (!loaded) return std::nullopt;
    loaded->reader->Finish();
    Init(*loaded, kind, place);
    if (!key.empty() && diagnostics_.all().size() == before) {
      loaded->key = key;
      if (kind == Hardware::kKind || kind == Optimizer::kKind)
        loaded->plugin = memory_->Keep(&memory_->plugins, key, loaded->plugin);
    }
    // "hardware.network" is a table within a table.
    nlohmann::ordered_json* into = &out_.resolved;
    for (const absl::string_view part : absl::StrSplit(path, '.'))
      into = &(*into)[std::string(part)];
    Resolve(*loaded, *into);
    return loaded;
  }

  // The file defaults.toml beside a strategy: scenario keys that stand above the accounting's and
  // below the user's, where `fact` holds. Two that differ: the first by name.
  void StrategyDefaults() {
    const Value* table = scenario_.root.FindPath("strategy");
    if (table == nullptr || table->kind != Value::kTable) return;
    std::vector<std::string> plugins;
    for (const auto& [name, own] : table->table) {
      const Value* named = own.kind == Value::kTable ? own.Find("plugin") : nullptr;
      plugins.push_back(named != nullptr && named->kind == Value::kText ? named->text : name);
    }
    std::sort(plugins.rbegin(), plugins.rend());
    for (const std::string& plugin : plugins) {
      const PluginInfo* info = registry_.Find(Strategy::kKind, plugin);
      if (info == nullptr) continue;
      const std::filesystem::path file =
          std::filesystem::path(info->file).parent_path() / "defaults.toml";
      const Value own = *Once(&ComposeMemory::files, file.string(), [&] {
        return std::optional<Value>(
            std::filesystem::exists(file) ? ReadTomlFile(file.string(), diagnostics_) : Value());
      });
      const Value *fact = own.Find("fact"), *defaults = own.Find("defaults");
      if (defaults == nullptr || defaults->kind != Value::kTable) continue;
      if (fact != nullptr) {
        const auto holds = accounting_->rules.facts.find(fact->text);
        if (holds == accounting_->rules.facts.end() || !holds->second) continue;
      }
      for (const auto& [key, value] : defaults->table) {
        const std::optional<std::vector<std::string>> path = ParseTomlKey(key);
        if (path) SetAtPath(&accounting_->defaults, *path, value, diagnostics_);
      }
    }
  }

  // --- sections
  // ---------------------------------------------------------------------------------------------

  void ReadPrecision() {
    const Value* table = Table("precision");
    Place place;
    const std::string recipe = Word(table, "precision", "recipe", &place);
    UnknownKeys(
        table, "precision",
        {"recipe", "parameters", "compute", "gradients", "gradient_reduce", "master", "moments"});
    const std::optional<Recipe> read =
        Once(&ComposeMemory::recipes, recipe, [&]() -> std::optional<Recipe> {
          Recipe made;
          const std::optional<Precision> precision =
              ReadRecipe(registry_, recipe, place, diagnostics_, &made.numbers);
          if (!precision) return std::nullopt;
          made.precision = *precision;
          return made;
        });
    if (read) {
      precision_ = read->precision;
      // The classroom's numbers are all in its formulas.
      if (!accounting_->rules.coarse_program)
        accounting_->rules.numbers.insert(read->numbers.begin(), read->numbers.end());
    }
    const auto part = [&](const char* key, Dtype* into) {
      const Value* value = table != nullptr ? table->Find(key) : nullptr;
      if (value != nullptr) {
        Place at;
        const std::string word = Word(table, "precision", key, &at);
        if (!word.empty() && !ParseDtype(word, into)) {
          const std::vector<std::string> dtypes = {"none", "fp64", "fp32", "tf32", "bf16",
                                                   "fp16", "fp8",  "int8", "fp4"};
          const std::string near = Nearest(word, dtypes);
          diagnostics_.Error(
              "precision.dtype", at, absl::StrCat("there is no dtype \"", word, "\""),
              absl::StrCat(near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"? "),
                           "dtypes: ", absl::StrJoin(dtypes, ", ")));
        }
      }
      out_.resolved["precision"][key] = Name(*into);
    };
    out_.resolved["precision"]["recipe"] = recipe;
    part("parameters", &precision_.parameters);
    part("compute", &precision_.compute);
    part("gradients", &precision_.gradients);
    part("gradient_reduce", &precision_.gradient_reduce);
    part("master", &precision_.master);
    part("moments", &precision_.moments);
  }

  void ReadTraining() {
    const Value* table = Table("training");
    ParameterReader reader(table, PlaceOfTable(table, "training"), {}, &diagnostics_,
                           Defaults("training"));
    int sequence = 0, micro = 1, global = 0;
    constexpr int kMost = 1 << 30;
    double dropout = 0;
    double total = 0;
    std::string attention = "fused";
    reader.Integer({"sequence_length", "tokens of a sequence", 1, kMost}, &sequence);
    reader.Integer({"micro_batch_size", "sequences that a rank works on at once", 1, kMost},
                   &micro);
    reader.Integer({"global_batch_size", "sequences of a step", 1, kMost}, &global);
    reader.Number(
        {"dropout", "share of elements dropped; above 0 the masks are kept for the backward pass",
         0, 1},
        &dropout);
    reader.Number(
        {"total_tokens", "tokens of the whole run, for its days, device-hours and cost", 1, 1e18},
        &total);
    reader.Text({"attention",
                 "\"fused\" kernel, or \"eager\", with the scores of all pairs in memory",
                 0,
                 0,
                 {"fused", "eager"}},
                &attention);
    reader.Finish();
    const auto required = [&](const char* key, int value) {
      if (value != 0 || reader.IsGiven(key) || Complained("training")) return;
      diagnostics_.Error("key.missing", reader.PlaceOf(key), absl::StrCat("[training] needs ", key),
                         absl::StrCat("write ", key, " = ... under [training]"));
    };
    required("sequence_length", sequence);
    required("global_batch_size", global);
    training_.sequence_length = sequence;
    training_.global_batch_size = global;
    training_.total_tokens = total;
    training_.dropout = dropout;
    training_.eager_attention = attention == "eager";
    if (training_.eager_attention && accounting_->rules.coarse_program) {
      diagnostics_.Error("training.attention", reader.PlaceOf("attention"),
                         absl::StrCat("the ", accounting_->rules.name,
                                      " accounting leaves out the scores of attention"),
                         "write attention = \"fused\", or choose another accounting");
    }
    out_.request.micro_batch_size = micro;
    out_.request.global_batch_size = global;
    out_.request.micro_batch_place = reader.PlaceOf("micro_batch_size");
    out_.request.global_batch_place = reader.PlaceOf("global_batch_size");
    out_.resolved["training"] = {{"sequence_length", sequence},
                                 {"micro_batch_size", micro},
                                 {"global_batch_size", global},
                                 {"dropout", dropout},
                                 {"attention", attention}};
    if (total > 0) out_.resolved["training"]["total_tokens"] = total;
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
    network_ = Load(Network::kKind, name, place, nullptr, "hardware.network", {});
    if (!network_) return;
    Init(*network_, Network::kKind, place);
    if (diagnostics_.all().size() == before) network_->key = std::move(key);
    Resolve(*network_, out_.resolved["hardware"]["network"]);
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
      std::optional<Loaded> loaded = Load(Strategy::kKind, plugin, place, own, path, {});
      if (!loaded) continue;
      loaded->reader->Finish();
      Init(*loaded, Strategy::kKind, place);
      Resolve(*loaded, out_.resolved["strategy"][name]);
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
    std::optional<Loaded> loaded = Load(Schedule::kKind, name, place, table, "schedule", {});
    if (!loaded) return;
    ParameterReader& reader = *loaded->reader;
    PlanRequest& request = out_.request;
    std::string transfers = "exposed";
    reader.Integer({"degree", "pipeline ranks", 1, 1 << 16}, &request.pipeline);
    const auto& schedule = static_cast<const Schedule&>(*loaded->plugin);
    Init(*loaded, Schedule::kKind, place);
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
    Resolve(*loaded, resolved);
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

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  Diagnostics& diagnostics_;
  ComposeWhat what_;
  ComposeMemory* const memory_;
  ComposedScenario out_;
  std::optional<Accounting> accounting_;
  Precision precision_;
  Training training_;
  Place mesh_place_;
  std::optional<Loaded> model_, hardware_, network_, optimizer_, schedule_;
  std::optional<Program> program_;
  std::string hardware_key_;
  std::vector<StrategyUse> uses_;
  bool exposed_transfers_ = false;
  std::vector<std::string> complained_;
};

}  // namespace

ComposedScenario ComposeScenario(const PluginRegistry& registry, const Scenario& scenario,
                                 Diagnostics* diagnostics, ComposeWhat what,
                                 ComposeMemory* memory) {
  if (!ImportsHf(scenario)) return Composer(registry, scenario, diagnostics, what, memory).Run();
  Scenario imported = scenario;
  if (!ImportHf(registry, &imported, diagnostics)) return {};
  return Composer(registry, imported, diagnostics, what, memory).Run();
}

}  // namespace shardlab
