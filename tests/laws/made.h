#pragma once
// A plugin as a scenario would make it: parameters read from a table, initialised.
//
//   std::unique_ptr<Network> network = Made<Network>("rail");
//   std::unique_ptr<Model> model = Made<Model>("llama", "preset = \"llama3.1-8b\"");

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/catalog.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"
#include "support/plugins.h"

namespace shardlab {

struct Making {
  std::string parameters;  // TOML lines
  AccountingRules rules = {};
  Precision precision = {};
};

inline std::unique_ptr<Plugin> MadeOf(const std::string& kind, const std::string& name,
                                      const Making& making) {
  auto made = BuiltPlugins().Make(kind, name);
  if (!made.ok()) {
    ADD_FAILURE() << made.status();
    return nullptr;
  }
  Diagnostics diagnostics;
  const Value table =
      making.parameters.empty() ? Value() : ParseToml(making.parameters, "made", diagnostics);
  ParameterReader reader(making.parameters.empty() ? nullptr : &table, {}, {}, &diagnostics);
  (*made)->Visit(reader);
  reader.Finish();
  const std::string directory =
      std::filesystem::path(BuiltPlugins().Find(kind, name)->file).parent_path().string();
  InitContext context;
  context.rules = &making.rules;
  context.precision = &making.precision;
  context.directory = directory;
  context.diagnostics = &diagnostics;
  context.read_toml = [&](const std::string& file) {
    return ReadTomlFile(directory + "/" + file, diagnostics);
  };
  context.place_of = [&](const std::string& parameter) { return reader.PlaceOf(parameter); };
  context.is_given = [&](const std::string& parameter) { return reader.IsGiven(parameter); };
  context.read_table = [&](const Value& read, const std::vector<std::string>& reserved,
                           const std::function<void(ParameterVisitor&)>& visit) {
    ParameterReader table_reader(&read, read.place, reserved, &diagnostics);
    visit(table_reader);
    table_reader.Finish();
  };
  context.list_files = [&](const std::string& subdirectory) {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& file :
         std::filesystem::directory_iterator(directory + "/" + subdirectory, none)) {
      files.push_back(file.path().filename().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  };
  (*made)->Init(context);
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError) ADD_FAILURE() << kind << " " << name << ": " << d.message;
  }
  return std::move(*made);
}

template <class Interface>
std::unique_ptr<Interface> Made(const std::string& name, const Making& making = {}) {
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(MadeOf(Interface::kKind, name, making).release()));
}

inline std::vector<ParameterDoc> DocsOf(const std::string& kind, const std::string& name) {
  auto made = BuiltPlugins().Make(kind, name);
  ParameterDocumenter documenter;
  if (made.ok()) (*made)->Visit(documenter);
  return documenter.docs();
}

}  // namespace shardlab
