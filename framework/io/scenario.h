#pragma once
// What the user asked for, as read: the file's text (to show lines from), its values with their
// places, and the --set overrides already laid over them. Nothing here knows what a key means.
//
//   Diagnostics diagnostics;
//   Scenario scenario = ReadScenario("70b.toml", {"training.micro_batch_size=2"}, diagnostics);
//   const Value* degree = scenario.root.FindPath("strategy.tensor.degree");

#include <string>
#include <vector>

#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

// One --set KEY=VALUE. Its places have the file "--set" and no line.
struct Override {
  std::vector<std::string> path;
  std::string key;  // the path, dotted and quoted where TOML needs it
  Value value;
};

struct Scenario {
  std::string file;
  std::string text;                 // empty when the file could not be read
  Value root;                       // a table; kind kNone when the text is not TOML
  std::vector<Override> overrides;  // those that hold, in the order given
};

inline constexpr const char* kSetFile = "--set";

Scenario ReadScenario(const std::string& path, const std::vector<std::string>& sets,
                      Diagnostics& diagnostics);
Scenario ScenarioFromText(const std::string& text, const std::string& file,
                          const std::vector<std::string>& sets, Diagnostics& diagnostics);

// Puts a value at a path of keys, making the tables that are missing (with the value's place).
// False, with a diagnostic, when the path leads through something that is no table.
bool SetAtPath(Value* root, const std::vector<std::string>& path, Value value,
               Diagnostics& diagnostics);

}  // namespace shardlab
