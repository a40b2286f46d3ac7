#pragma once
// A schedule studied alone, with given times and no model: what `shardlab schedule` does.
//
//   std::optional<ScheduleStudy> study = StudySchedule(registry, request, &diagnostics);
//   if (study) std::cout << StudyDocument(*study, true).dump(2);

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/timeline.h"
#include "io/plugin_registry.h"
#include "io/text_style.h"

namespace shardlab {

struct ScheduleRequest {
  std::string name;  // of the plugin
  ScheduleShape shape;
  bool chunks_given = false;         // else the schedule's own default
  std::optional<int> group;          // the schedule's parameters of these names
  std::optional<std::string> order;  // a file
  ChunkTimes times;                  // of a whole rank: a chunk takes its share of them
  double hop = 0;
};

struct ScheduleStudy {
  std::string name;
  ScheduleShape shape;
  std::shared_ptr<Schedule> schedule;
  ScheduleOrder order;
  CompiledOrder compiled;
  ChunkTimes times;  // of a chunk
  Timeline timeline;
};

// Nothing, with diagnostics, where the schedule refuses or cannot be played.
std::optional<ScheduleStudy> StudySchedule(const PluginRegistry& registry,
                                           const ScheduleRequest& request,
                                           Diagnostics* diagnostics);

// Schema "shardlab.simulation/1".
nlohmann::ordered_json StudyDocument(const ScheduleStudy& study, bool events);
// In words and numbers, and as a chart: one line a rank, a letter for each kind of work.
std::string StudyText(const ScheduleStudy& study, const TextStyle& style);
std::string StudyChart(const ScheduleStudy& study, const TextStyle& style);
// One line for each op.
std::string StudyEvents(const ScheduleStudy& study);
// In PyTorch's form.
std::string StudyCsv(const ScheduleStudy& study);

}  // namespace shardlab
