#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/hardware.h"
#include "api/model.h"
#include "app/plan_command.h"
#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// Each plugin of a kind with the presets in its folder: a preset is a TOML file of parameters.
Json PresetsOf(const PluginRegistry& registry, const std::string& kind, Diagnostics* diagnostics) {
  Json list = Json::array();
  for (const std::string& name : registry.Names(kind)) {
    const PluginInfo* info = registry.Find(kind, name);
    if (info == nullptr) continue;
    Json plugin = {
        {"plugin", name}, {"description", info->description}, {"presets", Json::array()}};
    const std::filesystem::path folder =
        std::filesystem::path(info->file).parent_path() / "presets";
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) {
      Json preset = {{"name", file.stem().string()}};
      preset.update(ValueToJson(ReadTomlFile(file.string(), *diagnostics)));
      plugin["presets"].push_back(std::move(preset));
    }
    list.push_back(std::move(plugin));
  }
  return list;
}

int Presets(const char* command, const char* about, const char* kind,
            const std::vector<std::string>& args, Streams streams) {
  CommandLine line(command, about, streams);
  if (!line.Parse(args, 0, 0)) return line.status();
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Diagnostics diagnostics;
  const Json list = PresetsOf(registry, kind, &diagnostics);
  if (line.json()) {
    streams.out << Json{{"schema", absl::StrCat("shardlab.", command, "/1")}, {command, list}}.dump(
                       2)
                << "\n";
  } else {
    for (const Json& plugin : list) {
      streams.out << line.style().Bold(plugin["plugin"]) << "  "
                  << plugin["description"].get<std::string>() << "\n";
      for (const Json& preset : plugin["presets"]) {
        std::string values;
        for (const auto& [key, value] : preset.items()) {
          if (key != "name" && key != "source")
            absl::StrAppend(&values, values.empty() ? "" : ", ", key, " ", value.dump());
        }
        streams.out << "  " << preset["name"].get<std::string>() << "\n    " << values << "\n";
        if (preset.contains("source"))
          streams.out << "    " << line.style().Dim(preset["source"]) << "\n";
      }
    }
  }
  line.Tell(diagnostics, {});
  return diagnostics.HasErrors() ? kOther : kDone;
}

}  // namespace

int ModelsCommand(const std::vector<std::string>& args, Streams streams) {
  return Presets("models", "The models with their presets and sources.", Model::kKind, args,
                 streams);
}

int HardwareCommand(const std::vector<std::string>& args, Streams streams) {
  return Presets("hardware", "The machines with their presets and sources.", Hardware::kKind, args,
                 streams);
}

}  // namespace shardlab
