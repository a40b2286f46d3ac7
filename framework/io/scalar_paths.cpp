#include "io/scalar_paths.h"

#include "absl/strings/str_cat.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

void Walk(const Json& json, const std::string& path, std::vector<Cell>* cells) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) Walk(value, absl::StrCat(path, ".", key), cells);
  } else if (!json.is_array()) {
    cells->emplace_back(path, json);
  }
}

}  // namespace

std::vector<Cell> ScalarPaths(const Json& document, const std::vector<std::string>& parts) {
  std::vector<Cell> cells;
  for (const std::string& part : parts) {
    const auto found = document.find(part);
    if (found != document.end()) Walk(*found, part, &cells);
  }
  return cells;
}

std::string CsvField(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace shardlab
