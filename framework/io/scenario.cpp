#include "io/scenario.h"

#include <optional>
#include <string_view>
#include <utility>

#include "io/read_file.h"
#include "io/toml_limits.h"
#include "io/toml_value.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

// The '=' that ends the key: the first one outside quotes. npos when there is none.
std::size_t EqualsAfterKey(std::string_view text) {
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == 0 && c == '=') return at;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == '"' && c == '\\') {
      ++at;
    } else if (c == quote) {
      quote = 0;
    }
  }
  return std::string_view::npos;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t") == std::string_view::npos;
}

// A whole number that TOML refused because of its size, and not for a leading zero or stray
// underscores.
bool IsTooLargeInteger(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 18 && text[0] != '0' &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Override> ParseOverride(const std::string& set, Diagnostics& diagnostics) {
  const char* const form = "--set takes KEY=VALUE, as in --set training.micro_batch_size=2";
  const auto refuse = [&](const char* code, const std::string& key, std::string message,
                          std::string hint) {
    diagnostics.Error(code, {kSetFile, 0, 0, key}, std::move(message), std::move(hint));
    return std::nullopt;
  };
  if (FirstInvalidUtf8(set) || set.find('\0') != std::string::npos) {
    return refuse("set.syntax", "", "\"" + Shortened(set) + "\" is not UTF-8 text", form);
  }
  const std::size_t equals = EqualsAfterKey(set);
  if (equals == std::string::npos) {
    const bool unclosed = set.find('=') != std::string::npos;
    return refuse("set.syntax", "",
                  "\"" + Shortened(set) + "\" has no '='" +
                      (unclosed ? " after its key (a quote is not closed)" : ""),
                  form);
  }
  const std::string key_text = set.substr(0, equals);
  if (IsBlank(key_text))
    return refuse("set.syntax", "", "\"" + Shortened(set) + "\" has no key before the '='", form);
  std::optional<std::vector<std::string>> path = ParseTomlKey(key_text);
  if (!path) {
    return refuse(
        "set.syntax", "", "\"" + Shortened(key_text) + "\" is not a dotted key",
        "write it as in the file, strategy.tensor.degree; parts with other characters in quotes");
  }

  Override override;
  for (const std::string& segment : *path) override.key = JoinTomlKey(override.key, segment);
  if (override.key.size() > 1000)
    return refuse("set.syntax", "", "the key is too long (over 1000 bytes)", form);
  override.path = std::move(*path);
  const std::string value_text = set.substr(equals + 1);
  if (auto value = ParseTomlValue(value_text, kSetFile, override.key, diagnostics)) {
    override.value = std::move(*value);
  } else if (IsTooLargeInteger(value_text)) {
    return refuse(
        "toml.integer", override.key,
        "whole number " + Shortened(value_text) + " is too large (it does not fit in 64 bits)", "");
  } else {
    override.value = Value::Text(value_text);
  }
  override.value.place = {kSetFile, 0, 0, override.key};
  override.value.key_place = override.value.place;
  return override;
}

}  // namespace

bool SetAtPath(Value* root, const std::vector<std::string>& path, Value value,
               Diagnostics& diagnostics) {
  if (path.empty()) return false;
  Place made = value.place;  // of the tables that are made on the way
  made.key.clear();
  Value* at = root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool last = i + 1 == path.size();
    made.key = JoinTomlKey(made.key, path[i]);
    Value* next = at->Find(path[i]);
    if (next == nullptr) {
      Value table;
      table.kind = Value::kTable;
      table.place = made;
      table.key_place = made;
      next = &at->table.emplace_back(path[i], std::move(table)).second;
    } else if (!last && next->kind != Value::kTable) {
      diagnostics.Add({Severity::kError,
                       "set.path",
                       "cannot set " + value.place.key + ": " + made.key + " is " +
                           Value::Name(next->kind) + ", not a table",
                       value.place,
                       "",
                       {next->place}});
      return false;
    }
    at = next;
  }
  *at = std::move(value);
  return true;
}

Scenario ScenarioFromText(const std::string& text, const std::string& file,
                          const std::vector<std::string>& sets, Diagnostics& diagnostics) {
  Scenario scenario;
  scenario.file = file;
  scenario.text = text;
  scenario.root = ParseToml(text, file, diagnostics);
  // The overrides are read even so: their own mistakes are told in the same run.
  for (const std::string& set : sets) {
    std::optional<Override> override = ParseOverride(set, diagnostics);
    if (!override || scenario.root.kind != Value::kTable) continue;
    if (SetAtPath(&scenario.root, override->path, override->value, diagnostics)) {
      scenario.overrides.push_back(std::move(*override));
    }
  }
  return scenario;
}

Scenario ReadScenario(const std::string& path, const std::vector<std::string>& sets,
                      Diagnostics& diagnostics) {
  const std::optional<std::string> text = ReadTextFile(path, diagnostics);
  if (text) return ScenarioFromText(*text, path, sets, diagnostics);
  Scenario scenario;
  scenario.file = path;
  for (const std::string& set : sets) ParseOverride(set, diagnostics);
  return scenario;
}

}  // namespace shardlab
