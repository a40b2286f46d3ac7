#pragma once
// Looks at a shared library before the dynamic linker does. dlopen trusts the file's own headers: a
// truncated library kills the process by a signal instead of failing, so everything that the linker
// will map or read is held against the file's size first. What passes may still be broken inside;
// plugin_probe.h is for that.
//
//   if (absl::Status ok = CheckElf(path); !ok.ok()) return ok;   // "is cut short: ..."
//
// A refusal is the predicate of a sentence about the file: "is empty", "is for another CPU
// (aarch64), ...".

#include <string>

#include "absl/status/status.h"

namespace shardlab {

absl::Status CheckElf(const std::string& path);

}  // namespace shardlab
