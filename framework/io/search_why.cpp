#include "io/search_why.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "core/ordered_work.h"
#include "core/short_order.h"
#include "io/compose_memory.h"
#include "io/compose_scenario.h"
#include "io/parameter_io.h"
#include "io/quantity.h"
#include "io/sweep_text.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWorthSaying = 1e-3;  // of the winner's step
constexpr std::size_t kMostParts = 3;
constexpr double kFaster = 1.1;

// Where a step's seconds go, in the words of the report.
std::vector<std::pair<std::string, double>> Parts(const TimeParts& time) {
  std::vector<std::pair<std::string, double>> parts = {{"forward", time.forward},
                                                       {"backward", time.backward},
                                                       {"recomputation", time.recompute},
                                                       {"optimizer", time.optimizer},
                                                       {"bubble", time.bubble}};
  for (std::size_t r = 0; r < kAxisRoles; ++r)
    parts.emplace_back(absl::StrCat(Name(static_cast<AxisRole>(r)), " traffic"), time.exposed[r]);
  return parts;
}

// A network whose transfers over one tier, or over none but it, take less time.
class FasterLink final : public Network {
 public:
  FasterLink(std::shared_ptr<const Network> network, int tier)
      : network_(std::move(network)), tier_(tier) {}
  void Connect(const Machine&) override {}
  Seconds TransferTime(const TransferShape& transfer, const Span& span) const noexcept override {
    const Seconds took = network_->TransferTime(transfer, span);
    return span.outermost == tier_ ? Seconds(took.value() / kFaster) : took;
  }
  std::string Algorithm(const TransferShape& transfer, const Span& span) const override {
    return network_->Algorithm(transfer, span);
  }
  std::vector<Constant> Constants() const override { return network_->Constants(); }

 private:
  std::shared_ptr<const Network> network_;
  int tier_;
};

using Settings = std::vector<std::pair<std::string, Value>>;

std::string Setting(const std::string& key, const Value& value) {
  return absl::StrCat(key, "=", value.kind == Value::kText ? value.text : ToToml(value));
}

// The keys in which a plan differs from another.
std::string Change(const Settings& from, const Settings& to) {
  std::vector<std::string> words, before;
  for (const auto& [key, value] : from) before.push_back(Setting(key, value));
  for (const auto& [key, value] : to) {
    std::string word = Setting(key, value);
    if (std::find(before.begin(), before.end(), word) == before.end())
      words.push_back(std::move(word));
  }
  if (!words.empty()) return absl::StrJoin(words, " ");
  for (const auto& gone : from) {
    if (std::none_of(to.begin(), to.end(),
                     [&](const auto& entry) { return entry.first == gone.first; }))
      words.push_back(absl::StrCat("without ", gone.first));
  }
  return absl::StrJoin(words, " ");
}

std::string FirstError(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::kError)
      return d.hint.empty() ? d.message : absl::StrCat(d.message, " (", d.hint, ")");
  }
  return "";
}

// The points that are one step away from another in one of its dimensions.
class Neighbours {
 public:
  Neighbours(const SearchGrid& grid, const SearchPoint& of)
      : grid_(grid), of_(of), group_(grid.Group(of.group)) {}

  std::vector<SearchPoint> All() {
    for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
      for (const int value : Beside(grid_.axes[a].values, of_.degrees[a])) {
        SearchPoint point = of_;
        point.degrees[a] = value;
        all_.push_back(point);
      }
    }
    for (const int value : Beside(grid_.micro_batch, of_.micro_batch)) {
      SearchPoint point = of_;
      point.micro_batch = value;
      all_.push_back(point);
    }
    Pipelines();
    Groups();
    return std::move(all_);
  }

 private:
  // The next smaller and the next larger.
  static std::vector<int> Beside(const std::vector<int>& values, int value) {
    int below = 0, above = 0;
    for (const int v : values) {
      if (v < value) below = std::max(below, v);
      if (v > value && (above == 0 || v < above)) above = v;
    }
    std::vector<int> beside;
    if (below > 0) beside.push_back(below);
    if (above > 0) beside.push_back(above);
    return beside;
  }

  void Pipelines() {
    const Pipeline& now = group_.pipelines[static_cast<std::size_t>(of_.pipeline)];
    std::vector<int> degrees, chunks;
    for (const Pipeline& p : group_.pipelines) {
      if (p.share != now.share) continue;
      if (p.chunks == now.chunks || p.degree == 1) degrees.push_back(p.degree);
      if (p.schedule == now.schedule && p.degree == now.degree) chunks.push_back(p.chunks);
    }
    const std::vector<int> degree = Beside(degrees, now.degree), chunk = Beside(chunks, now.chunks);
    const auto among = [](const std::vector<int>& values, int value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    for (std::size_t i = 0; i < group_.pipelines.size(); ++i) {
      const Pipeline& p = group_.pipelines[i];
      if (p.share != now.share) continue;
      const bool other_degree =
          among(degree, p.degree) &&
          (p.degree == 1 || (p.chunks == now.chunks && p.schedule == now.schedule));
      const bool other_chunks =
          p.degree == now.degree && p.schedule == now.schedule && among(chunk, p.chunks);
      const bool other_schedule = p.degree == now.degree && p.schedule != now.schedule &&
                                  (p.chunks == 1 || now.chunks == 1) && p.chunks <= 2;
      if (!other_degree && !other_chunks && !other_schedule) continue;
      SearchPoint point = of_;
      point.pipeline = static_cast<int>(i);
      all_.push_back(point);
    }
  }

  static bool Same(const Sharding& a, const Sharding& b) {
    return a.table == b.table && a.key == b.key && ToToml(a.value) == ToToml(b.value);
  }
  static std::string Text(const SearchGroup& group) {
    std::string text;
    for (const Choice& choice : group.choices) {
      for (const auto& [key, value] : choice.settings)
        absl::StrAppend(&text, Setting(key, value), " ");
    }
    return text;
  }

  // Other sharding, or other choices, be it for another share of the layers.
  void Groups() {
    const Pipeline& now = group_.pipelines[static_cast<std::size_t>(of_.pipeline)];
    const int first = of_.group - of_.group % grid_.groups_each();
    for (int g = 0; g < grid_.groups_each(); ++g) {
      const SearchGroup& group = grid_.Group(g);
      if (group.second != group_.second) continue;
      const bool same_sharding = Same(group.sharding, group_.sharding);
      const bool same_settings = Text(group) == Text(group_);
      for (std::size_t i = 0; i < group.pipelines.size(); ++i) {
        Pipeline pipeline = group.pipelines[i];
        const bool same_choice = same_settings && pipeline.share == now.share;
        pipeline.share = now.share;
        if (same_sharding == same_choice || !(pipeline == now)) continue;
        SearchPoint point = of_;
        point.group = first + g;
        point.pipeline = static_cast<int>(i);
        all_.push_back(point);
      }
    }
  }

  const SearchGrid& grid_;
  const SearchPoint& of_;
  const SearchGroup& group_;
  std::vector<SearchPoint> all_;
};

// A point as a search evaluates it: with a short order, and without a word on where numbers are
// from.
struct Stepped {
  ComposedScenario composed;  // without a composition: illegal
  std::optional<CompiledOrder> order;
  Evaluation evaluation;

  Evaluation Evaluated() const {
    const Composition& c = *composed.composition;
    const CompiledOrder* of = order ? &*order : nullptr;
    Workspace workspace(c);
    workspace.Reserve(c.plan, of);
    return Evaluate(c, c.plan, of, workspace);
  }
};

Stepped StepOf(const PluginRegistry& registry, const SearchGrid& grid, const SearchPoint& point,
               ComposeMemory* memory, std::string* reason) {
  Stepped out;
  Diagnostics diagnostics;
  out.composed =
      ComposeScenario(registry, ScenarioOf(grid, point), &diagnostics, ComposeWhat::kPlan, memory);
  *reason = FirstError(diagnostics);
  if (out.composed.composition == nullptr) return out;
  const Composition& c = *out.composed.composition;
  if (c.plan.pipeline > 1) {
    auto order =
        CompileShortOrder(*c.schedule, {c.plan.pipeline, c.plan.chunks, c.plan.micro_batches});
    if (!order.ok()) {
      *reason = std::string(order.status().message());
      out.composed.composition = nullptr;
      return out;
    }
    out.order = *std::move(order);
  }
  out.evaluation = out.Evaluated();
  return out;
}

Json Knobs(const PluginRegistry& registry, const SearchGrid& grid, const Found& winner, int jobs,
           ComposeMemory* memory) {
  const Settings settings = SettingsOf(grid, winner.point);
  const std::vector<SearchPoint> points = Neighbours(grid, winner.point).All();
  Json knobs = Json::array();
  const auto knob_of = [&](std::int64_t i, int) {
    const SearchPoint& point = points[static_cast<std::size_t>(i)];
    std::string reason;
    const Stepped stepped = StepOf(registry, grid, point, memory, &reason);
    Json knob = {{"change", Change(settings, SettingsOf(grid, point))}};
    if (stepped.composed.composition == nullptr) {
      knob["legal"] = 0;
      knob["reason"] = reason;
    } else {
      const Evaluation& e = stepped.evaluation;
      knob["legal"] = 1;
      knob["step_share"] = e.step / winner.step - 1;
      knob["fits"] = e.fits;
      knob["peak_bytes"] = std::llround(e.peak);
    }
    return knob;
  };
  InOrder(static_cast<std::int64_t>(points.size()), jobs, knob_of,
          [&](std::int64_t, Json knob) { knobs.push_back(std::move(knob)); });
  // Legal ones first, the strongest first.
  const auto strength = [](const Json& knob) {
    return knob["legal"] == 0 ? -1.0 : std::abs(knob["step_share"].get<double>());
  };
  std::stable_sort(knobs.begin(), knobs.end(),
                   [&](const Json& a, const Json& b) { return strength(a) > strength(b); });
  return knobs;
}

Json Links(const Stepped& stepped, const Found& winner) {
  Composition& c = *stepped.composed.composition;
  const std::shared_ptr<const Network> network = c.network;
  Json links = Json::array();
  const std::vector<Tier>& tiers = c.hardware->machine().tiers;
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    c.network = std::make_shared<FasterLink>(network, static_cast<int>(tier));
    links.push_back({{"link", tiers[tier].name},
                     {"faster", kFaster},
                     {"step_share", stepped.Evaluated().step / winner.step - 1}});
  }
  c.network = network;
  return links;
}

// What keeps the winner from being better, the most first.
Json Binds(const SearchGrid& grid, const Found& winner) {
  Json binds = Json::array();
  const double free = (1 - grid.min_headroom) * winner.capacity - winner.peak;
  binds.push_back(absl::StrCat("memory: ", FormatBytes(free), " of ", FormatBytes(winner.capacity),
                               " left", grid.min_headroom > 0 ? " above the headroom" : ""));
  auto parts = Parts(winner.time);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, seconds] : parts) {
    if (seconds < 0.01 * winner.step || binds.size() > kMostParts) continue;
    binds.push_back(
        absl::StrCat(name, ": ", Significant(100 * seconds / winner.step, 3), " % of the step"));
  }
  return binds;
}

}  // namespace

std::string TimeDifference(double step, const TimeParts& time, double other_step,
                           const TimeParts& other) {
  const auto mine = Parts(time), theirs = Parts(other);
  std::vector<std::pair<double, std::string>> differences;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double d = theirs[i].second - mine[i].second;
    if (std::abs(d) > kWorthSaying * step)
      differences.emplace_back(
          d, absl::StrCat(mine[i].first, " ", d < 0 ? "-" : "+", FormatSeconds(std::abs(d))));
  }
  std::stable_sort(differences.begin(), differences.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first) > std::abs(b.first);
  });
  if (differences.size() > kMostParts) differences.resize(kMostParts);
  std::vector<std::string> words;
  words.reserve(differences.size());
  for (const auto& [d, text] : differences) words.push_back(text);
  const double share = 100 * (other_step / step - 1);
  const std::string head = std::abs(share) < 0.005
                               ? "as fast"
                               : absl::StrCat(share > 0 ? "+" : "", Significant(share, 3), " %");
  return words.empty() ? head : absl::StrCat(head, ": ", absl::StrJoin(words, ", "));
}

Json WinnerDocument(const PluginRegistry& registry, const SearchGrid& grid,
                    const SearchResult& result, int jobs) {
  if (result.best.empty()) return nullptr;
  const Found& winner = result.best[0];
  ComposeMemory memory;
  std::string ignored;
  const Stepped stepped = StepOf(registry, grid, winner.point, &memory, &ignored);
  if (stepped.composed.composition == nullptr) return nullptr;
  return {{"binds", Binds(grid, winner)},
          {"knobs", Knobs(registry, grid, winner, jobs, &memory)},
          {"links", Links(stepped, winner)}};
}

}  // namespace shardlab
