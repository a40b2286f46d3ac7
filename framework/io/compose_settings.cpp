#include "io/compose_settings.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

const std::vector<std::string> kTables = {
    "model",    "hardware", "training", "strategy", "schedule", "precision", "optimizer",
    "software", "mesh",     "sweep",    "filter",   "search",   "expect"};

}  // namespace

void ComposeSettings::TopLevel() {
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

void ComposeSettings::StrategyDefaults() {
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

void ComposeSettings::ReadPrecision() {
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

void ComposeSettings::ReadTraining() {
  const Value* table = Table("training");
  ParameterReader reader(table, PlaceOfTable(table, "training"), {}, &diagnostics_,
                         Defaults("training"));
  int sequence = 0, micro = 1, global = 0;
  constexpr int kMost = 1 << 30;
  double dropout = 0;
  double total = 0;
  std::string attention = "fused";
  reader.Integer({"sequence_length", "tokens of a sequence", 1, kMost}, &sequence);
  reader.Integer({"micro_batch_size", "sequences that a rank works on at once", 1, kMost}, &micro);
  reader.Integer({"global_batch_size", "sequences of a step", 1, kMost}, &global);
  reader.Number(
      {"dropout", "share of elements dropped; above 0 the masks are kept for the backward pass", 0,
       1},
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

}  // namespace shardlab
