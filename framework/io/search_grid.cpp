#include "io/search_grid.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/composition.h"
#include "io/compose_memory.h"
#include "io/compose_scenario.h"
#include "io/scalar_paths.h"
#include "io/search_schedules.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

// What the grid decides beside what plugins offer, unless it is fixed or varied otherwise.
const std::vector<std::string> kAlwaysVaried = {"schedule.plugin", "schedule.degree",
                                                "schedule.chunks", "training.micro_batch_size"};

std::vector<int> PowersOfTwo(long long most) {
  std::vector<int> powers;
  for (int n = 1; n <= most; n *= 2) powers.push_back(n);
  return powers;
}

// What the composition of the file's own model and machine says.
struct Facts {
  int devices = 1, domain = 1, layers = 1;
  std::map<std::string, long long> dimensions;  // those that degrees must divide
  long long sequence = 1;
  bool priced = false;
};

class GridReader {
 public:
  GridReader(const PluginRegistry& registry, const Scenario& scenario, Diagnostics* diagnostics)
      : registry_(registry), scenario_(scenario), diagnostics_(*diagnostics) {}

  std::optional<SearchGrid> Run() {
    if (scenario_.root.kind != Value::kTable) return std::nullopt;
    grid_.base = scenario_;
    grid_.base.root = scenario_.root;
    Offers();
    table_ = ReadSearchTable(scenario_, varied_keys_, &diagnostics_);
    grid_.objective = table_.objective;
    grid_.min_headroom = table_.min_headroom;
    grid_.when = table_.when;
    if (diagnostics_.HasErrors()) return std::nullopt;
    Bare();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Names();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Dimensions();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Groups();
    return std::move(grid_);
  }

 private:
  void Offers() {
    offers_ = ReadSearchOffers(registry_, &diagnostics_);
    for (const DegreeOffer& offer : offers_.degrees) {
      varied_keys_.push_back(offer.Key());
      if (!offer.above_one.empty()) varied_keys_.push_back(offer.SwitchKey());
      if (!offer.with_key.empty()) varied_keys_.push_back(offer.WithKey());
    }
    for (const ChoiceOffer& offer : offers_.choices)
      varied_keys_.insert(varied_keys_.end(), offer.keys.begin(), offer.keys.end());
    for (const ShardingOffer& offer : offers_.shardings) {
      grid_.sharding_tables.push_back(offer.table);
      if (!offer.values.empty()) varied_keys_.push_back(offer.Key());
    }
  }

  // --- the file's own model and machine

  // Composed without what the search decides, so that only real mistakes are left.
  void Bare() {
    Value& root = grid_.base.root;
    for (const ShardingOffer& offered : offers_.shardings) {
      if (table_.Decided(offered.Key()) ||
          (offered.values.empty() && root.FindPath("strategy." + offered.table) != nullptr))
        sharding_as_file_ = true;
    }
    for (const std::string& key : offers_.left_over) EraseKey(&root, key);
    for (const char* key : {"schedule.layers", "schedule.balance", "schedule.count_ends"})
      EraseKey(&root, key);
    // Where one of its keys is the user's, so is the choice.
    auto& choices = offers_.choices;
    choices.erase(std::remove_if(choices.begin(), choices.end(),
                                 [&](const ChoiceOffer& offer) {
                                   return std::any_of(
                                       offer.keys.begin(), offer.keys.end(),
                                       [&](const auto& key) { return table_.Decided(key); });
                                 }),
                  choices.end());
    for (ChoiceOffer& offer : choices) {
      if (const Value* own = root.FindPath("strategy." + offer.table))
        AddChoiceOfFile(*own, &offer);
      EraseKey(&root, "strategy." + offer.table);
    }
    bare_ = grid_.base;
    for (const DegreeOffer& offer : offers_.degrees) {
      if (!offer.every_plan) EraseKey(&bare_.root, "strategy." + offer.table);
    }
    // With a memory there would be no defaults.
    ComposedScenario composed =
        ComposeScenario(registry_, bare_, &diagnostics_, ComposeWhat::kCompositionOnly);
    if (composed.composition == nullptr) return;
    const Composition& c = *composed.composition;
    file_schedule_ = {c.schedule_name, c.schedule, std::nullopt, 0};
    grid_.name = composed.name;
    grid_.defaults = composed.resolved;
    facts_.devices = c.hardware->machine().devices;
    facts_.domain = c.hardware->machine().tiers.empty() ? facts_.devices
                                                        : c.hardware->machine().tiers[0].devices;
    facts_.layers = static_cast<int>(c.edited.program.facts.layers);
    facts_.sequence = static_cast<long long>(c.training.sequence_length);
    facts_.priced = c.hardware->machine().price_per_device_hour > 0;
    for (const DegreeOffer& offer : offers_.degrees) {
      const DimensionId dimension = c.edited.program.FindDimension(offer.divides);
      if (dimension.valid())
        facts_.dimensions[offer.divides] =
            static_cast<long long>(c.edited.program.dimension(dimension).size);
    }
    if (grid_.objective == Objective::kCost && !facts_.priced) {
      diagnostics_.Error("search.objective", scenario_.root.Find("search")->place,
                         "the machine has no price, so that no plan has a cost",
                         "write price_per_device_hour under [hardware]");
    }
  }

  // `when` may name what the grid varies and every key of the scenario, said or not.
  void Names() {
    if (!grid_.when) return;
    std::vector<std::string> known = varied_keys_;
    known.insert(known.end(), table_.keys.begin(), table_.keys.end());
    known.insert(known.end(), offers_.left_over.begin(), offers_.left_over.end());
    std::vector<std::string> parts;
    for (const auto& [part, value] : grid_.defaults.items()) parts.push_back(part);
    for (const Cell& cell : ScalarPaths(grid_.defaults, parts)) known.push_back(cell.first);
    for (const auto& [name, place] : grid_.when->names()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string near = Nearest(name, known);
      diagnostics_.Error("condition.name", place,
                         absl::StrCat("\"", name, "\" is no key of this search with one value"),
                         near.empty() ? absl::StrCat("varied: ", Enumerate(varied_keys_))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  // --- dimensions

  void Dimensions() {
    for (const DegreeOffer& offer : offers_.degrees) {
      SearchAxis axis;
      axis.offer = offer;
      axis.values = Values(offer.Key(), DefaultDegrees(offer));
      if (axis.values.empty()) axis.values = {1};
      axis.switches = !offer.above_one.empty() && !table_.Decided(offer.SwitchKey());
      grid_.axes.push_back(std::move(axis));
    }
    for (SearchAxis& axis : grid_.axes) {
      if (axis.offer.with_key.empty() || table_.Decided(axis.offer.WithKey())) continue;
      for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
        if (grid_.axes[a].offer.role == axis.offer.with_role) axis.with = static_cast<int>(a);
      }
    }
    grid_.micro_batch = Values("training.micro_batch_size", {1, 2, 4, 8});
    Pipelines();
    std::vector<std::string> of_grid = kAlwaysVaried;
    of_grid.emplace_back("schedule.count_ends");
    for (const SearchAxis& axis : grid_.axes) of_grid.push_back(axis.offer.Key());
    table_.RefuseRest(of_grid, {"schedule.plugin"}, &diagnostics_);
    grid_.other = table_.varied;
  }

  // The integers of a key: varied, fixed, or the grid's with the file's.
  std::vector<int> Values(const std::string& key, std::vector<int> otherwise) {
    if (const auto varied = table_.TakeIntegers(key)) return *varied;
    const Value* said = scenario_.root.FindPath(key);
    const int own =
        said != nullptr && said->kind == Value::kInteger ? static_cast<int>(said->integer) : 1;
    if (table_.Fixed(key)) return {own};
    const auto at = std::lower_bound(otherwise.begin(), otherwise.end(), own);
    if (own > 0 && (at == otherwise.end() || *at != own)) otherwise.insert(at, own);
    return otherwise;
  }

  std::vector<int> DefaultDegrees(const DegreeOffer& offer) const {
    long long most = offer.within_domain ? facts_.domain : facts_.devices;
    if (offer.tokens_left > 0) most = std::min(most, facts_.sequence / offer.tokens_left);
    if (offer.divides.empty()) return PowersOfTwo(most);
    const auto dimension = facts_.dimensions.find(offer.divides);
    std::vector<int> degrees = {1};
    if (dimension == facts_.dimensions.end()) return degrees;
    for (const int n : PowersOfTwo(std::min(most, dimension->second))) {
      if (n > 1 && dimension->second % n == 0) degrees.push_back(n);
    }
    return degrees;
  }

  void Pipelines() {
    std::vector<int> degrees(
        static_cast<std::size_t>(std::max(1, std::min(facts_.devices, facts_.layers + 2))));
    for (std::size_t i = 0; i < degrees.size(); ++i) degrees[i] = static_cast<int>(i) + 1;
    SearchSchedules schedules(registry_, scenario_, bare_, offers_.schedules, file_schedule_,
                              &table_, &diagnostics_, &memory_);
    PipelineRule rule = schedules.Rule(degrees);
    rule.layers = facts_.layers;
    pipelines_ = PipelinesOf(rule);
    grid_.file_split = std::move(rule.file_split);
    grid_.foreign_keys = schedules.foreign_keys();
  }

  // --- groups

  void Groups() {
    std::vector<Sharding> shardings;
    for (const ShardingOffer& offered : offers_.shardings) {
      for (const Value& value : offered.values) {
        Sharding sharding{offered.table, offered.key, value};
        if (value.kind == Value::kText && value.text == "domain") {
          // Where the domain is all there is, it is no other choice.
          if (facts_.domain >= facts_.devices && grid_.other.groups.empty()) continue;
          sharding.value = Value::Integer(facts_.domain);
        }
        shardings.push_back(std::move(sharding));
      }
    }
    for (const ShardingOffer& offered : offers_.shardings) {
      const Value* own = scenario_.root.FindPath(offered.Key());
      if (own == nullptr || (own->kind != Value::kInteger && own->kind != Value::kText)) continue;
      const bool known =
          std::any_of(shardings.begin(), shardings.end(), [&](const Sharding& sharding) {
            return sharding.table == offered.table && ToToml(sharding.value) == ToToml(*own);
          });
      if (!known) shardings.push_back({offered.table, offered.key, *own});
    }
    if (sharding_as_file_ || shardings.empty()) shardings = {Sharding()};
    std::vector<std::vector<Choice>> chosen = {{}};
    for (const ChoiceOffer& offer : offers_.choices) {
      std::vector<std::vector<Choice>> more;
      for (const auto& so_far : chosen) {
        for (const Choice& choice : offer.choices) {
          more.push_back(so_far);
          more.back().push_back(choice);
        }
      }
      chosen = std::move(more);
    }
    for (const Sharding& sharding : shardings) {
      std::vector<SearchGroup> groups;
      std::map<std::string, std::size_t> shares;  // those of a choice whatever its share is
      for (const std::vector<Choice>& choices : chosen) {
        SearchGroup group{sharding, choices, {}, {}};
        const auto share = std::find_if(choices.begin(), choices.end(),
                                        [](const Choice& c) { return !c.share_key.empty(); });
        if (share == choices.end()) {
          group.pipelines = pipelines_;
          groups.push_back(std::move(group));
          continue;
        }
        const auto [of, first] = shares.emplace(SettingsOf(choices), groups.size());
        if (first) groups.push_back(std::move(group));
        AddShare(*share, &groups[of->second].pipelines);
      }
      for (SearchGroup& group : groups) Seconds(std::move(group));
    }
  }

  // Two shares of few layers may be the same number, the file's number may be a share; all of them
  // are another choice.
  void AddShare(const Choice& choice, std::vector<Pipeline>* pipelines) const {
    for (Pipeline pipeline : pipelines_) {
      pipeline.share =
          choice.stated > 0 ? choice.stated : (pipeline.layers * choice.quarters + 3) / 4;
      if (pipeline.share < pipeline.layers &&
          std::find(pipelines->begin(), pipelines->end(), pipeline) == pipelines->end())
        pipelines->push_back(std::move(pipeline));
    }
  }

  // What tells choices apart but for how large the share is.
  static std::string SettingsOf(const std::vector<Choice>& choices) {
    std::string text;
    for (const Choice& choice : choices) {
      for (const auto& [key, value] : choice.settings)
        absl::StrAppend(&text, key, "=", ToToml(value), " ");
      absl::StrAppend(&text, choice.share_key, ";");
    }
    return text;
  }

  void Seconds(SearchGroup group, std::size_t axis = 0) {
    if (group.pipelines.empty()) return;
    if (axis == grid_.axes.size()) {
      if (!grid_.DegreesOf(group).empty()) grid_.groups.push_back(std::move(group));
      return;
    }
    const SearchAxis& of = grid_.axes[axis];
    for (const Second second : {Second::kNoAxis, Second::kOne, Second::kAnother}) {
      if ((second != Second::kNoAxis && !of.HasSecond()) ||
          (second == Second::kAnother && of.with < 0))
        continue;
      group.second[axis] = second;
      Seconds(group, axis + 1);
    }
  }

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  Diagnostics& diagnostics_;
  SearchGrid grid_;
  Facts facts_;
  SearchOffers offers_;
  std::vector<std::string> varied_keys_ = kAlwaysVaried;
  SearchTable table_;
  bool sharding_as_file_ = false;
  ComposeMemory memory_;
  Scenario bare_;  // without what the search decides
  TriedSchedule file_schedule_;
  std::vector<Pipeline> pipelines_;
};

}  // namespace

std::optional<SearchGrid> ReadSearchGrid(const PluginRegistry& registry, const Scenario& scenario,
                                         Diagnostics* diagnostics) {
  return GridReader(registry, scenario, diagnostics).Run();
}

}  // namespace shardlab
