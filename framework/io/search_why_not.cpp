#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "io/plan_document.h"
#include "io/quantity.h"
#include "io/search_why.h"
#include "io/sweep_text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNear = 3;

std::string FirstError(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError)
      return d.hint.empty() ? d.message : absl::StrCat(d.message, " (", d.hint, ")");
  }
  return "";
}

class WhyNot {
 public:
  WhyNot(const PluginRegistry& registry, const SearchGrid& grid, const SearchResult& result)
      : registry_(registry), grid_(grid), result_(result) {}

  Json Run(const std::vector<std::string>& settings, Diagnostics* diagnostics) {
    Scenario named = result_.best.empty() ? grid_.base : ScenarioOf(grid_, result_.best[0].point);
    if (!Name(settings, &named, diagnostics)) return nullptr;
    Json keys = Json::object();
    for (const std::string& setting : settings)
      keys[setting.substr(0, setting.find('='))] = setting.substr(setting.find('=') + 1);
    Json document = {{"keys", keys}};
    Diagnostics own;
    const PlannedScenario planned = PlanScenario(registry_, named, &own);
    if (planned.composed.composition == nullptr || own.HasErrors()) {
      document["legal"] = 0;
      document["why"] = FirstError(own);
      document["nearest"] = Nearest(named);
      return document;
    }
    const Evaluation& e = planned.explanation.evaluation;
    document["legal"] = 1;
    document["fits"] = e.fits;
    document["step_seconds"] = e.step;
    document["peak_bytes"] = std::llround(e.peak);
    document["why"] = Why(e);
    return document;
  }

 private:
  bool Name(const std::vector<std::string>& settings, Scenario* named, Diagnostics* diagnostics) {
    for (const std::string& setting : settings) {
      const std::size_t equals = setting.find('=');
      const auto path = ParseTomlKey(setting.substr(0, equals));
      if (equals == std::string::npos || !path) {
        diagnostics->Error("set.form", {"--why-not", 0, 0, setting},
                           absl::StrCat("\"", setting, "\" is no KEY=VALUE"),
                           "write --why-not schedule.degree=8");
        continue;
      }
      // Strategies that shard state take each other's place.
      for (const std::string& table : grid_.sharding_tables) {
        if (setting.rfind(absl::StrCat("strategy.", table, "."), 0) != 0) continue;
        for (const std::string& other : grid_.sharding_tables) {
          if (other != table) EraseKey(&named->root, "strategy." + other);
        }
      }
      Diagnostics no_toml;
      const std::string text = setting.substr(equals + 1);
      std::optional<Value> value = ParseTomlValue(text, "--why-not", setting, no_toml);
      if (!value) value = Value::Text(text);
      value->place = {"--why-not", 0, 0, setting.substr(0, equals)};
      value->key_place = value->place;
      SetAtPath(&named->root, *path, *value, *diagnostics);
    }
    return !diagnostics->HasErrors();
  }

  std::string Why(const Evaluation& e) const {
    if (!e.fits) {
      const std::string where = e.peak > e.capacity
                                    ? absl::StrCat("by ", FormatBytes(e.peak - e.capacity),
                                                   " on pipeline rank ", e.worst_rank)
                                    : "into the host's memory";
      return absl::StrCat("does not fit, ", where);
    }
    const double allowed = (1 - grid_.min_headroom) * e.capacity;
    std::string why;
    if (e.peak > allowed)
      why = absl::StrCat("leaves too little free, by ", FormatBytes(e.peak - allowed), "; ");
    if (result_.best.empty()) return why + "it fits; no plan of the grid does";
    const Found& winner = result_.best[0];
    if (e.step <= winner.step * (1 + 1e-12) && why.empty())
      return e.step < winner.step * (1 - 1e-12)
                 ? "it is faster than the best of the grid, of which it is no plan"
                 : "it is as fast as the winner";
    return absl::StrCat(why, TimeDifference(winner.step, winner.time, e.step, e.time));
  }

  // Legal plans that are one halving or doubling of a degree away.
  Json Nearest(const Scenario& named) const {
    std::vector<std::string> keys = {"schedule.degree", "schedule.chunks",
                                     "training.micro_batch_size", "training.global_batch_size"};
    for (const SearchAxis& axis : grid_.axes) {
      keys.push_back(axis.offer.Key());
      if (axis.HasSecond()) keys.push_back(axis.offer.WithKey());
    }
    std::vector<Json> near;
    for (const std::string& key : keys) {
      const Value* now = named.root.FindPath(key);
      if (now == nullptr || now->kind != Value::kInteger) continue;
      for (const std::int64_t to : {now->integer / 2, now->integer * 2}) {
        if (to < 1) continue;
        Scenario with = named;
        Diagnostics own;
        Value value = Value::Integer(to);
        value.place = value.key_place = {"--why-not", 0, 0, key};
        SetAtPath(&with.root, *ParseTomlKey(key), value, own);
        const PlannedScenario planned = PlanScenario(registry_, with, &own);
        if (planned.composed.composition == nullptr || own.HasErrors()) continue;
        const Evaluation& e = planned.explanation.evaluation;
        near.push_back({{"change", absl::StrCat(key, "=", to)},
                        {"step_seconds", e.step},
                        {"peak_bytes", std::llround(e.peak)},
                        {"fits", e.fits}});
      }
    }
    std::stable_sort(near.begin(), near.end(), [](const Json& a, const Json& b) {
      if (a["fits"] != b["fits"]) return a["fits"].get<bool>();
      return a["step_seconds"].get<double>() < b["step_seconds"].get<double>();
    });
    if (near.size() > kMostNear) near.resize(kMostNear);
    return near;
  }

  const PluginRegistry& registry_;
  const SearchGrid& grid_;
  const SearchResult& result_;
};

}  // namespace

Json WhyNotDocument(const PluginRegistry& registry, const SearchGrid& grid,
                    const SearchResult& result, const std::vector<std::string>& settings,
                    Diagnostics* diagnostics) {
  return WhyNot(registry, grid, result).Run(settings, diagnostics);
}

}  // namespace shardlab
