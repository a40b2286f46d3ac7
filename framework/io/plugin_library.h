#pragma once
// One shared library of plugins, loaded for the rest of the run. Before any C++ of the library is
// called, its plain-C entry says which API, struct size and C++ build it was made for; only then
// may it register.
//
//   absl::StatusOr<PluginLibrary> library = PluginLibrary::Load("plugins/zero/zero.so");
//   for (const RegisteredPlugin& plugin : library->plugins()) ...
//
// A refusal is the predicate of a sentence about the file ("needs plugin API 2, ..."). Two things
// cannot be refused, because they happen inside dlopen: an exception or a crash in the library's
// static initialisers. There the program ends with one line that names the library and exit status
// 1; ProbeInChild survives them.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/plugin.h"

namespace shardlab {

struct RegisteredPlugin {
  std::string kind;
  int interface_version = 0;
  std::string name;
  std::string description;
  PluginFactory factory = nullptr;
};

// What happens when the library ends the program while it is loaded.
enum class Ending { kOneLine, kLeaveAlone };

class PluginLibrary final {
 public:
  static absl::StatusOr<PluginLibrary> Load(const std::string& path,
                                            Ending ending = Ending::kOneLine);

  const std::string& path() const { return path_; }
  const std::vector<RegisteredPlugin>& plugins() const { return plugins_; }

 private:
  std::string path_;
  std::vector<RegisteredPlugin> plugins_;
};

// What the entry of a library says, against this program; exported for tests.
absl::Status CheckEntry(const ShardlabPluginEntry* entry);

}  // namespace shardlab
