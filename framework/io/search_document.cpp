#include "io/search_document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/ordered_work.h"
#include "io/parameter_io.h"
#include "io/plan_document.h"
#include "io/quantity.h"
#include "io/search_why.h"
#include "io/sweep_text.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostParts = 3;

// How `other` spends its time differently from `winner`, the largest differences first.
std::string Difference(const Found& winner, const Found& other) {
  return TimeDifference(winner.step, winner.time, other.step, other.time);
}

Json KeysOf(const SearchGrid& grid, const SearchPoint& point) {
  Json keys = Json::object();
  for (const auto& [key, value] : SettingsOf(grid, point)) keys[key] = ValueToJson(value);
  return keys;
}

double ObjectiveOf(const SearchGrid& grid, const Found& found) {
  return grid.objective == Objective::kTokensPerSecondPerDevice ? -found.objective
                                                                : found.objective;
}

std::string ShortKeys(const Json& keys) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : keys.items()) {
    // A shell would take lists apart.
    const char* quote = value.is_array() ? "'" : "";
    parts.push_back(absl::StrCat("--set ", quote, key, "=",
                                 value.is_string() ? value.get<std::string>() : value.dump(),
                                 quote));
  }
  return absl::StrJoin(parts, " ");
}

// "TP8 PP2 DP2 mb1 zero.stage=1": the plan in the field's shorthand, and what shards state as it is
// set.
std::string Shorthand(const Json& plan, const Sharding& sharding) {
  std::vector<std::string> words;
  const auto degree = [&](const char* name, const char* key) {
    if (plan[key].get<int>() > 1) words.push_back(absl::StrCat(name, plan[key].get<int>()));
  };
  degree("TP", "tensor");
  degree("CP", "context");
  degree("PP", "pipeline");
  degree("x", "chunks");
  degree("DP", "data");
  degree("EP", "expert");
  degree("ETP", "expert_tensor");
  words.push_back(absl::StrCat("mb", plan["micro_batch_size"].get<int>()));
  if (!sharding.table.empty()) {
    const Json value = ValueToJson(sharding.value);
    words.push_back(absl::StrCat(sharding.table, ".", sharding.key, "=",
                                 value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return absl::StrJoin(words, " ");
}

std::string RecomputeWord(const Json& row) {
  const Json& recompute = row["plan"]["recompute"];
  std::string mode = recompute["mode"];
  if (recompute["layers"].is_number())
    return absl::StrCat(recompute["layers"].get<int>(), " layers");
  return mode;
}

std::string ScheduleWord(const Json& row) {
  if (row["plan"]["pipeline"].get<int>() == 1) return "-";
  const std::string name = row["plan"]["schedule"];
  return name.rfind("pipeline-", 0) == 0 ? name.substr(9) : name;
}

// Strong knobs and links, and what binds.
std::string WinnerText(const Json& winner, std::size_t width) {
  constexpr std::size_t kMostKnobs = 8;
  const auto share = [](const Json& of) {
    const double percent = 100 * of["step_share"].get<double>();
    return absl::StrCat(percent > 0 ? "+" : "", Significant(percent, 3), " %");
  };
  std::vector<std::string> binds, knobs, links;
  binds.reserve(winner["binds"].size());
  for (const Json& text : winner["binds"]) binds.push_back(text.get<std::string>());
  for (const Json& knob : winner["knobs"]) {
    if (knob["legal"] == 0 || knobs.size() == kMostKnobs) continue;
    knobs.push_back(absl::StrCat(knob["change"].get<std::string>(), " ", share(knob),
                                 knob["fits"].get<bool>() ? "" : " and does not fit"));
  }
  for (const Json& link : winner["links"])
    links.push_back(absl::StrCat(link["link"].get<std::string>(), " 10 % faster ", share(link)));
  std::string out;
  const auto line = [&](const char* title, const std::vector<std::string>& words) {
    if (!words.empty())
      absl::StrAppend(&out, title, Wrapped(absl::StrJoin(words, "; "), 10, width));
  };
  line("binds     ", binds);
  line("knobs     ", knobs);
  line("links     ", links);
  return out;
}

}  // namespace

Json SearchDocument(const PluginRegistry& registry, const SearchGrid& grid,
                    const SearchResult& result, bool pareto, int jobs) {
  Json document = {{"schema", "shardlab.search/1"},
                   {"scenario", grid.name},
                   {"objective", Name(grid.objective)},
                   {"min_headroom", grid.min_headroom},
                   {"pareto", pareto},
                   {"counts", CountsToJson(result.counts)}};
  document["illegal"] = Json::array();
  for (const auto& [code, reason] : result.illegal) {
    document["illegal"].push_back(
        {{"legal", 0}, {"code", code}, {"count", reason.count}, {"reason", reason.example}});
  }
  Json rows = Json::array(), provenance = Json::array();
  const std::vector<Found>& found = pareto ? result.pareto : result.best;
  // Without a document where there is no such plan, which a search has not found.
  const auto plan_of = [&](std::int64_t i, int) -> std::optional<Json> {
    Diagnostics diagnostics;
    const SearchPoint& point = found[static_cast<std::size_t>(i)].point;
    const PlannedScenario planned = PlanScenario(registry, ScenarioOf(grid, point), &diagnostics);
    if (planned.composed.composition == nullptr) return std::nullopt;
    return PlanDocument(planned, diagnostics);
  };
  const auto add = [&](std::int64_t at, std::optional<Json> planned) {
    if (!planned) return;
    const auto i = static_cast<std::size_t>(at);
    Json row = {{"rank", i + 1},
                {"legal", 1},
                {"keys", KeysOf(grid, found[i].point)},
                {"objective", ObjectiveOf(grid, found[i])}};
    if (i > 0) row["why"] = Difference(found[0], found[i]);
    Json plan = *std::move(planned);
    for (const Json& constant : plan["provenance"]) {
      if (std::find(provenance.begin(), provenance.end(), constant) == provenance.end())
        provenance.push_back(constant);
    }
    plan.erase("provenance");
    row["name"] = Shorthand(plan["plan"], grid.Group(found[i].point.group).sharding);
    for (const auto& [key, value] : plan.items()) row[key] = value;
    rows.push_back(std::move(row));
  };
  InOrder(static_cast<std::int64_t>(found.size()), jobs, plan_of, add);
  document["rows"] = std::move(rows);
  document["near_misses"] = Json::array();
  for (const Found& near : result.best_unfitting) {
    if (!result.best.empty() && near.objective >= result.best[0].objective) continue;
    const double over = near.peak - (1 - grid.min_headroom) * near.capacity;
    std::string why =
        near.fits ? absl::StrCat("leaves too little free, by ", FormatBytes(over))
                  : absl::StrCat("does not fit, by ", FormatBytes(near.peak - near.capacity));
    if (!near.fits && near.peak <= near.capacity) why = "does not fit into the host's memory";
    if (!result.best.empty()) absl::StrAppend(&why, "; ", Difference(result.best[0], near));
    document["near_misses"].push_back({{"keys", KeysOf(grid, near.point)},
                                       {"step_seconds", near.step},
                                       {"peak_bytes", std::llround(near.peak)},
                                       {"why", why}});
  }
  if (!pareto) document["winner"] = WinnerDocument(registry, grid, result, jobs);
  document["provenance"] = std::move(provenance);
  return document;
}

std::string SearchText(const Json& document, const TextStyle& style) {
  const Json& counts = document["counts"];
  SweepCounts c;
  c.considered = counts["considered"];
  c.illegal = counts["illegal"];
  c.pruned = counts["pruned"];
  c.evaluated = counts["evaluated"];
  c.not_fitting = counts["not_fitting"];
  const auto width = static_cast<std::size_t>(std::max(60, style.width));
  std::string out = absl::StrCat(style.Bold(document["scenario"].get<std::string>()), "\n",
                                 Wrapped(CountsText(c), 2, width));
  const Json& rows = document["rows"];
  std::vector<std::vector<std::string>> lines = {
      {"", "plan", "recompute", "schedule", "peak", "step", "MFU", "tokens/s/device"}};
  for (const Json& row : rows) {
    lines.push_back(
        {absl::StrCat(row["rank"].get<int>()), row["name"].get<std::string>(), RecomputeWord(row),
         ScheduleWord(row), FormatBytes(row["memory"]["peak_bytes"]),
         FormatSeconds(row["time"]["step_seconds"]),
         absl::StrCat(Significant(100 * row["throughput"]["mfu"].get<double>(), 3), " %"),
         WithThousands(
             std::llround(row["throughput"]["tokens_per_second_per_device"].get<double>()))});
  }
  if (rows.empty()) {
    out += "\nno legal plan of the grid fits\n";
  } else {
    out += "\n";
    std::vector<std::size_t> widths(lines[0].size(), 0);
    for (const auto& line : lines) {
      for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
    }
    for (std::size_t l = 0; l < lines.size(); ++l) {
      std::string line;
      for (std::size_t i = 0; i < lines[l].size(); ++i) {
        const std::string pad(widths[i] - lines[l][i].size(), ' ');
        const bool left = i >= 1 && i <= 3;
        line += "  " + (left ? lines[l][i] + pad : pad + lines[l][i]);
      }
      absl::StrAppend(&out, l == 0 ? style.Bold(line) : line, "\n");
    }
    absl::StrAppend(&out, "\nbest      ", Wrapped(ShortKeys(rows[0]["keys"]), 10, width));
    // Plans with the winner's numbers say nothing about why it wins.
    std::vector<std::string> told;
    for (const Json& row : rows) {
      if (!row.contains("why") || told.size() == kMostParts) continue;
      const std::string why = row["why"];
      if (why == "as fast" || std::find(told.begin(), told.end(), why) != told.end()) continue;
      told.push_back(why);
      absl::StrAppend(&out, told.size() == 1 ? "why       " : "          ",
                      Wrapped(absl::StrCat(row["rank"].get<int>(), " takes ", why), 10, width));
    }
  }
  if (document.contains("winner") && document["winner"].is_object())
    absl::StrAppend(&out, WinnerText(document["winner"], width));
  for (const Json& near : document["near_misses"]) {
    absl::StrAppend(&out, "nearly    ",
                    Wrapped(absl::StrCat(FormatSeconds(near["step_seconds"]), ", ",
                                         near["why"].get<std::string>()),
                            10, width),
                    "          ", Wrapped(ShortKeys(near["keys"]), 10, width));
  }
  if (document.contains("why_not")) {
    const Json& not_it = document["why_not"];
    std::string why = not_it["why"];
    if (not_it["legal"] == 0) why = absl::StrCat("illegal: ", why);
    if (not_it.contains("step_seconds"))
      absl::StrAppend(&why, "; ", FormatSeconds(not_it["step_seconds"]), " a step, ",
                      FormatBytes(not_it["peak_bytes"]));
    absl::StrAppend(&out, "why not   ", Wrapped(why, 10, width));
    if (not_it.contains("nearest")) {
      for (const Json& near : not_it["nearest"])
        absl::StrAppend(&out, "          ",
                        Wrapped(absl::StrCat("legal with ", near["change"].get<std::string>(), ": ",
                                             FormatSeconds(near["step_seconds"]), ", ",
                                             FormatBytes(near["peak_bytes"]),
                                             near["fits"].get<bool>() ? "" : ", does not fit"),
                                10, width));
    }
  }
  if (rows.empty() && !document["illegal"].empty()) {
    out += "illegal   ";
    bool first = true;
    for (const Json& reason : document["illegal"]) {
      absl::StrAppend(&out, first ? "" : "          ",
                      Wrapped(absl::StrCat(WithThousands(reason["count"].get<long long>()), ": ",
                                           reason["reason"].get<std::string>()),
                              10, width));
      first = false;
    }
  }
  return out;
}

}  // namespace shardlab
