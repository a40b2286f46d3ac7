#pragma once
// Every plugin that a run can use: found in the search directories, loaded once, in a fixed order,
// and made by kind and name. There is no list to edit and nothing global: a program may have
// several registries.
//
//   Diagnostics diagnostics;
//   const PluginRegistry registry = PluginRegistry::Load({"build/plugins"}, diagnostics);
//   absl::StatusOr<std::unique_ptr<Strategy>> zero = registry.Make<Strategy>("zero");
//
// A library that cannot be used is a warning, because a plan that does not need it should still
// run; asking for a plugin of that library is an error that says why. Two plugins of one kind and
// name are an error, as is a search directory that does not exist.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/plugin.h"
#include "base/diagnostic.h"
#include "io/plugin_library.h"

namespace shardlab {

struct PluginInfo {
  std::string kind;
  std::string name;
  int version = 0;  // of the kind's interface
  std::string file;
  std::string description;
};

// A plugin without code: a folder with a TOML file and no library. The file is named after the
// kind, textbook/accounting.toml; an example.toml alone makes no plugin.
struct DataFolder {
  std::string kind;
  std::string name;
  std::string directory;
};

class PluginRegistry final {
 public:
  // Looks at DIRECTORY/*.so and DIRECTORY/*/*.so in sorted order. A directory or library that is
  // reached twice counts once.
  static PluginRegistry Load(const std::vector<std::string>& directories, Diagnostics& diagnostics);

  // A plugin that is part of the program itself, as tests have them.
  void Add(RegisteredPlugin plugin, std::string file);

  const PluginInfo* Find(const std::string& kind,
                         const std::string& name) const;          // nullptr: there is none
  std::vector<std::string> Names(const std::string& kind) const;  // sorted
  std::string Nearest(const std::string& kind,
                      const std::string& name) const;  // "" when none is near
  // By kind, then name. Plugins of a kind that this host does not know are in it too.
  std::vector<PluginInfo> List() const;
  const std::vector<DataFolder>& DataFolders() const { return data_folders_; }
  const DataFolder* FindData(const std::string& kind,
                             const std::string& name) const;          // nullptr: none
  std::vector<std::string> DataNames(const std::string& kind) const;  // sorted

  // A new object with its defaults. The message of a failure names the file.
  absl::StatusOr<std::unique_ptr<Plugin>> Make(const std::string& kind,
                                               const std::string& name) const;
  template <class Interface>
  absl::StatusOr<std::unique_ptr<Interface>> Make(const std::string& name) const {
    absl::StatusOr<std::unique_ptr<Plugin>> made = Make(Interface::kKind, name);
    if (!made.ok()) return made.status();
    return std::unique_ptr<Interface>(static_cast<Interface*>(made->release()));
  }

  // Why there is no such plugin: its library was refused, it has another kind, it may be a slip of
  // the pen.
  absl::Status Missing(const std::string& kind, const std::string& name) const;

 private:
  struct Entry {
    RegisteredPlugin plugin;
    std::string file;
    PluginInfo info;
  };
  struct Failure {
    std::string file;
    std::string why;   // the predicate of a sentence
    std::string kind;  // where it is known; else ""
    std::string name;  // where it is known; else the file's stem
  };

  void LoadLibrary(const std::string& file, Diagnostics& diagnostics);
  void LoadFolder(const std::string& folder, std::vector<std::string>& seen,
                  Diagnostics& diagnostics);
  void AddDataFolder(const std::string& folder, Diagnostics& diagnostics);
  void Refuse(Failure failure, Diagnostics& diagnostics);
  const Entry* FindEntry(const std::string& kind, const std::string& name) const;

  std::vector<Entry> entries_;
  std::vector<Failure> failures_;
  std::vector<DataFolder> data_folders_;
};

}  // namespace shardlab
