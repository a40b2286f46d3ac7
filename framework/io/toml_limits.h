#pragma once
// What text must be before the TOML library sees it: of bounded size, UTF-8, without NUL bytes, and
// neither nested so deep that a recursive reader would overflow its stack nor with so many values
// that it would fill the memory. One linear pass that knows just enough of TOML (strings, comments,
// brackets, keys).
//
//   if (!CheckTomlLimits(text, "scenario.toml", diagnostics)) return Value();

#include <cstddef>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace shardlab {

inline constexpr int kMaximumTomlDepth = 100;  // tables and lists inside one another
inline constexpr std::size_t kMaximumTomlValues =
    500'000;  // about 0.5 KB each once they carry their place

// At most one diagnostic: the first reason against the text. `text` has no byte order mark any
// more.
bool CheckTomlLimits(std::string_view text, const std::string& file, Diagnostics& diagnostics);

}  // namespace shardlab
