#include "support/plugins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/diagnostic.h"

namespace shardlab {

const PluginRegistry& BuiltPlugins() {
  static const PluginRegistry* const registry = [] {
    Diagnostics diagnostics;
    auto* loaded =
        new PluginRegistry(PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics));
    for (const Diagnostic& d : diagnostics.all())
      ADD_FAILURE() << d.place.file << ": " << d.message;
    return loaded;
  }();
  return *registry;
}

std::string SourceFolderOf(const std::string& plugin) {
  for (const auto& kind : std::filesystem::directory_iterator(SHARDLAB_SOURCE_DIR "/plugins")) {
    const std::filesystem::path folder = kind.path() / plugin;
    if (std::filesystem::is_directory(folder)) return folder.string();
  }
  return "";
}

std::vector<std::string> PresetsOf(const std::string& plugin) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& file :
       std::filesystem::directory_iterator(SourceFolderOf(plugin) + "/presets", none)) {
    if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shardlab
