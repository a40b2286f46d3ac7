#pragma once
// Right-sizing: the same search on several machines or numbers of devices, and which of them
// answers the question.
//
//   std::optional<SizeRequest> request = ReadSizes("8..1024", "h100-dgx@2.5", &problem);
//   nlohmann::ordered_json document = RightSize(registry, scenario, *request, options);

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/search_run.h"

namespace shardlab {

struct SizedMachine {
  std::string plugin, preset;   // no plugin: the scenario's own
  std::optional<double> price;  // of a device and hour
};

struct SizeRequest {
  std::vector<int> devices;            // empty: the scenario's own
  std::vector<SizedMachine> machines;  // at least one
  std::optional<double> max_step;      // seconds
  std::optional<double> budget;        // what an hour of all devices may cost
};

// `devices`: "8..1024" is 8 and its doubles up to 1024, "8,12,16" a list. `machines`: names with
// commas, PLUGIN or PLUGIN:PRESET, each with @PRICE of a device and hour where one is asked for.
// Nothing, with the problem in words, when they cannot be read.
std::optional<SizeRequest> ReadSizes(const std::string& devices, const std::string& machines,
                                     std::string* problem);

// {schema, sizes: [{machine, devices, price_per_hour, step_seconds, tokens_per_second_per_device,
// peak_bytes, keys, meets | reason}], answer: index or null, question}. The answer is the fewest
// devices among those that meet what is asked, of as many the fastest; with a budget alone the
// fastest.
nlohmann::ordered_json RightSize(const PluginRegistry& registry, const Scenario& scenario,
                                 const SizeRequest& request, const SearchOptions& options);
std::string RightSizeText(const nlohmann::ordered_json& document);

}  // namespace shardlab
