#pragma once
// [expect]: what must hold of a plan document. Keys are paths into the JSON,
// "memory.ranks[0].total_bytes"; a bare value must be equal; { value, relative, absolute, min, max
// } bound a number.
//
//   CheckExpectations(expect, document, &diagnostics);   // each miss is an error with its place

#include <nlohmann/json.hpp>
#include <string>

#include "api/value.h"
#include "base/diagnostic.h"

namespace shardlab {

void CheckExpectations(const Value& expect, const nlohmann::ordered_json& document,
                       Diagnostics* diagnostics);

// The value at a path, or null with what is wrong with the path and, where it is known, what to
// write.
const nlohmann::ordered_json* AtPath(const nlohmann::ordered_json& document,
                                     const std::string& path, std::string* problem,
                                     std::string* hint);

}  // namespace shardlab
