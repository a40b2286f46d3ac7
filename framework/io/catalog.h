#pragma once
// Data plugins: accountings, precision recipes and software facts are TOML files in folders, found
// like any other plugin. The folder's name is the name; the file's name is the kind.
//
//   std::optional<Accounting> accounting = ReadAccounting(registry, "textbook", place,
//   diagnostics);

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/value.h"
#include "domain/accounting.h"
#include "domain/precision.h"
#include "io/plugin_registry.h"

namespace shardlab {

struct Accounting {
  AccountingRules rules;
  std::vector<std::string>
      implied_strategies;  // composed even when the scenario has no table for them
  Value defaults;  // a table of scenario keys: {strategy = {data = {overlap = "full"}}, ...}
};

// Names of the data plugins of a kind ("accounting", "precision", "software"), sorted.
std::vector<std::string> CatalogNames(const PluginRegistry& registry, const std::string& kind);

// The accounting that says of itself `default = true`; "" when none does.
std::string DefaultAccounting(const PluginRegistry& registry);

std::optional<Accounting> ReadAccounting(const PluginRegistry& registry, const std::string& name,
                                         const Place& place, Diagnostics& diagnostics);
// `numbers` takes those of the file: "saved.linear.bytes" (core/saved_width.h).
std::optional<Precision> ReadRecipe(const PluginRegistry& registry, const std::string& name,
                                    const Place& place, Diagnostics& diagnostics,
                                    std::map<std::string, SoftwareNumber>* numbers = nullptr);

struct Software {
  std::string name, version;
  std::map<std::string, bool> facts;
  std::map<std::string, SoftwareNumber> numbers;  // name = { value = 0.9, source = "..." }
};
std::optional<Software> ReadSoftware(const PluginRegistry& registry, const std::string& name,
                                     const Place& place, Diagnostics& diagnostics);

}  // namespace shardlab
