#pragma once
// KEY=VALUE settings of a learner, and dotted paths into documents.
//
//   KeyOf("schedule.degree=2")              // "schedule.degree"
//   ValueAt(document, "memory.peak_bytes")  // null when it is not there

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace shardlab {

inline std::string KeyOf(const std::string& set) { return set.substr(0, set.find('=')); }

inline std::string ValueOf(const std::string& set) {
  const std::size_t equals = set.find('=');
  return equals == std::string::npos ? "" : set.substr(equals + 1);
}

inline const nlohmann::ordered_json* ValueAt(const nlohmann::ordered_json& document,
                                             const std::string& path) {
  const nlohmann::ordered_json* at = &document;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string name = path.substr(from, dot - from);
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &at->at(name);
    from = dot + 1;
  }
  return at;
}

}  // namespace shardlab
