#pragma once
// Tries a library in a child process: loads it, registers, makes each of its plugins and asks for
// their parameters. Whatever the library does there, an abort in a static initialiser, a crash, an
// endless loop, becomes a sentence here.
//
//   absl::StatusOr<std::vector<RegisteredPlugin>> found = ProbeInChild("my-plugin.so");
//   if (!found.ok()) err << path << " " << found.status().message();    // "crashes while it is
//   loaded: ..."
//
// The factories in the answer are null: they are addresses of the child. Not for programs with more
// than one thread: the child is a fork without an exec.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/plugin_library.h"

namespace shardlab {

absl::StatusOr<std::vector<RegisteredPlugin>> ProbeInChild(const std::string& path,
                                                           double timeout_seconds = 20);

}  // namespace shardlab
