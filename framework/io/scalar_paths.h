#pragma once
// A document's scalars as flat names and values, "memory.peak_bytes": the columns of CSV and of
// stored sweeps. Lists are left out.
//
//   for (const auto& [path, value] : ScalarPaths(document, {"memory", "time"})) ...

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace shardlab {

using Cell = std::pair<std::string, nlohmann::ordered_json>;

// In the order of the document; `parts` it lacks are passed over.
std::vector<Cell> ScalarPaths(const nlohmann::ordered_json& document,
                              const std::vector<std::string>& parts);

// As RFC 4180 wants it: quoted where it holds a comma, a quote or a line end.
std::string CsvField(const nlohmann::ordered_json& value);

}  // namespace shardlab
