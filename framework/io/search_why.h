#pragma once
// Why a search's winner wins, what it depends on, and why a plan that the user names does not.
//
//   document["winner"] = WinnerDocument(registry, grid, result);
//   document["why_not"] = WhyNotDocument(registry, grid, result, {"schedule.degree=8"},
//   &diagnostics);

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/search_run.h"

namespace shardlab {

// How `other` spends its time differently from `winner`, the largest differences first: "+2.1 %:
// bubble +310.0 ms, tensor traffic -80.0 ms".
std::string TimeDifference(double step, const TimeParts& time, double other_step,
                           const TimeParts& other);

// {binds: [texts, the tightest first], knobs: [{change, legal, step_share, fits, peak_bytes |
// reason}], links: [{link, faster, step_share}]}: step_share is the change of the step over the
// winner's. Knobs are the neighbours in the grid, each one change; a link is `faster` times as
// fast, latency and all. Null without a winner.
// `jobs`: threads.
nlohmann::ordered_json WinnerDocument(const PluginRegistry& registry, const SearchGrid& grid,
                                      const SearchResult& result, int jobs = 1);

// The winner with the named keys: {keys, legal, fits, step_seconds, peak_bytes, why, nearest:
// [{change, step_seconds, peak_bytes, fits}]}. An illegal plan has in `why` what it breaks first,
// with what would be legal, and in `nearest` the legal plans that are one change away, the fastest
// first.
nlohmann::ordered_json WhyNotDocument(const PluginRegistry& registry, const SearchGrid& grid,
                                      const SearchResult& result,
                                      const std::vector<std::string>& settings,
                                      Diagnostics* diagnostics);

}  // namespace shardlab
