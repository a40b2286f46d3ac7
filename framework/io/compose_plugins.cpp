#include "io/compose_plugins.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/guarded.h"
#include "io/read_file.h"
#include "io/toml_value.h"
#include "io/user_files.h"

namespace shardlab {

std::optional<Loaded> ComposePlugins::Load(const std::string& kind, const std::string& name,
                                           const Place& name_place, const Value* table,
                                           const std::string& path,
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
  if (!visited.ok()) diagnostics_.Error("plugin.threw", name_place, std::string(visited.message()));
  out_.plugins.push_back(loaded.plugin);
  return loaded;
}

void ComposePlugins::Init(const Loaded& loaded, const std::string& kind, const Place& place) {
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
    return ReadTextFile(files->PathOf(file), *diagnostics, kMaximumDataBytes);
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
  context.place_of = [reader](const std::string& parameter) { return reader->PlaceOf(parameter); };
  context.is_given = [reader](const std::string& parameter) { return reader->IsGiven(parameter); };
  const std::size_t before = diagnostics_.all().size();
  const absl::Status done =
      Guarded(absl::StrCat("plugin \"", loaded.name, "\" cannot be initialised"),
              [&] { loaded.plugin->Init(context); });
  files->PutPaths(before, &diagnostics_);
  if (!done.ok()) diagnostics_.Error("plugin.threw", place, std::string(done.message()));
}

void ComposePlugins::Resolve(const Loaded& loaded, nlohmann::ordered_json& into) {
  if (memory_ == nullptr) ResolveAlways(loaded, into);
}

void ComposePlugins::ResolveAlways(const Loaded& loaded, nlohmann::ordered_json& into) {
  into["plugin"] = loaded.name;
  ParameterResolver resolver(&into);
  loaded.plugin->Visit(resolver);
}

}  // namespace shardlab
