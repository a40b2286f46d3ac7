#pragma once
// The pipelines of a search's grid: schedules, pipeline degrees, chunks, and how layers are split.
//
//   std::vector<Pipeline> pipelines = PipelinesOf(rule);
//
// Of a shape there is one balanced split, of the layers alone or with the ends as a layer each;
// where layers allow neither the shape is none of the grid. How many stages a shape has its
// schedule says (Schedule::Stages).

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/schedule.h"
#include "api/value.h"
#include "core/balance.h"

namespace shardlab {

struct Pipeline {
  std::string schedule;
  int degree = 1, chunks = 1;
  bool count_ends = false;
  bool as_file = false;  // split as the file says
  int layers = 0;        // of the largest rank
  int share = 0;         // of each rank's layers, so many are treated as a choice says; 0: none is
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

// How the file splits layers, and the keys that say so.
struct FileSplit {
  std::vector<int> layers;
  Balance balance = Balance::kEven;
  bool count_ends = false;
  std::vector<std::pair<std::string, Value>> settings;  // full keys; empty: the file says nothing
};

struct TriedSchedule {
  std::string name;
  // Null where it cannot be made: then stages are ranks x chunks, and chunks 1.
  std::shared_ptr<const Schedule> schedule;
  // Whether it is one of many chunks; nothing: nobody says.
  std::optional<bool> many_chunks;
  // Beside those of the rule; 0: none.
  int also_chunks = 0;
};

struct PipelineRule {
  std::vector<TriedSchedule> schedules;
  std::vector<int> degrees;
  // That the user states. Nothing: 2 and more for schedules of many chunks, for others what they
  // have by themselves, as in all plans where `by_themselves`.
  std::optional<std::vector<int>> chunks;
  bool by_themselves = false;
  int layers = 1;  // of the model
  // The file's own shape and split, to be among them.
  std::optional<Pipeline> file;
  FileSplit file_split;
  bool only_file_split = false;  // where there is one
};

std::vector<Pipeline> PipelinesOf(const PipelineRule& rule);

}  // namespace shardlab
