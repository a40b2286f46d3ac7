#pragma once
// What a search found, for programs and for people: the rows as plans, the counts, why the winner
// wins and what was near.
//
//   nlohmann::ordered_json document = SearchDocument(registry, grid, result, pareto);
//   out << SearchText(document, style);

#include <nlohmann/json.hpp>
#include <string>

#include "io/search_run.h"
#include "io/text_style.h"

namespace shardlab {

// Schema "shardlab.search/1": {scenario, objective, min_headroom, counts, illegal: [{code, count,
// example}], rows: [plan documents with rank, keys and, behind the winner, why], near_misses:
// [{keys, step_seconds, peak_bytes, why}], provenance}. Rows are the best, or the Pareto front.
// `jobs`: threads; the document is the same for any number.
nlohmann::ordered_json SearchDocument(const PluginRegistry& registry, const SearchGrid& grid,
                                      const SearchResult& result, bool pareto, int jobs = 1);

std::string SearchText(const nlohmann::ordered_json& document, const TextStyle& style);

}  // namespace shardlab
