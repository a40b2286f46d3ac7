#pragma once
// What the program exports, as the framework itself would read it: a script's flags, JSON, the
// constants of a Python program. None of it by the exporters' own code.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardlab::exports {

struct ProgramRun {
  int status = -1;
  std::string out, err;
};
// In-process, with this build's plugins; relative files are the repository's.
ProgramRun RunProgram(std::vector<std::string> args);

struct Exported {
  int status = -1;
  nlohmann::json document;
  std::string Text(const std::string& file) const;  // "" when there is no such file
  std::vector<std::string> Errors() const;          // "message; hint" of each error
};
Exported Export(const std::string& name, const std::string& scenario,
                const std::vector<std::string>& sets = {});

// The plan's document; null where it is refused.
nlohmann::json Plan(const std::string& scenario, const std::vector<std::string>& sets = {});
nlohmann::json PlanText(const std::string& toml);

// "--flag value" lines of a script: {"flag": "value"}; "" for a switch.
std::map<std::string, std::string> FlagsOf(const std::string& script);
// NAME = value lines of a Python program, without their comments.
std::map<std::string, std::string> ConstantsOf(const std::string& python);

// Writes `text` to a file and runs `command FILE`; its exit status.
int Checked(const std::string& command, const std::string& text, const std::string& suffix);

}  // namespace shardlab::exports
