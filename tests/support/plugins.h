#pragma once
// The plugins of this build, loaded once: what suites that run over every plugin iterate over.
//
//   for (const std::string& name : BuiltPlugins().Names("network")) ...

#include <string>
#include <vector>

#include "io/plugin_registry.h"

namespace shardlab {

const PluginRegistry& BuiltPlugins();

// plugins/KIND_FOLDER/NAME of the source tree; "" when there is none.
std::string SourceFolderOf(const std::string& plugin);
// The presets in a plugin's folder, by name.
std::vector<std::string> PresetsOf(const std::string& plugin);

}  // namespace shardlab
