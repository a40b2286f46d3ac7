#include "io/suggest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "api/strategy.h"
#include "io/parameter_io.h"

namespace shardlab {
namespace {

struct Candidate {
  std::string key, value;
};

class Candidates {
 public:
  Candidates(const PluginRegistry& registry, const PlannedScenario& planned)
      : registry_(registry), planned_(planned) {}

  std::vector<Candidate> All() {
    const Composition& c = *planned_.composed.composition;
    for (const Axis& axis : c.edited.mesh.axes()) {
      if (axis.borrows || axis.degree == 0) continue;  // what is left follows the others
      HalfAndDouble(absl::StrCat("strategy.", axis.author, ".degree"), axis.degree);
    }
    HalfAndDouble("schedule.degree", c.plan.pipeline);
    HalfAndDouble("training.micro_batch_size", c.plan.micro_batch_size);
    Parameters();
    if (!planned_.explanation.evaluation.fits) Absent();
    return std::move(all_);
  }

 private:
  void HalfAndDouble(const std::string& key, int value) {
    all_.push_back({key, absl::StrCat(2 * value)});
    if (value % 2 == 0) all_.push_back({key, absl::StrCat(value / 2)});
  }

  // Flags, words and small ranges of the strategies that the scenario has, at other values.
  void Parameters() {
    const auto& resolved = planned_.composed.resolved;
    if (!resolved.contains("strategy")) return;
    for (const auto& [name, table] : resolved["strategy"].items()) {
      absl::StatusOr<std::unique_ptr<Plugin>> made =
          registry_.Make(Strategy::kKind, table.value("plugin", name));
      if (!made.ok()) continue;
      KnobVisitor knobs(absl::StrCat("strategy.", name), table, &all_);
      (*made)->Visit(knobs);
    }
  }

  // What does not fit may need a strategy that the scenario has not.
  void Absent() {
    const auto& resolved = planned_.composed.resolved;
    for (const std::string& name : registry_.Names(Strategy::kKind)) {
      if (resolved.contains("strategy") && resolved["strategy"].contains(name)) continue;
      absl::StatusOr<std::unique_ptr<Plugin>> made = registry_.Make(Strategy::kKind, name);
      if (!made.ok()) continue;
      const nlohmann::ordered_json nothing = nlohmann::ordered_json::object();
      KnobVisitor knobs(absl::StrCat("strategy.", name), nothing, &all_);
      (*made)->Visit(knobs);
    }
  }

  class KnobVisitor final : public ParameterVisitor {
   public:
    KnobVisitor(std::string path, const nlohmann::ordered_json& now, std::vector<Candidate>* all)
        : path_(std::move(path)), now_(now), all_(*all) {}
    void Boolean(const Parameter& p, bool*) override {
      if (p.assumption) return;
      if (now_.empty()) return Try(p, "true");
      if (now_.contains(p.name)) Try(p, now_[p.name].get<bool>() ? "false" : "true");
    }
    void Integer(const Parameter& p, int*) override {
      if (p.assumption) return;
      if (now_.empty() && p.name == "degree") {
        for (const char* degree : {"2", "4", "8"}) Try(p, degree);
        return;
      }
      if (p.maximum - p.minimum > 8) return;
      const bool known = now_.contains(p.name) && now_[p.name].is_number();
      if (!known && !now_.empty()) return;
      const double now = known ? now_[p.name].get<int>() : p.minimum - 1;
      for (int v = static_cast<int>(p.minimum); v <= static_cast<int>(p.maximum); ++v) {
        if (v != now) Try(p, absl::StrCat(v));
      }
    }
    void Text(const Parameter& p, std::string*) override {
      if (p.assumption || (!now_.empty() && !now_.contains(p.name))) return;
      for (const std::string& choice : p.choices) {
        if (now_.empty() || now_[p.name] != choice) Try(p, absl::StrCat("\"", choice, "\""));
      }
    }
    void Number(const Parameter&, double*) override {}
    void Amount(const Parameter&, Unit, double*) override {}
    void Integers(const Parameter&, std::vector<int>*) override {}
    void IntegerOr(const Parameter&, const std::string&, int*) override {}
    void Raw(const Parameter&, Value*) override {}

   private:
    void Try(const Parameter& p, std::string value) {
      all_.push_back({absl::StrCat(path_, ".", p.name), std::move(value)});
    }
    std::string path_;
    const nlohmann::ordered_json& now_;
    std::vector<Candidate>& all_;
  };

  const PluginRegistry& registry_;
  const PlannedScenario& planned_;
  std::vector<Candidate> all_;
};

constexpr double kWorthSaying = 0.99;

}  // namespace

std::optional<Suggestion> Suggest(const PluginRegistry& registry, const Scenario& scenario,
                                  const std::vector<std::string>& sets,
                                  const PlannedScenario& planned) {
  const Evaluation& now = planned.explanation.evaluation;
  const double limit = now.fits ? std::max(now.peak, 0.9 * now.capacity) : now.capacity;
  std::optional<Suggestion> best;
  const auto better = [&](const Suggestion& s) {
    if (!best) return true;
    if (s.fits != best->fits) return s.fits;
    return s.fits ? s.step_seconds < best->step_seconds : s.peak_bytes < best->peak_bytes;
  };
  for (const Candidate& candidate : Candidates(registry, planned).All()) {
    std::vector<std::string> with = sets;
    with.push_back(absl::StrCat(candidate.key, "=", candidate.value));
    Diagnostics ignored;
    const Scenario changed = ScenarioFromText(scenario.text, scenario.file, with, ignored);
    const PlannedScenario other = PlanScenario(registry, changed, &ignored);
    if (ignored.HasErrors() || other.composed.composition == nullptr) continue;
    const Evaluation& e = other.explanation.evaluation;
    const Suggestion s{candidate.key, candidate.value, e.step, e.peak, e.fits};
    const bool worth = now.fits ? e.peak <= limit && e.step < kWorthSaying * now.step
                                : e.fits || e.peak < kWorthSaying * now.peak;
    if (worth && better(s)) best = s;
  }
  return best;
}

}  // namespace shardlab
