#pragma once
// The kinds of plugin that this host knows, with the version of each interface. Other kinds are
// listed and left alone; only here does the program say which C++ class stands behind a kind's
// name.
//
//   const KnownKind* kind = FindKind("strategy");     // interface 1, folder "strategies"
//   absl::StatusOr<std::unique_ptr<Plugin>> made = MakePlugin(registered);

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "api/plugin.h"
#include "io/plugin_library.h"

namespace shardlab {

struct KnownKind {
  const char* name;
  const char* plural;  // the folder of this repository: plugins/<plural>/<name>
  int interface_version;
  bool (*fits)(const Plugin& plugin);  // is it an object of the kind's interface?
};

const KnownKind* FindKind(const std::string& name);  // nullptr: not known
std::vector<std::string> KindNames();

// Empty, or why the host cannot use this plugin: "has interface 2 of kind strategy, this shardlab
// has 1".
std::string InterfaceRefusal(const RegisteredPlugin& plugin);

// Makes an object with the factory. What that throws, a null and an object of another interface are
// a status.
absl::StatusOr<std::unique_ptr<Plugin>> MakePlugin(const RegisteredPlugin& plugin);

}  // namespace shardlab
