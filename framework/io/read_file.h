#pragma once
// A user's file as text, or one diagnostic that says why not: missing (with the nearest name beside
// it), a directory, unreadable, empty, too large. Nothing of a file that is too large is kept.
//
//   std::optional<std::string> text = ReadTextFile("scenario.toml", diagnostics);
//   if (!text) return ...;   // the diagnostic is there

#include <cstddef>
#include <optional>
#include <string>

#include "base/diagnostic.h"

namespace shardlab {

// A scenario is a few kilobytes. The limit keeps a wrong argument (a checkpoint, /dev/zero) from
// filling memory.
inline constexpr std::size_t kMaximumTextBytes = 16'000'000;

// Orders and other data that plugins read: one of 100,000 micro-batches on 16 ranks is 26 MB.
inline constexpr std::size_t kMaximumDataBytes = 256'000'000;

std::optional<std::string> ReadTextFile(const std::string& path, Diagnostics& diagnostics,
                                        std::size_t most_bytes = kMaximumTextBytes);

}  // namespace shardlab
