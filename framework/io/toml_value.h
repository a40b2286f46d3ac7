#pragma once
// TOML in and out: text to a Value whose every part knows its line, column and dotted key. The TOML
// library itself stays inside the .cpp. A text that is not TOML is one diagnostic (the first
// mistake) and a Value of kind kNone; dates are not supported and are named one by one.
//
//   Value root = ReadTomlFile("machine.toml", diagnostics);
//   if (root.kind == Value::kNone) return;
//   root.FindPath("memory.capacity")->place.key;   // "memory.capacity"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

Value ParseToml(const std::string& text, const std::string& file, Diagnostics& diagnostics);
Value ReadTomlFile(const std::string& path, Diagnostics& diagnostics);

// One value, "[1, 2]" or "\"text\"", as after a key's '='; nothing when `text` is not exactly that.
// Places hold `file` and keys below `key`, no lines.
std::optional<Value> ParseTomlValue(std::string_view text, const std::string& file,
                                    const std::string& key, Diagnostics& diagnostics);
// The segments of a dotted key: sweep."a.b" is {"sweep", "a.b"}; nothing when it is not a TOML key.
std::optional<std::vector<std::string>> ParseTomlKey(std::string_view text);

// A key below another, quoted where TOML needs it: ("sweep", "a.b") -> sweep."a.b"
std::string JoinTomlKey(const std::string& parent, std::string_view segment);

// The value as TOML on one line, tables inline; reads back as the same value.
std::string ToToml(const Value& value);

}  // namespace shardlab
