#include "io/import_hf.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::json;

constexpr const char* kKind = "model";
constexpr const char* kKey = "hf_config";

// A family as its plugin's file describes it.
struct Family {
  std::string plugin;
  Value keys;      // parameter -> entry
  Value left_out;  // key of the JSON -> sentence
};

class Importer {
 public:
  Importer(const PluginRegistry& registry, Scenario* scenario, Diagnostics* diagnostics)
      : registry_(registry), scenario_(*scenario), diagnostics_(*diagnostics) {}

  bool Run() {
    Value* model = scenario_.root.Find(kKind);
    const Value asked = *model->Find(kKey);
    if (asked.kind != Value::kText || asked.text.empty()) {
      return Fail("key.kind", asked.place,
                  absl::StrCat("model.hf_config must be a file name, not ",
                               asked.kind == Value::kText ? "empty" : Value::Name(asked.kind)),
                  "write hf_config = \"config.json\"");
    }
    if (const Value* preset = model->Find("preset")) {
      Diagnostic both{Severity::kError,
                      "hf.preset",
                      "preset and hf_config both say what the model is",
                      preset->place,
                      "leave one of them out",
                      {asked.place}};
      diagnostics_.Add(std::move(both));
      return false;
    }
    file_ = (std::filesystem::path(scenario_.file).parent_path() / asked.text).string();
    if (!Read(asked.place)) return false;
    const std::optional<Family> family = Find(model->Find("plugin"));
    if (!family) return false;
    Value table = Translate(*family);
    if (failed_) return false;
    WarnOfWhatIsLeftOut(*family);
    Merge(*model, std::move(table));
    return true;
  }

 private:
  bool Fail(const char* code, const Place& place, std::string message, std::string hint = "") {
    diagnostics_.Error(code, place, std::move(message), std::move(hint));
    failed_ = true;
    return false;
  }
  Place At(const std::string& key = "") const { return {file_, 0, 0, key}; }

  // --- the JSON

  bool Read(const Place& asked) {
    Diagnostics own;
    const std::optional<std::string> text = ReadTextFile(file_, own);
    if (!text) {
      const Diagnostic& why = own.all().front();
      return Fail("hf.file", asked, absl::StrCat(file_, ": ", why.message), why.hint);
    }
    try {
      root_ = Json::parse(*text);
    } catch (const Json::parse_error& error) {
      const std::size_t end = std::min(error.byte > 0 ? error.byte - 1 : 0, text->size());
      const auto line =
          std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(end), '\n');
      const std::size_t start = text->rfind('\n', end > 0 ? end - 1 : 0);
      const std::size_t column = end - (start == std::string::npos ? 0 : start + 1);
      return Fail("hf.json", {file_, static_cast<int>(line) + 1, static_cast<int>(column) + 1, ""},
                  "this is no JSON from here on", "config.json as Hugging Face writes it");
    }
    if (!root_.is_object()) {
      return Fail("hf.json", At(), "a model's config.json is a JSON object",
                  "config.json as Hugging Face writes it");
    }
    const auto nested = root_.find("text_config");
    inside_ = nested != root_.end() && nested->is_object();
    config_ = inside_ ? &*nested : &root_;
    return true;
  }

  static std::string TypeOf(const Json& config) {
    const auto it = config.find("model_type");
    return it != config.end() && it->is_string() ? it->get<std::string>() : "";
  }

  // By dotted path; null counts as absent.
  const Json* Look(const std::string& path) const {
    const Json* at = config_;
    for (const absl::string_view part : absl::StrSplit(path, '.')) {
      if (!at->is_object()) return nullptr;
      const auto it = at->find(std::string(part));
      if (it == at->end() || it->is_null()) return nullptr;
      at = &*it;
    }
    return at;
  }

  // --- whose family

  std::optional<Family> Find(const Value* plugin) {
    std::vector<std::string> types = {TypeOf(*config_), TypeOf(root_)};
    types.erase(std::remove(types.begin(), types.end(), ""), types.end());
    if (types.empty()) {
      Fail("hf.type", At("model_type"), "config.json has no model_type",
           "add \"model_type\", or write the dimensions under [model]");
      return std::nullopt;
    }
    const bool asked = plugin != nullptr && plugin->kind == Value::kText;
    std::vector<std::string> known;
    for (const std::string& type : types) {
      std::optional<Family> found;
      for (const std::string& name : registry_.Names(kKind)) {
        if (asked && name != plugin->text) continue;
        std::optional<Family> family = FamilyOf(name, type, &known);
        if (failed_) return std::nullopt;
        if (!family) continue;
        if (found) {
          Fail("hf.plugin", At("model_type"),
               absl::StrCat("plugins ", found->plugin, " and ", name,
                            " both describe model_type \"", type, "\""),
               "write plugin = \"...\" under [model]");
          return std::nullopt;
        }
        found = std::move(family);
      }
      if (found) return found;
    }
    Refuse(types.back(), std::move(known), asked ? plugin->text : "");
    return std::nullopt;
  }

  void Refuse(const std::string& type, std::vector<std::string> known, const std::string& plugin) {
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const auto both = root_.find("is_encoder_decoder");
    if (both != root_.end() && both->is_boolean() && both->get<bool>()) {
      Fail("hf.type", At("is_encoder_decoder"),
           absl::StrCat("model_type \"", type,
                        "\" is an encoder-decoder, which is not supported: only decoders are"),
           "write the dimensions of a decoder under [model] instead");
      return;
    }
    const std::string near = Nearest(type, known);
    Fail("hf.type", At("model_type"),
         absl::StrCat(plugin.empty() ? "no model plugin" : absl::StrCat("plugin ", plugin),
                      plugin.empty() ? " describes" : " does not describe", " model_type \"", type,
                      "\""),
         absl::StrCat(near.empty() ? "" : absl::StrCat("did you mean \"", near, "\"? "),
                      "model types: ", Enumerate(known)));
  }

  std::optional<Family> FamilyOf(const std::string& plugin, const std::string& type,
                                 std::vector<std::string>* known) {
    const PluginInfo* info = registry_.Find(kKind, plugin);
    const std::filesystem::path path =
        std::filesystem::path(info->file).parent_path() / "families.toml";
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return std::nullopt;
    Diagnostics own;
    const Value file = ReadTomlFile(path.string(), own);
    diagnostics_.Append(own);
    if (own.HasErrors()) {
      failed_ = true;
      return std::nullopt;
    }
    const Value* families = file.Find("family");
    if (families == nullptr) return std::nullopt;
    std::optional<Family> found;
    for (const Value& row : families->array) {
      const Value* types = row.Find("types");
      if (types == nullptr) continue;
      for (const Value& word : types->array) {
        known->push_back(word.text);
        if (word.text == type) found = Compose(plugin, file, row);
      }
    }
    return found;
  }

  // The family's own entries over those of its base.
  static Family Compose(const std::string& plugin, const Value& file, const Value& row) {
    Family family;
    family.plugin = plugin;
    family.keys.kind = Value::kTable;
    if (const Value* base = row.Find("base")) {
      if (const Value* maps = file.Find("maps")) {
        if (const Value* map = maps->Find(base->text)) family.keys = *map;
      }
    }
    if (const Value* keys = row.Find("keys")) {
      for (const auto& [key, entry] : keys->table) {
        if (Value* known = family.keys.Find(key)) {
          *known = entry;
        } else {
          family.keys.table.emplace_back(key, entry);
        }
      }
    }
    if (const Value* left_out = row.Find("left_out")) family.left_out = *left_out;
    return family;
  }

  // --- entries

  static Value Number(double number) {
    const double whole = std::round(number);
    return whole == number && std::abs(number) < 9e15
               ? Value::Integer(static_cast<std::int64_t>(whole))
               : Value::Number(number);
  }

  static std::optional<Value> FromJson(const Json& json) {
    if (json.is_boolean()) return Value::Boolean(json.get<bool>());
    if (json.is_number_integer() || json.is_number_unsigned()) {
      const double number = json.get<double>();
      return std::abs(number) < 9e15 ? Value::Integer(json.get<std::int64_t>())
                                     : Value::Number(number);
    }
    if (json.is_number()) return Number(json.get<double>());
    if (json.is_string()) return Value::Text(json.get<std::string>());
    return std::nullopt;
  }

  std::optional<Value> FromKey(const std::string& key) const {
    const Json* json = Look(key);
    if (json == nullptr) return std::nullopt;
    std::optional<Value> value = FromJson(*json);
    if (value) value->place = At(key);
    return value;
  }

  static bool IsNumber(const Value& value) {
    return value.kind == Value::kInteger || value.kind == Value::kNumber;
  }

  // The value of an entry, or nothing; `names` collects the keys that were looked for.
  std::optional<Value> Evaluate(const Value& entry, std::vector<std::string>* names) const {
    switch (entry.kind) {
      case Value::kText:
        names->push_back(entry.text);
        return FromKey(entry.text);
      case Value::kArray:
        for (const Value& one : entry.array) {
          if (std::optional<Value> value = Evaluate(one, names)) return value;
        }
        return std::nullopt;
      case Value::kTable:
        return EvaluateTable(entry, names);
      default: {
        Value constant = entry;
        constant.place = At();
        return constant;
      }
    }
  }

  bool Holds(const Value& entry) const {
    const Value* when = entry.Find("when");
    if (when == nullptr) return true;
    const std::optional<Value> value = FromKey(when->text);
    if (value && value->kind == Value::kBoolean) return value->boolean;
    const Value* assume = entry.Find("assume");
    return assume != nullptr && assume->boolean;
  }

  std::optional<Value> EvaluateTable(const Value& entry, std::vector<std::string>* names) const {
    if (!Holds(entry)) return std::nullopt;
    std::optional<Value> value;
    if (const Value* constant = entry.Find("value")) {
      value = *constant;
      value->place = At();
    } else if (const Value* key = entry.Find("key")) {
      value = Evaluate(*key, names);
    }
    if (!value) {
      const Value* otherwise = entry.Find("default");
      return otherwise != nullptr ? Evaluate(*otherwise, names) : std::nullopt;
    }
    const Place place = value->place;
    if (const Value* words = entry.Find("words")) {
      const std::string word =
          value->kind == Value::kBoolean ? (value->boolean ? "true" : "false") : value->text;
      if (const Value* own = words->Find(word)) value = *own;
    }
    if (const Value* invert = entry.Find("invert");
        invert != nullptr && invert->boolean && value->kind == Value::kBoolean) {
      value->boolean = !value->boolean;
    }
    if (const Value* times = entry.Find("times"); times != nullptr && IsNumber(*value)) {
      const std::optional<Value> factor = Evaluate(*times, names);
      if (!factor || !IsNumber(*factor)) return std::nullopt;
      value = Number(value->number * factor->number);
    }
    if (const Value* plus = entry.Find("plus"); plus != nullptr && IsNumber(*value)) {
      value = Number(value->number + plus->number);
    }
    value->place = place;
    return value;
  }

  static bool IsRequired(const Value& entry) {
    const Value* required = entry.kind == Value::kTable ? entry.Find("required") : nullptr;
    return required != nullptr && required->boolean;
  }

  Value Translate(const Family& family) {
    Value table;
    table.kind = Value::kTable;
    table.place = At();
    for (const auto& [parameter, entry] : family.keys.table) {
      std::vector<std::string> names;
      std::optional<Value> value = Evaluate(entry, &names);
      if (value) {
        value->key_place = value->place;
        table.table.emplace_back(parameter, std::move(*value));
      } else if (IsRequired(entry) && scenario_.root.Find(kKind)->Find(parameter) == nullptr) {
        Fail("hf.missing", At(names.empty() ? parameter : names.front()),
             absl::StrCat("config.json lacks ", Enumerate(names, "or"), ", from which ", parameter,
                          " is read"),
             absl::StrCat("add it there, or write ", parameter, " = ... under [model]"));
      }
    }
    table.table.emplace_back("plugin", Value::Text(family.plugin));
    table.table.back().second.place = At("model_type");
    return table;
  }

  void WarnOfWhatIsLeftOut(const Family& family) {
    for (const auto& [key, sentence] : family.left_out.table) {
      const std::optional<Value> value = FromKey(key);
      if (!value || (IsNumber(*value) && value->number == 0) ||
          (value->kind == Value::kBoolean && !value->boolean)) {
        continue;
      }
      diagnostics_.Warning("hf.left_out", At(key), absl::StrCat(key, ": ", sentence.text));
    }
    if (inside_ && root_.contains("vision_config")) {
      diagnostics_.Warning("hf.left_out", At("vision_config"),
                           "vision_config: the vision tower is not counted, only the text model");
    }
  }

  // What the user wrote wins.
  static void Merge(Value& model, Value table) {
    for (auto& [key, value] : model.table) {
      if (key == kKey) continue;
      if (Value* known = table.Find(key)) {
        *known = std::move(value);
      } else {
        table.table.emplace_back(key, std::move(value));
      }
    }
    table.place = model.place;
    table.key_place = model.key_place;
    model = std::move(table);
  }

  const PluginRegistry& registry_;
  Scenario& scenario_;
  Diagnostics& diagnostics_;
  std::string file_;
  Json root_;
  const Json* config_ = nullptr;
  bool inside_ = false;  // of text_config
  bool failed_ = false;
};

}  // namespace

bool ImportsHf(const Scenario& scenario) {
  const Value* model = scenario.root.Find(kKind);
  return model != nullptr && model->kind == Value::kTable && model->Find(kKey) != nullptr;
}

bool ImportHf(const PluginRegistry& registry, Scenario* scenario, Diagnostics* diagnostics) {
  return Importer(registry, scenario, diagnostics).Run();
}

}  // namespace shardlab
