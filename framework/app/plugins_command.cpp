#include "app/plugins_command.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/guarded.h"
#include "io/parameter_io.h"
#include "io/plugin_probe.h"
#include "io/plugin_registry.h"
#include "io/plugin_template.h"
#include "io/render_diagnostics.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "shardlab.plugins/1";

struct Command {
  const PluginsCommandOptions& options;
  std::ostream& out;
  std::ostream& err;

  void Print(const Json& document) const {
    // A plugin's texts are its own affair: what is not UTF-8 is replaced, never thrown at.
    out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  }

  void Warn(const Diagnostics& diagnostics) const {
    err << RenderDiagnostics(diagnostics, {}, options.color);
  }

  int Refuse(const Diagnostics& diagnostics) const {
    Warn(diagnostics);
    if (options.json) Print(DiagnosticsToJson(diagnostics));
    return 2;
  }

  int Refuse(std::string code, const std::string& file, std::string message,
             std::string hint = "") const {
    Diagnostics diagnostics;
    Place place;
    place.file = file;
    diagnostics.Error(std::move(code), std::move(place), std::move(message), std::move(hint));
    return Refuse(diagnostics);
  }

  // Of the plugin's own words about itself; what it throws there is a warning.
  std::vector<ParameterDoc> Parameters(const PluginRegistry& registry, const PluginInfo& info,
                                       Diagnostics& diagnostics) const {
    absl::StatusOr<std::unique_ptr<Plugin>> made = registry.Make(info.kind, info.name);
    if (absl::IsUnimplemented(made.status())) return {};  // a kind that this host does not know
    ParameterDocumenter documenter;
    absl::Status ok = made.status();
    if (ok.ok()) {
      const std::string what =
          absl::StrCat("cannot list the parameters of ", info.kind, " ", info.name);
      ok = Guarded(what, [&] { (*made)->Visit(documenter); });
    }
    if (!ok.ok()) {
      Place place;
      place.file = info.file;
      diagnostics.Warning("plugins.library", std::move(place), std::string(StdSv(ok.message())));
      return {};
    }
    return documenter.docs();
  }

  Json ToJson(const PluginInfo& info, const std::vector<ParameterDoc>& docs) const {
    Json parameters = Json::array();
    for (const ParameterDoc& doc : docs) parameters.push_back(ParameterDocToJson(doc));
    return {{"name", info.name},
            {"kind", info.kind},
            {"version", info.version},
            {"file", info.file},
            {"description", info.description},
            {"parameters", std::move(parameters)}};
  }

  void PrintList(const PluginRegistry& registry) const {
    std::size_t width = 0;
    for (const PluginInfo& info : registry.List()) width = std::max(width, info.name.size());
    std::string kind;
    for (const PluginInfo& info : registry.List()) {
      if (info.kind != kind) out << (kind.empty() ? "" : "\n") << info.kind << "\n";
      kind = info.kind;
      out << "  " << info.name << std::string(width - info.name.size() + 2, ' ') << info.description
          << "\n";
    }
    std::vector<DataFolder> data = registry.DataFolders();
    std::sort(data.begin(), data.end(), [](const DataFolder& a, const DataFolder& b) {
      return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
    });
    for (const DataFolder& folder : data) {
      if (folder.kind != kind) out << (kind.empty() ? "" : "\n") << folder.kind << " (data)\n";
      kind = folder.kind;
      out << "  " << folder.name << "\n";
    }
  }

  void PrintOne(const PluginInfo& info, const std::vector<ParameterDoc>& docs) const {
    out << info.name << ": " << info.description << "\n  " << info.kind << ", interface "
        << info.version << "\n  " << info.file << "\n";
    if (docs.empty()) out << "  no parameters\n";
    for (const ParameterDoc& doc : docs) {
      const std::string value = doc.DefaultText();
      out << "  " << doc.name << (value.empty() ? "" : " = " + value) << "\n      " << doc.type;
      if (!doc.unit.empty()) out << " in " << doc.unit;
      if (!doc.choices.empty()) out << ", " << Enumerate(doc.choices, "or");
      if (const std::string range = doc.RangeText(); !range.empty()) out << ", " << range;
      if (!doc.description.empty()) out << ": " << doc.description;
      out << "\n";
    }
  }

  int List() const { return Show(""); }

  // All plugins for "".
  int Show(const std::string& name) const {
    Diagnostics diagnostics;
    const PluginRegistry registry = PluginRegistry::Load(options.directories, diagnostics);
    if (diagnostics.HasErrors()) return Refuse(diagnostics);

    std::vector<PluginInfo> shown;
    std::vector<std::string> names;
    for (const PluginInfo& info : registry.List()) {
      names.push_back(info.name);
      if (name.empty() || info.name == name) shown.push_back(info);
    }
    if (!name.empty() && shown.empty()) {
      if (ShowData(registry, name)) return 0;
      for (const DataFolder& folder : registry.DataFolders()) names.push_back(folder.name);
      const std::string near = Nearest(name, names);
      Warn(diagnostics);
      return Refuse(
          "plugins.unknown", "", absl::StrCat("there is no plugin ", name),
          near.empty() ? "shardlab plugins list shows all of them" : "did you mean " + near + "?");
    }

    if (name.empty() && !options.json) {
      Warn(diagnostics);
      PrintList(registry);
      return 0;
    }
    Json plugins = Json::array();
    bool first = true;
    for (const PluginInfo& info : shown) {
      const std::vector<ParameterDoc> docs = Parameters(registry, info, diagnostics);
      if (options.json) {
        plugins.push_back(ToJson(info, docs));
      } else {
        if (!first) out << "\n";
        PrintOne(info, docs);
      }
      first = false;
    }
    Warn(diagnostics);
    if (options.json) {
      Json document = {{"schema", kSchema}, {"plugins", std::move(plugins)}};
      document["data"] = Json::array();
      for (const DataFolder& folder : registry.DataFolders()) {
        if (!name.empty()) continue;
        document["data"].push_back(
            {{"name", folder.name}, {"kind", folder.kind}, {"directory", folder.directory}});
      }
      document["diagnostics"] = DiagnosticsToJson(diagnostics).at("diagnostics");
      Print(document);
    }
    return 0;
  }

  // Plugins without code: what their files say. False when there is none of that name.
  bool ShowData(const PluginRegistry& registry, const std::string& name) const {
    Json data = Json::array();
    for (const DataFolder& folder : registry.DataFolders()) {
      if (folder.name != name) continue;
      const std::string file = absl::StrCat(folder.directory, "/", folder.kind, ".toml");
      Diagnostics ignored;
      const Value value = ReadTomlFile(file, ignored);
      data.push_back(
          {{"name", name}, {"kind", folder.kind}, {"file", file}, {"values", ValueToJson(value)}});
      if (options.json) continue;
      out << name << ": " << folder.kind << ", without code\n  " << file << "\n";
      for (const auto& [key, item] : value.table)
        out << "  " << key << " = " << ToToml(item) << "\n";
    }
    if (options.json && !data.empty())
      Print({{"schema", kSchema}, {"plugins", Json::array()}, {"data", data}});
    return !data.empty();
  }

  int Check(const std::string& library) const {
    const absl::StatusOr<std::vector<RegisteredPlugin>> found = ProbeInChild(library);
    if (!found.ok()) {
      return Refuse("plugins.library", library,
                    absl::StrCat("this plugin library ", found.status().message()));
    }
    Json plugins = Json::array();
    for (const RegisteredPlugin& plugin : *found) {
      plugins.push_back(ToJson(
          {plugin.kind, plugin.name, plugin.interface_version, library, plugin.description}, {}));
      plugins.back().erase("parameters");
      if (options.json) continue;
      out << "ok: " << plugin.kind << " " << plugin.name << ", interface "
          << plugin.interface_version
          << (plugin.description.empty() ? "" : ": " + plugin.description) << "\n";
    }
    if (options.json) Print({{"schema", kSchema}, {"plugins", std::move(plugins)}});
    return 0;
  }

  int New(const std::string& kind, const std::string& name) const {
    const absl::StatusOr<std::vector<std::string>> files = WritePluginTemplate(kind, name, ".");
    if (absl::IsUnavailable(files.status())) {
      err << "shardlab: " << StdSv(files.status().message()) << "\n";
      return 1;
    }
    if (!files.ok()) return Refuse("plugins.new", "", std::string(StdSv(files.status().message())));
    if (options.json) {
      Print({{"schema", kSchema}, {"files", *files}});
      return 0;
    }
    out << "a " << kind << " to start from:\n";
    for (const std::string& file : *files) out << "  " << file << "\n";
    out << "build it, load it and plan with it: " << name << "/test.sh\n";
    return 0;
  }
};

}  // namespace

int PluginsCommand(const std::vector<std::string>& args, const PluginsCommandOptions& options,
                   std::ostream& out, std::ostream& err) {
  const Command command{options, out, err};
  const std::string verb = args.empty() ? "list" : args[0];
  if (verb == "list" && args.size() <= 1) return command.List();
  if (verb == "show" && args.size() == 2) return command.Show(args[1]);
  if (verb == "check" && args.size() == 2) return command.Check(args[1]);
  if (verb == "new" && args.size() == 3) return command.New(args[1], args[2]);

  const std::vector<std::string> verbs = {"list", "show", "check", "new"};
  const bool known = std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
  const std::string near = known ? "" : Nearest(verb, verbs);
  return command.Refuse("command.line", "",
                        known ? absl::StrCat("plugins ", verb, " has other arguments")
                              : absl::StrCat("there is no command plugins ", verb),
                        near.empty()
                            ? "shardlab plugins [list | show NAME | check LIB | new KIND NAME]"
                            : "did you mean plugins " + near + "?");
}

}  // namespace shardlab
