#include "exports/exported.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/commands.h"

namespace shardlab::exports {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::string kRoot = SHARDLAB_SOURCE_DIR "/";

// A folder of this process: what a compiler leaves beside a file goes with it.
fs::path ScratchFolder() {
  const fs::path folder =
      fs::temp_directory_path() / ("shardlab-exports-" + std::to_string(getpid()));
  fs::create_directories(folder);
  return folder;
}

}  // namespace

ProgramRun RunProgram(std::vector<std::string> args) {
  args.insert(args.end(), {"--plugins", SHARDLAB_BINARY_DIR "/plugins"});
  std::ostringstream out, err;
  ProgramRun run;
  run.status = RunShardlab(args, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

std::string Exported::Text(const std::string& file) const {
  for (const Json& entry : document.value("files", Json::array()))
    if (entry.at("name") == file) return entry.at("text");
  return "";
}

std::vector<std::string> Exported::Errors() const {
  std::vector<std::string> errors;
  for (const Json& d : document.at("diagnostics")) {
    if (d.at("severity") != "error") continue;
    errors.push_back(d.at("message").get<std::string>() + "; " + d.at("hint").get<std::string>());
  }
  return errors;
}

Exported Export(const std::string& name, const std::string& scenario,
                const std::vector<std::string>& sets) {
  std::vector<std::string> args = {"export", name, kRoot + scenario, "--format", "json"};
  for (const std::string& set : sets) args.insert(args.end(), {"--set", set});
  const ProgramRun run = RunProgram(args);
  return {run.status, Json::parse(run.out)};
}

Json Plan(const std::string& scenario, const std::vector<std::string>& sets) {
  std::vector<std::string> args = {"plan", kRoot + scenario, "--format", "json"};
  for (const std::string& set : sets) args.insert(args.end(), {"--set", set});
  const ProgramRun run = RunProgram(args);
  Json document = Json::parse(run.out);
  return document.contains("memory") ? document : Json();
}

Json PlanText(const std::string& toml) {
  const fs::path file = ScratchFolder() / "again.toml";
  std::ofstream(file) << toml;
  const ProgramRun run = RunProgram({"plan", file.string(), "--format", "json"});
  fs::remove_all(file.parent_path());
  Json document = Json::parse(run.out);
  return document.contains("memory") ? document : Json(run.err + "\n" + toml);
}

std::map<std::string, std::string> FlagsOf(const std::string& script) {
  std::map<std::string, std::string> flags;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  --") || line.ends_with("\\")) continue;
    const std::size_t blank = line.find(' ', 2);
    flags[line.substr(4, blank == std::string::npos ? blank : blank - 4)] =
        blank == std::string::npos ? "" : line.substr(blank + 1);
  }
  return flags;
}

std::map<std::string, std::string> ConstantsOf(const std::string& python) {
  std::map<std::string, std::string> constants;
  std::istringstream lines(python);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos || line.find(' ') != equals) continue;
    const std::size_t comment = line.find("  #");
    constants[line.substr(0, equals)] =
        line.substr(equals + 3, comment == std::string::npos ? comment : comment - equals - 3);
  }
  return constants;
}

int Checked(const std::string& command, const std::string& text, const std::string& suffix) {
  const fs::path file = ScratchFolder() / ("exported" + suffix);
  std::ofstream(file) << text;
  const int status = std::system((command + " " + file.string() + " >/dev/null 2>&1").c_str());
  fs::remove_all(file.parent_path());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace shardlab::exports
