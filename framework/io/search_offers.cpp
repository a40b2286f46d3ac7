#include "io/search_offers.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

class OfferReader {
 public:
  OfferReader(const PluginRegistry& registry, Diagnostics* diagnostics)
      : registry_(registry), diagnostics_(*diagnostics) {}

  SearchOffers Run() {
    for (const std::string& name : registry_.Names("schedule")) {
      const std::optional<Value> file = File("schedule", name, {"chunks", "default"});
      if (file)
        offers_.schedules.push_back(
            {name, Boolean(*file, "chunks"),
             file->Find("default") == nullptr || Boolean(*file, "default")});
    }
    for (const std::string& name : registry_.Names("strategy")) {
      const std::optional<Value> file =
          File("strategy", name, {"degree", "key", "values", "choices", "left_over"});
      if (!file) continue;
      if (const Value* degree = file->Find("degree")) Degree(name, *degree);
      if (const Value* key = file->Find("left_over"))
        offers_.left_over.push_back(absl::StrCat("strategy.", name, ".", key->text));
      if (const Value* choices = file->Find("choices")) Choices(name, *choices);
      const Value *key = file->Find("key"), *values = file->Find("values");
      if (key != nullptr && values != nullptr)
        offers_.shardings.push_back({name, key->text, values->array});
    }
    return std::move(offers_);
  }

 private:
  std::optional<Value> File(const std::string& kind, const std::string& name,
                            const std::vector<std::string>& keys) {
    const PluginInfo* info = registry_.Find(kind, name);
    const std::filesystem::path file =
        std::filesystem::path(info->file).parent_path() / "search.toml";
    if (!std::filesystem::exists(file)) return std::nullopt;
    Value read = ReadTomlFile(file.string(), diagnostics_);
    if (read.kind != Value::kTable) return std::nullopt;
    Known(read, keys);
    return read;
  }

  void Known(const Value& table, const std::vector<std::string>& keys) {
    for (const auto& [key, value] : table.table) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const std::string near = Nearest(key, keys);
      diagnostics_.Error("key.unknown", value.key_place,
                         absl::StrCat("a search offers no \"", key, "\""),
                         near.empty() ? absl::StrCat("it offers ", Enumerate(keys))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  static std::string Text(const Value& table, const char* key) {
    const Value* value = table.Find(key);
    return value != nullptr ? value->text : "";
  }
  static bool Boolean(const Value& table, const char* key) {
    const Value* value = table.Find(key);
    return value != nullptr && value->boolean;
  }

  void Degree(const std::string& name, const Value& table) {
    Known(table, {"key", "axis", "within", "tokens_left", "divides", "above_one", "every_plan",
                  "role", "with"});
    DegreeOffer offer;
    offer.table = name;
    offer.key = Text(table, "key");
    offer.axis = Text(table, "axis");
    offer.within_domain = Text(table, "within") == "domain";
    offer.role = Text(table, "role");
    if (offer.role.empty()) offer.role = offer.axis;
    offer.every_plan = Boolean(table, "every_plan");
    offer.divides = Text(table, "divides");
    offer.above_one = Text(table, "above_one");
    if (const Value* tokens = table.Find("tokens_left"))
      offer.tokens_left = static_cast<int>(tokens->integer);
    if (const Value* with = table.Find("with")) {
      Known(*with, {"key", "axis", "role"});
      offer.with_key = Text(*with, "key");
      offer.with_axis = Text(*with, "axis");
      offer.with_role = Text(*with, "role");
    }
    if (offer.key.empty() || offer.axis.empty()) {
      diagnostics_.Error("search.offer", table.place, "a degree has a key and an axis",
                         "write key = \"degree\" and axis = \"NAME\"");
      return;
    }
    offers_.degrees.push_back(std::move(offer));
  }

  void Choices(const std::string& name, const Value& list) {
    ChoiceOffer offer;
    offer.table = name;
    for (const Value& entry : list.array) {
      Choice choice;
      for (const auto& [key, value] : entry.table) {
        const std::string full = absl::StrCat("strategy.", name, ".", key);
        if (std::find(offer.keys.begin(), offer.keys.end(), full) == offer.keys.end())
          offer.keys.push_back(full);
        const Value* quarters = value.Find("quarters");
        if (value.kind == Value::kTable && quarters != nullptr) {
          choice.share_key = full;
          choice.quarters = static_cast<int>(quarters->integer);
        } else {
          choice.settings.emplace_back(full, value);
        }
      }
      offer.choices.push_back(std::move(choice));
    }
    if (!offer.choices.empty()) offers_.choices.push_back(std::move(offer));
  }

  const PluginRegistry& registry_;
  Diagnostics& diagnostics_;
  SearchOffers offers_;
};

}  // namespace

void AddChoiceOfFile(const Value& table, ChoiceOffer* offer) {
  if (table.kind != Value::kTable || table.table.empty()) return;
  const auto settings = [](const Choice& choice) {
    std::map<std::string, std::string> text;
    for (const auto& [key, value] : choice.settings) text[key] = ToToml(value);
    return text;
  };
  Choice own;
  std::map<std::string, std::string> said;  // of the keys that choices set
  for (const auto& [key, value] : table.table) {
    const std::string full = absl::StrCat("strategy.", offer->table, ".", key);
    own.settings.emplace_back(full, value);
    if (std::find(offer->keys.begin(), offer->keys.end(), full) != offer->keys.end())
      said[full] = ToToml(value);
  }
  for (Choice& choice : offer->choices) {
    if (choice.share_key.empty() && settings(choice) == said) {
      choice.settings = std::move(own.settings);
      return;
    }
  }
  // A number of layers may be a share of them in some pipelines.
  for (const Choice& choice : offer->choices) {
    if (choice.share_key.empty()) continue;
    const auto number =
        std::find_if(own.settings.begin(), own.settings.end(),
                     [&](const auto& entry) { return entry.first == choice.share_key; });
    if (number == own.settings.end() || number->second.kind != Value::kInteger) continue;
    std::map<std::string, std::string> with = settings(choice);
    with[choice.share_key] = ToToml(number->second);
    if (with != said) continue;
    own.share_key = choice.share_key;
    own.stated = static_cast<int>(number->second.integer);
    own.settings.erase(number);
    break;
  }
  offer->choices.push_back(std::move(own));
}

SearchOffers ReadSearchOffers(const PluginRegistry& registry, Diagnostics* diagnostics) {
  return OfferReader(registry, diagnostics).Run();
}

}  // namespace shardlab
