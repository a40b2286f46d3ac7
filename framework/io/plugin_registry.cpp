#include "io/plugin_registry.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "io/plugin_kinds.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;

Place PlaceOfFile(const std::string& file) {
  Place place;
  place.file = file;
  return place;
}

std::string Canonical(const std::string& path) {
  std::error_code failed;
  const fs::path canonical = fs::weakly_canonical(path, failed);
  return failed ? path : canonical.string();
}

// True when it is new.
bool Remember(const std::string& path, std::vector<std::string>& seen) {
  std::string canonical = Canonical(path);
  if (std::find(seen.begin(), seen.end(), canonical) != seen.end()) return false;
  seen.push_back(std::move(canonical));
  return true;
}

std::vector<std::string> Sorted(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool EndsIn(const std::string& path, const char* extension) {
  return fs::path(path).extension() == extension;
}

}  // namespace

PluginRegistry PluginRegistry::Load(const std::vector<std::string>& directories,
                                    Diagnostics& diagnostics) {
  PluginRegistry registry;
  std::vector<std::string> seen_directories;
  std::vector<std::string> seen_files;
  for (const std::string& directory : directories) {
    if (!Remember(directory, seen_directories)) continue;
    if (!IsFolder(directory)) {
      std::error_code ignored;
      diagnostics.Error(
          "plugins.directory", PlaceOfFile(directory),
          fs::exists(directory, ignored) ? "this plugin directory is a file"
                                         : "this plugin directory does not exist",
          "--plugins and SHARDLAB_PLUGIN_PATH take directories with DIRECTORY/NAME/NAME.so");
      continue;
    }
    registry.LoadFolder(directory, seen_files, diagnostics);
    for (const std::string& path : Sorted(directory)) {
      // A folder called x.so was refused as a library just before.
      if (!IsFolder(path) || EndsIn(path, ".so") || !Remember(path, seen_directories)) continue;
      registry.LoadFolder(path, seen_files, diagnostics);
      registry.AddDataFolder(path, diagnostics);
    }
  }
  return registry;
}

void PluginRegistry::LoadFolder(const std::string& folder, std::vector<std::string>& seen,
                                Diagnostics& diagnostics) {
  for (const std::string& path : Sorted(folder)) {
    if (EndsIn(path, ".so") && Remember(path, seen)) LoadLibrary(path, diagnostics);
  }
}

void PluginRegistry::LoadLibrary(const std::string& file, Diagnostics& diagnostics) {
  absl::StatusOr<PluginLibrary> library = PluginLibrary::Load(file);
  if (!library.ok()) {
    const std::string stem = fs::path(file).stem().string();
    Refuse({file, std::string(StdSv(library.status().message())), "", stem}, diagnostics);
    return;
  }
  for (const RegisteredPlugin& plugin : library->plugins()) {
    if (std::string why = InterfaceRefusal(plugin); !why.empty()) {
      Refuse({file, std::move(why), plugin.kind, plugin.name}, diagnostics);
    } else if (const Entry* first = FindEntry(plugin.kind, plugin.name); first != nullptr) {
      diagnostics.Add({Severity::kError,
                       "plugins.duplicate",
                       absl::StrCat("two plugins are called ", plugin.kind, " ", plugin.name, ": ",
                                    first->file, " and ", file),
                       PlaceOfFile(file),
                       "remove one, or name fewer plugin directories",
                       {PlaceOfFile(first->file)}});
    } else {
      Add(plugin, file);
    }
  }
}

void PluginRegistry::AddDataFolder(const std::string& folder, Diagnostics& diagnostics) {
  DataFolder data = {"", fs::path(folder).filename().string(), folder};
  for (const std::string& path : Sorted(folder)) {
    if (EndsIn(path, ".so")) return;
    const std::string stem = fs::path(path).stem().string();
    if (data.kind.empty() && EndsIn(path, ".toml") && stem != "example") data.kind = stem;
  }
  if (data.kind.empty()) return;
  if (const DataFolder* first = FindData(data.kind, data.name); first != nullptr) {
    diagnostics.Add({Severity::kError,
                     "plugins.duplicate",
                     absl::StrCat("two plugins are called ", data.kind, " ", data.name, ": ",
                                  first->directory, " and ", folder),
                     PlaceOfFile(folder),
                     "remove one, or name fewer plugin directories",
                     {PlaceOfFile(first->directory)}});
    return;
  }
  data_folders_.push_back(std::move(data));
}

const DataFolder* PluginRegistry::FindData(const std::string& kind, const std::string& name) const {
  for (const DataFolder& folder : data_folders_) {
    if (folder.kind == kind && folder.name == name) return &folder;
  }
  return nullptr;
}

std::vector<std::string> PluginRegistry::DataNames(const std::string& kind) const {
  std::vector<std::string> names;
  for (const DataFolder& folder : data_folders_) {
    if (folder.kind == kind) names.push_back(folder.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void PluginRegistry::Refuse(Failure failure, Diagnostics& diagnostics) {
  diagnostics.Warning("plugins.library", PlaceOfFile(failure.file),
                      absl::StrCat("this plugin library ", failure.why));
  failures_.push_back(std::move(failure));
}

void PluginRegistry::Add(RegisteredPlugin plugin, std::string file) {
  Entry entry;
  entry.info = {plugin.kind, plugin.name, plugin.interface_version, file, plugin.description};
  entry.plugin = std::move(plugin);
  entry.file = std::move(file);
  entries_.push_back(std::move(entry));
}

const PluginRegistry::Entry* PluginRegistry::FindEntry(const std::string& kind,
                                                       const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.plugin.kind == kind && entry.plugin.name == name) return &entry;
  }
  return nullptr;
}

const PluginInfo* PluginRegistry::Find(const std::string& kind, const std::string& name) const {
  const Entry* entry = FindEntry(kind, name);
  return entry == nullptr ? nullptr : &entry->info;
}

std::vector<std::string> PluginRegistry::Names(const std::string& kind) const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.plugin.kind == kind) names.push_back(entry.plugin.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string PluginRegistry::Nearest(const std::string& kind, const std::string& name) const {
  return shardlab::Nearest(name, Names(kind));
}

std::vector<PluginInfo> PluginRegistry::List() const {
  std::vector<PluginInfo> list;
  list.reserve(entries_.size());
  for (const Entry& entry : entries_) list.push_back(entry.info);
  std::sort(list.begin(), list.end(), [](const PluginInfo& a, const PluginInfo& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  });
  return list;
}

absl::StatusOr<std::unique_ptr<Plugin>> PluginRegistry::Make(const std::string& kind,
                                                             const std::string& name) const {
  const Entry* entry = FindEntry(kind, name);
  if (entry == nullptr) return Missing(kind, name);
  absl::StatusOr<std::unique_ptr<Plugin>> made = MakePlugin(entry->plugin);
  if (made.ok()) return made;
  return absl::Status(made.status().code(),
                      absl::StrCat("plugin library ", entry->file, " ", made.status().message()));
}

absl::Status PluginRegistry::Missing(const std::string& kind, const std::string& name) const {
  for (const Failure& failure : failures_) {
    const std::string folder = fs::path(failure.file).parent_path().filename().string();
    const bool meant = failure.kind.empty() ? failure.name == name || folder == name
                                            : failure.kind == kind && failure.name == name;
    if (!meant) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "there is no ", kind, " ", name, ": plugin library ", failure.file, " ", failure.why));
  }
  std::string text = absl::StrCat("there is no ", kind, " ", name);
  for (const Entry& entry : entries_) {
    if (entry.plugin.name != name) continue;
    return absl::NotFoundError(absl::StrCat(text, ", but a ", entry.plugin.kind, " of that name"));
  }
  const std::vector<std::string> names = Names(kind);
  if (const std::string near = Nearest(kind, name); !near.empty()) {
    absl::StrAppend(&text, ", did you mean ", near, "?");
  } else if (!names.empty()) {
    absl::StrAppend(&text, " (there ", names.size() == 1 ? "is " : "are ", Enumerate(names), ")");
  }
  return absl::NotFoundError(text);
}

}  // namespace shardlab
