#include "io/search_grid.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/composition.h"
#include "io/compose_scenario.h"
#include "io/scalar_paths.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// What the grid decides beside what plugins offer, unless it is fixed or varied otherwise.
const std::vector<std::string> kAlwaysVaried = {"schedule.plugin", "schedule.degree",
                                                "schedule.chunks", "training.micro_batch_size"};

const std::vector<std::string> kSearchKeys = {"fix", "objective", "min_headroom", "vary", "when"};

const Place& KeyPlace(const Value& value) {
  return value.key_place.line > 0 ? value.key_place : value.place;
}

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
    Table();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Bare();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Names();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Dimensions();
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

  // --- [search]

  void Table() {
    const Value* search = scenario_.root.Find("search");
    if (search == nullptr) return;
    if (search->kind != Value::kTable) {
      diagnostics_.Error("key.kind", search->place, "search must be a table",
                         "write [search] on a line of its own, or leave it out");
      return;
    }
    for (const auto& [key, value] : search->table) {
      if (std::find(kSearchKeys.begin(), kSearchKeys.end(), key) != kSearchKeys.end()) continue;
      const std::string near = Nearest(key, kSearchKeys);
      diagnostics_.Error("key.unknown", KeyPlace(value),
                         absl::StrCat("[search] has no key \"", key, "\""),
                         near.empty() ? absl::StrCat("it has ", Enumerate(kSearchKeys))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
    Goal(*search);
    if (const Value* fix = search->Find("fix")) Fix(*fix);
    if (const Value* vary = search->Find("vary")) Vary(*vary);
  }

  void Goal(const Value& search) {
    if (const Value* value = search.Find("objective")) {
      const std::optional<Objective> objective =
          value->kind == Value::kText ? ParseObjective(value->text) : std::nullopt;
      if (objective) {
        grid_.objective = *objective;
      } else {
        diagnostics_.Error("search.objective", value->place,
                           absl::StrCat("there is no objective ", ToToml(*value)),
                           absl::StrCat("objectives: ", Enumerate(ObjectiveNames())));
      }
    }
    if (const Value* value = search.Find("min_headroom")) {
      const bool number = value->kind == Value::kNumber || value->kind == Value::kInteger;
      if (number && value->number >= 0 && value->number < 1) {
        grid_.min_headroom = value->number;
      } else {
        diagnostics_.Error("search.min_headroom", value->place,
                           "min_headroom is the share of memory that stays free, from 0 to 1",
                           "write min_headroom = 0.1");
      }
    }
    if (const Value* value = search.Find("when")) {
      if (value->kind == Value::kText) {
        grid_.when = Condition::Parse(value->text, value->place, &diagnostics_);
      } else {
        diagnostics_.Error(
            "condition.kind", value->place,
            absl::StrCat("when must be a condition in quotes, not ", Value::Name(value->kind)));
      }
    }
  }

  void Fix(const Value& fix) {
    if (fix.kind != Value::kArray) {
      diagnostics_.Error("search.fix", fix.place, "fix must be a list of keys",
                         "write fix = [\"strategy.tensor.degree\"]");
      return;
    }
    for (const Value& key : fix.array) {
      const bool text = key.kind == Value::kText;
      const bool known =
          text &&
          std::any_of(varied_keys_.begin(), varied_keys_.end(), [&](const std::string& varied) {
            return varied == key.text || varied.rfind(key.text + ".", 0) == 0;
          });
      if (known) {
        fixed_.push_back(key.text);
        continue;
      }
      const std::string near = text ? Nearest(key.text, varied_keys_) : "";
      diagnostics_.Error("search.fix", key.place,
                         absl::StrCat("the search does not vary ", ToToml(key), ": nothing to fix"),
                         near.empty() ? absl::StrCat("it varies ", Enumerate(varied_keys_))
                                      : absl::StrCat("did you mean \"", near, "\"?"));
    }
  }

  // The same forms as in [sweep]: it is read as one.
  void Vary(const Value& vary) {
    if (vary.kind != Value::kTable) {
      diagnostics_.Error("search.vary", vary.place, "vary must be a table of keys and values",
                         "write vary = { \"training.micro_batch_size\" = [1, 2] }");
      return;
    }
    Scenario as_sweep;
    as_sweep.file = scenario_.file;
    as_sweep.root.kind = Value::kTable;
    as_sweep.root.table.emplace_back("sweep", vary);
    const std::optional<SweepTable> table = ReadSweepTable(as_sweep, &diagnostics_);
    if (table) varied_ = *table;
  }

  bool Fixed(const std::string& key) const {
    return std::any_of(fixed_.begin(), fixed_.end(), [&](const std::string& fixed) {
      return key == fixed || key.rfind(fixed + ".", 0) == 0;
    });
  }
  bool IsVaried(const std::string& key) const {
    for (const SweptKey* varied : varied_.Keys()) {
      if (varied->key == key) return true;
    }
    return false;
  }

  bool Decided(const std::string& key) const { return Fixed(key) || IsVaried(key); }

  // --- the file's own model and machine

  // Composed without what the search decides, so that only real mistakes are left.
  void Bare() {
    Value& root = grid_.base.root;
    for (const ShardingOffer& offered : offers_.shardings) {
      if (Decided(offered.Key()) ||
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
                                       [&](const auto& key) { return Decided(key); });
                                 }),
                  choices.end());
    for (const ChoiceOffer& offer : choices) EraseKey(&root, "strategy." + offer.table);
    Scenario bare = grid_.base;
    for (const DegreeOffer& offer : offers_.degrees) {
      if (!offer.every_plan) EraseKey(&bare.root, "strategy." + offer.table);
    }
    ComposedScenario composed =
        ComposeScenario(registry_, bare, &diagnostics_, ComposeWhat::kCompositionOnly);
    if (composed.composition == nullptr) return;
    const Composition& c = *composed.composition;
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
    for (const SweptKey* key : varied_.Keys()) known.push_back(key->key);
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

  // The integers of a key: fixed, varied (then it is no other dimension any more), or the grid's.
  std::vector<int> Values(const std::string& key, const std::vector<int>& otherwise) {
    for (auto group = varied_.groups.begin(); group != varied_.groups.end(); ++group) {
      if (group->keys.size() != 1 || group->keys[0].key != key) continue;
      std::vector<int> values;
      for (const auto& step : group->values) {
        if (step[0].kind == Value::kInteger) values.push_back(static_cast<int>(step[0].integer));
      }
      if (values.size() != group->values.size()) break;  // whatever it is, the plugin will say
      varied_.groups.erase(group);
      return values;
    }
    return Fixed(key) ? std::vector<int>{FileInteger(key, 1)} : otherwise;
  }

  int FileInteger(const std::string& key, int otherwise) const {
    const Value* value = scenario_.root.FindPath(key);
    return value != nullptr && value->kind == Value::kInteger ? static_cast<int>(value->integer)
                                                              : otherwise;
  }

  void Dimensions() {
    for (const DegreeOffer& offer : offers_.degrees) {
      SearchAxis axis;
      axis.offer = offer;
      axis.values = Values(offer.Key(), DefaultDegrees(offer));
      if (axis.values.empty()) axis.values = {1};
      axis.switches = !offer.above_one.empty() && !Decided(offer.SwitchKey());
      grid_.axes.push_back(std::move(axis));
    }
    for (SearchAxis& axis : grid_.axes) {
      if (axis.offer.with_key.empty() || Decided(axis.offer.WithKey())) continue;
      for (std::size_t a = 0; a < grid_.axes.size(); ++a) {
        if (grid_.axes[a].offer.role == axis.offer.with_role) axis.with = static_cast<int>(a);
      }
    }
    grid_.micro_batch = Values("training.micro_batch_size", {1, 2, 4, 8});
    Pipelines();
    grid_.other = varied_;
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
    degrees = Values("schedule.degree", degrees);
    std::vector<int> many;
    for (int v = 2; v <= facts_.layers; ++v) many.push_back(v);
    const bool chunks_stated = Fixed("schedule.chunks") || IsVaried("schedule.chunks");
    const std::vector<int> chunks = Values("schedule.chunks", many);
    std::vector<ScheduleOffer> schedules = offers_.schedules;
    if (Fixed("schedule.plugin")) {
      const Value* value = scenario_.root.FindPath("schedule.plugin");
      if (value != nullptr) schedules = {{value->text, false}};
      if (value == nullptr && schedules.size() > 1) schedules.resize(1);
    }
    for (const auto& [schedule, chunked] : schedules) {
      for (const int degree : degrees) {
        if (degree == 1) {
          // The schedule is not asked.
          if (schedule == schedules[0].name) Add(schedule, 1, 1);
          continue;
        }
        if (chunked || (chunks_stated && schedules.size() == 1)) {
          for (const int v : chunks) Add(schedule, degree, v);
        } else {
          Add(schedule, degree, 1);
        }
      }
    }
  }

  // One balanced split: the layers alone, else with embedding and head as layers.
  void Add(const std::string& schedule, int degree, int chunks) {
    const int stages = degree * chunks;
    if (stages < 1) return;
    Pipeline pipeline{schedule, degree, chunks, false, 0};
    if (facts_.layers % stages == 0) {
      pipeline.layers = facts_.layers / degree;
    } else if ((facts_.layers + 2) % stages == 0) {
      pipeline.count_ends = true;
      pipeline.layers = (facts_.layers + 2) / degree;
    } else {
      return;
    }
    if (std::find(pipelines_.begin(), pipelines_.end(), pipeline) == pipelines_.end())
      pipelines_.push_back(pipeline);
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
      shares_.clear();
      for (const std::vector<Choice>& choices : chosen) Group({sharding, choices, 0, {}, {}});
    }
  }

  void Group(SearchGroup group) {
    const auto share = std::find_if(group.choices.begin(), group.choices.end(),
                                    [](const Choice& c) { return !c.share_key.empty(); });
    if (share == group.choices.end()) {
      group.pipelines = pipelines_;
      return Seconds(std::move(group));
    }
    // The number of layers is composed: each has a group. Two shares of few layers may be the same
    // number; all of them are another choice.
    const int quarters = share->quarters;
    std::map<int, std::vector<Pipeline>> by_number;
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      const int layers = pipelines_[p].layers, number = (layers * quarters + 3) / 4;
      if (number < layers && shares_.insert({SettingsOf(group.choices), number, p}).second)
        by_number[number].push_back(pipelines_[p]);
    }
    for (auto& [number, pipelines] : by_number) {
      group.share = number;
      group.pipelines = std::move(pipelines);
      Seconds(group);
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
  std::vector<std::string> fixed_;
  SweepTable varied_;
  bool sharding_as_file_ = false;
  std::vector<Pipeline> pipelines_;
  std::set<std::tuple<std::string, int, std::size_t>> shares_;  // settings, layers, pipeline
};

}  // namespace

const std::vector<std::string>& ObjectiveNames() {
  static const auto* const names =
      new std::vector<std::string>{"step_seconds", "tokens_per_second_per_device", "cost"};
  return *names;
}

const char* Name(Objective objective) {
  return ObjectiveNames()[static_cast<std::size_t>(objective)].c_str();
}

std::optional<Objective> ParseObjective(const std::string& name) {
  const auto& names = ObjectiveNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Objective>(found - names.begin());
}

std::optional<SearchGrid> ReadSearchGrid(const PluginRegistry& registry, const Scenario& scenario,
                                         Diagnostics* diagnostics) {
  return GridReader(registry, scenario, diagnostics).Run();
}

}  // namespace shardlab
