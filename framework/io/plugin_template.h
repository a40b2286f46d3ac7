#pragma once
// `shardlab plugins new KIND NAME`: a folder that builds, loads and plans as it stands, to be
// changed from there. It works outside of this repository against an installed shardlab and, in
// plugins/<kinds>/, inside.
//
//   absl::StatusOr<std::vector<std::string>> files = WritePluginTemplate("strategy", "my-zero",
//   ".");
//   // ./my-zero/my_zero.cpp, CMakeLists.txt, README.md, example.toml, test.sh

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shardlab {

// The files of the new folder PARENT/NAME, in the order in which to look at them. Refused, with
// nothing written: an unknown kind, a name outside [a-z][a-z0-9-]*, a folder that exists.
absl::StatusOr<std::vector<std::string>> WritePluginTemplate(const std::string& kind,
                                                             const std::string& name,
                                                             const std::string& parent);

// my-zero -> my_zero, MyZero: the file and the class of a plugin.
std::string PluginFileStem(const std::string& name);
std::string PluginClassName(const std::string& name);

}  // namespace shardlab
