#include "io/less_bubble.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/simulate.h"
#include "io/quantity.h"

namespace shardlab {
namespace {

constexpr double kWorthSaying = 0.99;

class Shrinker {
 public:
  Shrinker(const PluginRegistry& registry, const Scenario& scenario,
           const std::vector<std::string>& sets, const PlannedScenario& planned, double now)
      : registry_(registry), scenario_(scenario), sets_(sets), planned_(planned), now_(now) {}

  std::vector<LessBubble> All() {
    MicroBatches();
    Schedules();
    Try("another split of the layers", {"schedule.balance=\"time\""});
    std::vector<LessBubble> all;
    for (const auto& [by, best] : best_) all.push_back(best);
    std::stable_sort(all.begin(), all.end(), [](const LessBubble& a, const LessBubble& b) {
      return a.bubble_fraction < b.bubble_fraction;
    });
    return all;
  }

 private:
  const Composition& Now() const { return *planned_.composed.composition; }

  void MicroBatches() {
    const Plan& plan = Now().plan;
    if (plan.micro_batch_size % 2 == 0) {
      Try("more micro-batches",
          {absl::StrCat("training.micro_batch_size=", plan.micro_batch_size / 2)});
      return;
    }
    const nlohmann::ordered_json& resolved = planned_.composed.resolved;
    const auto batch = resolved.find("training");
    if (batch == resolved.end() || !batch->contains("global_batch_size")) return;
    const auto sequences = (*batch)["global_batch_size"].get<long long>();
    if (sequences > (1LL << 29)) return;
    Try("more micro-batches", {absl::StrCat("training.global_batch_size=", 2 * sequences)});
  }

  // At their own chunks, and at a few more.
  void Schedules() {
    const Plan& plan = Now().plan;
    for (const std::string& name : registry_.Names(Schedule::kKind)) {
      const absl::StatusOr<std::unique_ptr<Plugin>> made = registry_.Make(Schedule::kKind, name);
      if (!made.ok()) continue;
      const auto* schedule = static_cast<const Schedule*>(made->get());
      for (const int chunks : std::set<int>{schedule->DefaultChunks(), 2, 4}) {
        const bool same = name == Now().schedule_name;
        if (same && chunks <= plan.chunks) continue;
        if (!schedule->Refusal({plan.pipeline, chunks, plan.micro_batches}).empty()) continue;
        std::vector<std::string> with = {absl::StrCat("schedule.chunks=", chunks)};
        if (!same) with.insert(with.begin(), absl::StrCat("schedule.plugin=\"", name, "\""));
        Try(same ? "more chunks" : "another schedule", std::move(with));
      }
    }
  }

  void Try(const char* by, std::vector<std::string> change) {
    std::vector<std::string> with = sets_;
    with.insert(with.end(), change.begin(), change.end());
    Diagnostics ignored;
    const Scenario changed = ScenarioFromText(scenario_.text, scenario_.file, with, ignored);
    const PlannedScenario other = PlanScenario(registry_, changed, &ignored, PlannedOrder::kWhole);
    if (ignored.HasErrors() || other.composed.composition == nullptr) return;
    const Composition& c = *other.composed.composition;
    const Simulation played = Simulate(c, c.plan, other.order ? &*other.order : nullptr, {});
    if (played.bubble_fraction > kWorthSaying * now_) return;
    const Evaluation& e = other.explanation.evaluation;
    const LessBubble found{
        by, std::move(change), played.bubble_fraction, played.makespan, e.peak, e.fits};
    const auto known = best_.find(by);
    if (known == best_.end()) {
      best_.emplace(by, found);
      return;
    }
    const LessBubble& best = known->second;
    const bool better =
        found.fits != best.fits ? found.fits : found.bubble_fraction < best.bubble_fraction;
    if (better) known->second = found;
  }

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  const std::vector<std::string>& sets_;
  const PlannedScenario& planned_;
  const double now_;
  std::map<std::string, LessBubble> best_;
};

}  // namespace

std::vector<LessBubble> ShrinkBubble(const PluginRegistry& registry, const Scenario& scenario,
                                     const std::vector<std::string>& sets,
                                     const PlannedScenario& planned, double now) {
  if (planned.composed.composition->plan.pipeline == 1 || now <= 0) return {};
  return Shrinker(registry, scenario, sets, planned, now).All();
}

nlohmann::ordered_json LessBubbleDocument(const std::vector<LessBubble>& all) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LessBubble& less : all) {
    list.push_back({{"by", less.by},
                    {"set", less.sets},
                    {"bubble_fraction", less.bubble_fraction},
                    {"step_seconds", less.step_seconds},
                    {"peak_bytes", std::llround(less.peak_bytes)},
                    {"fits", less.fits}});
  }
  return list;
}

std::string LessBubbleText(const std::vector<LessBubble>& all, double now, const TextStyle& style) {
  if (all.empty()) return "";
  std::string out = absl::StrCat("less bubble than ", Significant(100 * now, 3), " % by\n");
  for (const LessBubble& less : all) {
    const std::string change = absl::StrJoin(less.sets, " ", [](std::string* to, const auto& set) {
      absl::StrAppend(to, "--set ", set);
    });
    absl::StrAppend(&out,
                    absl::StrFormat("  %-28s %6s %%  step %s, %s%s\n", less.by,
                                    Significant(100 * less.bubble_fraction, 3),
                                    FormatSeconds(less.step_seconds), FormatBytes(less.peak_bytes),
                                    less.fits ? "" : ", does not fit"),
                    "    ", style.Dim(change), "\n");
  }
  return out;
}

}  // namespace shardlab
