#include "io/right_size.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/parameter_io.h"
#include "io/quantity.h"
#include "io/sweep_text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostDevices = 1 << 20;
constexpr std::size_t kMostSizes = 256;

void SetKey(Scenario* scenario, const std::string& key, Value value) {
  value.place = value.key_place = {"--devices", 0, 0, key};
  Diagnostics ignored;
  SetAtPath(&scenario->root, *ParseTomlKey(key), std::move(value), ignored);
}

Scenario Sized(const Scenario& scenario, const SizedMachine& machine, int devices) {
  Scenario with = scenario;
  if (!machine.plugin.empty()) {
    // Nothing of one machine holds for another.
    EraseKey(&with.root, "hardware");
    SetKey(&with, "hardware.plugin", Value::Text(machine.plugin));
    if (!machine.preset.empty()) SetKey(&with, "hardware.preset", Value::Text(machine.preset));
  }
  if (machine.price) SetKey(&with, "hardware.price_per_device_hour", Value::Number(*machine.price));
  if (devices > 0) {
    EraseKey(&with.root, "hardware.nodes");
    SetKey(&with, "hardware.devices", Value::Integer(devices));
  }
  return with;
}

// Why there is no plan: the first mistake, or what most points break.
std::string NoPlan(const Diagnostics& diagnostics, const SearchResult* result) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError)
      return d.hint.empty() ? d.message : absl::StrCat(d.message, " (", d.hint, ")");
  }
  if (result == nullptr) return "";
  if (result->counts.illegal < result->counts.considered) return "no legal plan fits";
  const IllegalReason* most = nullptr;
  for (const auto& [code, reason] : result->illegal) {
    if (most == nullptr || reason.count > most->count) most = &reason;
  }
  return most == nullptr ? "the grid is empty" : most->example;
}

}  // namespace

std::optional<SizeRequest> ReadSizes(const std::string& devices, const std::string& machines,
                                     std::string* problem) {
  SizeRequest request;
  const auto number = [&](const std::string& text, int* n) {
    if (absl::SimpleAtoi(text, n) && *n >= 1 && *n <= kMostDevices) return true;
    *problem = absl::StrCat("\"", text, "\" is no number of devices from 1 to ", kMostDevices);
    return false;
  };
  const std::size_t dots = devices.find("..");
  if (dots != std::string::npos) {
    int from = 0, to = 0;
    if (!number(devices.substr(0, dots), &from) || !number(devices.substr(dots + 2), &to))
      return std::nullopt;
    for (long long n = from; n <= to; n *= 2) request.devices.push_back(static_cast<int>(n));
    if (request.devices.empty()) {
      *problem = absl::StrCat(devices, " has no number: it runs from the smaller to the larger");
      return std::nullopt;
    }
  } else if (!devices.empty()) {
    for (const std::string& text : std::vector<std::string>(absl::StrSplit(devices, ','))) {
      int n = 0;
      if (!number(text, &n)) return std::nullopt;
      request.devices.push_back(n);
    }
  }
  if (machines.empty()) request.machines.push_back({});
  for (std::string text : std::vector<std::string>(absl::StrSplit(machines, ','))) {
    if (machines.empty()) break;
    SizedMachine machine;
    const std::size_t at = text.find('@');
    if (at != std::string::npos) {
      double price = 0;
      if (!absl::SimpleAtod(text.substr(at + 1), &price) || !(price > 0) || !std::isfinite(price)) {
        *problem = absl::StrCat("\"", text.substr(at + 1), "\" is no price of a device and hour");
        return std::nullopt;
      }
      machine.price = price;
      text.resize(at);
    }
    const std::size_t colon = text.find(':');
    machine.plugin = text.substr(0, colon);
    if (colon != std::string::npos) machine.preset = text.substr(colon + 1);
    if (machine.plugin.empty()) {
      *problem = "--hardware takes PLUGIN or PLUGIN:PRESET, with @PRICE of a device and hour";
      return std::nullopt;
    }
    request.machines.push_back(std::move(machine));
  }
  if (request.machines.size() * std::max<std::size_t>(1, request.devices.size()) > kMostSizes) {
    *problem = absl::StrCat("these are more than ", kMostSizes, " searches");
    return std::nullopt;
  }
  return request;
}

Json RightSize(const PluginRegistry& registry, const Scenario& scenario, const SizeRequest& request,
               const SearchOptions& options) {
  Json document = {{"schema", "shardlab.search/1"}, {"sizes", Json::array()}, {"answer", nullptr}};
  if (request.max_step) document["max_step_seconds"] = *request.max_step;
  if (request.budget) document["budget_per_hour"] = *request.budget;
  std::optional<std::tuple<double, double>> best;
  std::vector<int> counts = request.devices;
  if (counts.empty()) counts.push_back(0);
  for (const SizedMachine& machine : request.machines) {
    for (const int devices : counts) {
      const Scenario with = Sized(scenario, machine, devices);
      Json row = {{"machine", machine.preset.empty() ? machine.plugin : machine.preset},
                  {"devices", devices}};
      Diagnostics diagnostics;
      const std::optional<SearchGrid> grid = ReadSearchGrid(registry, with, &diagnostics);
      std::optional<SearchResult> result;
      if (grid) result = RunSearch(registry, *grid, options, [](std::int64_t) {});
      if (!result || result->best.empty()) {
        row["reason"] = NoPlan(diagnostics, result ? &*result : nullptr);
        document["sizes"].push_back(std::move(row));
        continue;
      }
      const Found& found = result->best[0];
      const Value* sequence = with.root.FindPath("training.sequence_length");
      const Value* batch = with.root.FindPath("training.global_batch_size");
      row["devices"] = found.devices;
      row["step_seconds"] = found.step;
      if (sequence != nullptr && batch != nullptr)
        row["tokens_per_second_per_device"] =
            sequence->number * batch->number / found.step / found.devices;
      row["peak_bytes"] = std::llround(found.peak);
      const Json hardware = grid->defaults.value("hardware", Json::object());
      if (row["machine"].get<std::string>().empty()) row["machine"] = hardware.value("plugin", "");
      const double price = hardware.value("price_per_device_hour", 0.0) * found.devices;
      if (price > 0) row["price_per_hour"] = price;
      for (const auto& [key, value] : SettingsOf(*grid, found.point))
        row["keys"][key] = ValueToJson(value);
      const bool meets = (!request.max_step || found.step <= *request.max_step) &&
                         (!request.budget || (price > 0 && price <= *request.budget));
      row["meets"] = meets;
      // A step under a limit: the fewest devices. Else the fastest.
      const std::tuple<double, double> rank(request.max_step ? found.devices : 0.0, found.step);
      if (meets && (!best || rank < *best)) {
        best = rank;
        document["answer"] = document["sizes"].size();
      }
      document["sizes"].push_back(std::move(row));
    }
  }
  return document;
}

std::string RightSizeText(const Json& document) {
  std::vector<std::vector<std::string>> lines = {
      {"machine", "devices", "step", "tokens/s/device", "peak", "price/h", ""}};
  for (const Json& row : document["sizes"]) {
    const std::string devices = absl::StrCat(row["devices"].get<int>());
    if (row.contains("reason")) {
      lines.push_back({row["machine"], devices, "-", "-", "-", "-", row["reason"]});
      continue;
    }
    lines.push_back(
        {row["machine"], devices, FormatSeconds(row["step_seconds"]),
         row.contains("tokens_per_second_per_device")
             ? Significant(row["tokens_per_second_per_device"].get<double>(), 4)
             : "-",
         FormatBytes(row["peak_bytes"]),
         row.contains("price_per_hour") ? Significant(row["price_per_hour"].get<double>(), 4) : "-",
         row["meets"].get<bool>() ? "" : "not as asked"});
  }
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      const std::string pad(widths[i] - line[i].size(), ' ');
      absl::StrAppend(&text, i == 0 ? line[i] + pad : "  " + pad + line[i]);
    }
    if (!line.back().empty()) absl::StrAppend(&text, "  ", line.back());
    absl::StrAppend(&out, text, "\n");
  }
  if (document["answer"].is_null()) return out + "\nnone of these meets what is asked\n";
  const Json& row = document["sizes"][document["answer"].get<std::size_t>()];
  std::vector<std::string> keys;
  for (const auto& [key, value] : row["keys"].items())
    keys.push_back(absl::StrCat("--set ", key, "=",
                                value.is_string() ? value.get<std::string>() : value.dump()));
  return absl::StrCat(out, "\nanswer    ", row["devices"].get<int>(), " devices of ",
                      row["machine"].get<std::string>(), ", ", FormatSeconds(row["step_seconds"]),
                      " a step\n          ", Wrapped(absl::StrJoin(keys, " "), 10, 100));
}

}  // namespace shardlab
