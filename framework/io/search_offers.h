#pragma once
// What plugins offer to a search, each in the file search.toml of its folder: a strategy or a
// schedule that has one joins the grid, whatever its name.
//
//   SearchOffers offers = ReadSearchOffers(registry, &diagnostics);
//
// Of a strategy:
//   [degree]                     an axis of the grid
//   key = "degree", axis = "tensor"   the parameter, and the axis of the mesh that it sets
//   within = "domain"            powers of two up to the scale-up domain; else up to all devices
//   tokens_left = 1024           that leave each rank so many tokens of a sequence
//   divides = "expert"           that divide this dimension of the model; without it only 1
//   above_one = "KEY"            a switch: true where the degree is above 1, false elsewhere
//   every_plan = true            degree 1 is written down as well
//   role = "tensor"              for the `with` of others, where it is not the axis's name
//   [degree.with]                key, axis: a second degree, 1 or the one of the axis with `role`
//   key = "stage", values = [0, 1]   one table that shards state at a time; "domain" is a number
//   left_over = "KEY"            a degree that is what the others leave: taken out of the file
//   choices = [{mode = "full", layers = {quarters = 1}}, ...]   of which a plan has one; a number
//                                of layers that is no more than how many layers of a rank rows
//                                treat is composed once (core/shared_number.h), others each
// Of a schedule:
//   chunks = true                with 2 chunks a rank and more; else with its DefaultChunks
//   default = false              only where a scenario names it

#include <string>
#include <utility>
#include <vector>

#include "api/value.h"
#include "io/plugin_registry.h"

namespace shardlab {

struct DegreeOffer {
  std::string table, key, axis;
  bool within_domain = false, every_plan = false;
  int tokens_left = 0;  // 0: no limit
  std::string divides, above_one;
  std::string with_key, with_axis, with_role;
  std::string role;  // for the `with` of others; the axis, unless it says otherwise

  std::string Key() const { return "strategy." + table + "." + key; }
  std::string SwitchKey() const { return "strategy." + table + "." + above_one; }
  std::string WithKey() const { return "strategy." + table + "." + with_key; }
};

struct ShardingOffer {
  std::string table, key;
  std::vector<Value> values;  // none: where the file has the table, sharding is as it says
  std::string Key() const { return "strategy." + table + "." + key; }
};

// Settings that go together. At most one is a share of a pipeline rank's layers.
struct Choice {
  std::vector<std::pair<std::string, Value>> settings;  // full keys
  std::string share_key;                                // full key; empty: none
  int quarters = 4;
  int stated = 0;  // in place of quarters: so many layers of a rank
};
struct ChoiceOffer {
  std::string table;
  std::vector<std::string> keys;  // full keys that any of them sets
  std::vector<Choice> choices;
};

struct ScheduleOffer {
  std::string name;
  bool chunks = false;
  bool by_default = true;  // else only where a scenario names it
};

struct SearchOffers {
  std::vector<DegreeOffer> degrees;
  std::vector<ShardingOffer> shardings;
  std::vector<ChoiceOffer> choices;
  std::vector<ScheduleOffer> schedules;
  std::vector<std::string> left_over;  // full keys
};

// What the file's table says is one more choice. Where one of them says the same in the keys that
// choices set, that one is the file's, with the other keys of its table.
void AddChoiceOfFile(const Value& table, ChoiceOffer* offer);

SearchOffers ReadSearchOffers(const PluginRegistry& registry, Diagnostics* diagnostics);

}  // namespace shardlab
