#include "app/export_command.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "io/export_plan.h"

namespace shardlab {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

bool WriteFiles(const ExportedPlan& exported, const std::string& folder, Streams streams) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  for (const ExportedFile& file : exported.files) {
    const fs::path path = fs::path(folder) / file.name;
    std::ofstream out(path, std::ios::binary);
    out << file.text;
    out.close();
    if (!out) {
      streams.err << "shardlab: " << path.string() << " cannot be written\n";
      return false;
    }
    streams.err << "wrote " << path.string() << "\n";
  }
  return true;
}

}  // namespace

int ExportCommand(const std::vector<std::string>& args, Streams streams) {
  CommandLine line("export FRAMEWORK FILE [-o DIR] [--set KEY=VALUE]...",
                   "The plan of a scenario as flags, configuration or code of a training "
                   "framework. FRAMEWORK: one of\n`shardlab plugins list`, kind export, without "
                   "its \"export-\".",
                   streams);
  std::vector<std::string> sets;
  std::string folder;
  line.options().add_options()("set", po::value(&sets)->composing(),
                               "a key of the file with another value; repeatable")(
      "output,o", po::value(&folder), "write the files into this folder");
  if (!line.Parse(args, 2, 2)) return line.status();
  const PluginRegistry registry = line.LoadPlugins();
  if (!line.PluginsAreUsable()) return kWrongInput;
  Diagnostics diagnostics;
  const Scenario scenario = ReadScenario(line.positional()[1], sets, diagnostics);
  const Sources sources = {{scenario.file, scenario.text}};
  ExportedPlan exported;
  if (!diagnostics.HasErrors())
    exported = ExportPlan(registry, line.positional()[0], scenario, &diagnostics);
  if (diagnostics.HasErrors()) {
    line.Tell(diagnostics, sources);
    return kWrongInput;
  }
  if (line.values().count("output") != 0 && !WriteFiles(exported, folder, streams)) return kOther;
  if (line.json()) {
    streams.out << ExportDocument(exported, diagnostics).dump(2) << "\n";
  } else if (line.values().count("output") == 0) {
    // One file can go straight into a shell; several are told apart as `head` does it.
    for (const ExportedFile& file : exported.files) {
      if (exported.files.size() > 1) streams.out << "==> " << file.name << " <==\n";
      streams.out << file.text;
    }
  }
  line.TellOnError(diagnostics, sources);
  return kDone;
}

}  // namespace shardlab
