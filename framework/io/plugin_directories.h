#pragma once
// Where plugins are looked for, in order: --plugins, the environment's SHARDLAB_PLUGIN_PATH
// (separated by colons), then <folder of the executable>/../lib/shardlab/plugins of an installed
// shardlab and <folder of the executable>/plugins of a build. The last two only where they exist.
//
//   const std::vector<std::string> directories = PluginDirectories(from_command_line, argv[0]);
//   PluginRegistry registry = PluginRegistry::Load(directories, diagnostics);

#include <string>
#include <vector>

namespace shardlab {

// `argv0` serves only where the system does not say which file is being executed.
std::vector<std::string> PluginDirectories(const std::vector<std::string>& from_command_line,
                                           const char* argv0);

}  // namespace shardlab
