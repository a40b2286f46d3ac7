#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "api/hardware.h"
#include "api/model.h"
#include "app/plan_command.h"
#include "base/text.h"
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

std::string Shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A preset that has one source: its values on a line. One that has many: each with its own.
void PrintPreset(const Json& preset, const TextStyle& style, std::ostream& out) {
  const auto width = static_cast<std::size_t>(std::max(60, style.width));
  const auto line = [&](const std::string& text, const std::string& source) {
    out << "    " << Wrapped(text, 4, width);
    if (!source.empty()) out << "      " << style.Dim(Wrapped(source, 6, width));
  };
  const auto sources = preset.find("sources");
  std::string values;
  for (const auto& [key, value] : preset.items()) {
    if (key == "name" || key == "source" || key == "sources") continue;
    if (value.is_array()) {
      for (const Json& item : value) {
        std::string text;
        for (const auto& [part, of] : item.items()) {
          if (part != "source")
            absl::StrAppend(&text, text.empty() ? "" : ", ", part, " ", Shown(of));
        }
        line(absl::StrCat(key, ": ", text), item.value("source", ""));
      }
    } else if (sources != preset.end()) {
      line(absl::StrCat(key, " ", Shown(value)), sources->value(key, ""));
    } else {
      absl::StrAppend(&values, values.empty() ? "" : ", ", key, " ", value.dump());
    }
  }
  if (!values.empty())
    line(values, preset.value("source", ""));
  else if (preset.contains("source"))
    line("source", preset.value("source", ""));
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
        streams.out << "  " << preset["name"].get<std::string>() << "\n";
        PrintPreset(preset, line.style(), streams.out);
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
