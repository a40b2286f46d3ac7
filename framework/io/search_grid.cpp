#include "io/search_grid.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "core/composition.h"
#include "io/compose_scenario.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLeastTokens = 1024;  // of a context rank
// What the grid decides unless it is fixed or varied otherwise.
const std::vector<std::string> kAlwaysVaried = {"strategy.tensor.degree",
                                                "strategy.tensor.sequence_parallel",
                                                "strategy.context.degree",
                                                "strategy.expert.degree",
                                                "strategy.expert.tensor_degree",
                                                "strategy.checkpointing.mode",
                                                "strategy.checkpointing.layers",
                                                "schedule.plugin",
                                                "schedule.degree",
                                                "schedule.chunks",
                                                "training.micro_batch_size"};

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
  int devices = 1, domain = 1, layers = 1, experts = 0;
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
    Bare();
    if (diagnostics_.HasErrors()) return std::nullopt;
    Dimensions();
    Groups();
    return std::move(grid_);
  }

 private:
  // --- what plugins offer, each in a file of its folder

  struct Offered {
    std::string table, key;
    std::vector<Value> values;
    std::string Key() const { return absl::StrCat("strategy.", table, ".", key); }
  };

  std::optional<Value> Offer(const std::string& kind, const std::string& name) {
    const PluginInfo* info = registry_.Find(kind, name);
    const std::filesystem::path file =
        std::filesystem::path(info->file).parent_path() / "search.toml";
    if (!std::filesystem::exists(file)) return std::nullopt;
    return ReadTomlFile(file.string(), diagnostics_);
  }

  void Offers() {
    for (const std::string& name : registry_.Names("schedule")) {
      const std::optional<Value> offer = Offer("schedule", name);
      if (!offer) continue;
      const Value* chunks = offer->Find("chunks");
      schedules_.emplace_back(name, chunks != nullptr && chunks->boolean);
    }
    for (const std::string& name : registry_.Names("strategy")) {
      const std::optional<Value> offer = Offer("strategy", name);
      const Value* key = offer ? offer->Find("key") : nullptr;
      const Value* values = offer ? offer->Find("values") : nullptr;
      if (key == nullptr || values == nullptr) continue;
      offered_.push_back({name, key->text, values->array});
      grid_.sharding_tables.push_back(name);
      if (!values->array.empty()) varied_keys_.push_back(offered_.back().Key());
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

  // --- the file's own model and machine

  // Composed without what the search decides, so that only real mistakes are left.
  void Bare() {
    Value& root = grid_.base.root;
    for (const Offered& offered : offered_) {
      if (Fixed(offered.Key()) || IsVaried(offered.Key()) ||
          (offered.values.empty() && root.FindPath("strategy." + offered.table) != nullptr))
        sharding_as_file_ = true;
    }
    recomputation_as_file_ =
        Fixed("strategy.checkpointing.mode") || Fixed("strategy.checkpointing.layers") ||
        IsVaried("strategy.checkpointing.mode") || IsVaried("strategy.checkpointing.layers");
    for (const char* key :
         {"strategy.data.degree", "schedule.layers", "schedule.balance", "schedule.count_ends"})
      EraseKey(&root, key);
    if (!recomputation_as_file_) EraseKey(&root, "strategy.checkpointing");
    Scenario bare = grid_.base;
    for (const char* key : {"strategy.expert", "strategy.context"}) EraseKey(&bare.root, key);
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
    const DimensionId experts = c.edited.program.FindDimension("expert");
    if (experts.valid())
      facts_.experts = static_cast<int>(c.edited.program.dimension(experts).size);
    if (grid_.objective == Objective::kCost && !facts_.priced) {
      diagnostics_.Error("search.objective", scenario_.root.Find("search")->place,
                         "the machine has no price, so that no plan has a cost",
                         "write price_per_device_hour under [hardware]");
    }
  }

  // --- dimensions

  // The integers of a key: fixed, varied (then it is no other dimension any more), or the grid's.
  std::vector<int> Values(const std::string& key, std::vector<int> otherwise) {
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
    grid_.tensor = Values("strategy.tensor.degree", PowersOfTwo(facts_.domain));
    if (Fixed("strategy.tensor.sequence_parallel")) {
      const Value* value = scenario_.root.FindPath("strategy.tensor.sequence_parallel");
      grid_.sequence_parallel = value != nullptr && value->boolean;
    }
    contexts_ =
        Values("strategy.context.degree",
               PowersOfTwo(std::min<long long>(facts_.devices, facts_.sequence / kLeastTokens)));
    if (contexts_.empty()) contexts_ = {1};
    grid_.micro_batch = Values("training.micro_batch_size", {1, 2, 4, 8});
    grid_.experts_in_model = facts_.experts > 1;
    std::vector<int> experts = {1};
    if (grid_.experts_in_model) {
      experts.clear();
      for (const int n : PowersOfTwo(std::min(facts_.experts, facts_.devices))) {
        if (facts_.experts % n == 0) experts.push_back(n);
      }
    }
    experts_ = Values("strategy.expert.degree", experts);
    Pipelines();
    grid_.other = varied_;
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
    std::vector<std::pair<std::string, bool>> schedules = schedules_;
    if (Fixed("schedule.plugin")) {
      const Value* value = scenario_.root.FindPath("schedule.plugin");
      if (value != nullptr) schedules = {{value->text, false}};
      if (value == nullptr && schedules.size() > 1) schedules.resize(1);
    }
    for (const auto& [schedule, chunked] : schedules) {
      for (const int degree : degrees) {
        if (degree == 1) {
          // The schedule is not asked.
          if (schedule == schedules[0].first) Add(schedule, 1, 1);
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
    for (const Offered& offered : offered_) {
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
    if (sharding_as_file_) shardings = {Sharding()};
    std::vector<Recomputation> recomputations = {
        {Recomputation::kNone, 4}, {Recomputation::kSelective, 4}, {Recomputation::kFull, 4},
        {Recomputation::kFull, 1}, {Recomputation::kFull, 2},      {Recomputation::kFull, 3}};
    if (recomputation_as_file_) recomputations = {Recomputation()};
    for (std::int64_t other = 0; other < grid_.other.size(); ++other) {
      for (const Sharding& sharding : shardings) {
        for (const Recomputation& recomputation : recomputations) {
          for (const bool context : {false, true})
            Group({other, sharding, recomputation, 0, context, false, false, {}, {}, {}});
        }
      }
    }
  }

  void Group(SearchGroup group) {
    for (const int degree : contexts_) {
      if ((degree > 1) == group.context) group.contexts.push_back(degree);
    }
    if (group.contexts.empty()) return;
    // Of a share of the layers the number is composed: each has a group.
    std::set<int> numbers = {0};
    if (group.recomputation.quarters < 4) {
      numbers.clear();
      for (const Pipeline& p : pipelines_) numbers.insert(Replayed(group.recomputation, p));
      numbers.erase(0);
    }
    for (const int number : numbers) {
      group.replayed = number;
      group.pipelines.clear();
      for (const Pipeline& p : pipelines_) {
        if (number == 0 || Replayed(group.recomputation, p) == number) group.pipelines.push_back(p);
      }
      Experts(group);
    }
  }

  // 0 where the share is all layers, which is another entry of the grid.
  static int Replayed(const Recomputation& r, const Pipeline& p) {
    const int layers = (p.layers * r.quarters + 3) / 4;
    return layers < p.layers ? layers : 0;
  }

  void Experts(SearchGroup group) {
    for (const auto& [expert, cut] : {std::pair(false, false), {true, false}, {true, true}}) {
      group.expert = expert;
      group.cut_experts = cut;
      group.experts.clear();
      for (const int degree : experts_) {
        if ((degree > 1) == expert) group.experts.push_back(degree);
      }
      if (cut && (Fixed("strategy.expert.tensor_degree") ||
                  std::all_of(grid_.tensor.begin(), grid_.tensor.end(),
                              [](int degree) { return degree == 1; })))
        continue;
      if (!group.experts.empty()) grid_.groups.push_back(group);
    }
  }

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  Diagnostics& diagnostics_;
  SearchGrid grid_;
  Facts facts_;
  std::vector<std::pair<std::string, bool>> schedules_;  // whether with chunks
  std::vector<Offered> offered_;
  std::vector<std::string> varied_keys_ = kAlwaysVaried;
  std::vector<std::string> fixed_;
  SweepTable varied_;
  bool sharding_as_file_ = false, recomputation_as_file_ = false;
  std::vector<int> contexts_, experts_;
  std::vector<Pipeline> pipelines_;
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
