#pragma once
// `shardlab plugins [list | show NAME | check LIB | new KIND NAME]`: what is loaded with its
// parameters, a library tried in a process of its own, a folder to start a new plugin from.
//
//   return PluginsCommand({"show", "zero"}, {.directories = PluginDirectories(...)}, std::cout,
//   std::cerr);
//
// Exit status: 0; 2 when the arguments or a plugin are wrong, with diagnostics on `err` and, with
// json, the document of them on `out`; 1 when something else fails (a file that cannot be written).

#include <ostream>
#include <string>
#include <vector>

namespace shardlab {

struct PluginsCommandOptions {
  std::vector<std::string>
      directories;  // where plugins are looked for, see io/plugin_directories.h
  bool json = false;
  bool color = false;  // of diagnostics
};

int PluginsCommand(const std::vector<std::string>& args, const PluginsCommandOptions& options,
                   std::ostream& out, std::ostream& err);

}  // namespace shardlab
