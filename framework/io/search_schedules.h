#pragma once
// Which schedules a search tries, and what of the file's own pipeline belongs to its grid.
//
//   SearchSchedules schedules(registry, scenario, bare, offers, &table, &diagnostics, &memory);
//   const PipelineRule rule = schedules.Rule(degrees);

#include <map>
#include <string>
#include <vector>

#include "io/compose_memory.h"
#include "io/plugin_registry.h"
#include "io/scenario.h"
#include "io/search_offers.h"
#include "io/search_pipelines.h"
#include "io/search_table.h"

namespace shardlab {

class SearchSchedules {
 public:
  // `bare`: the scenario without what a search decides, `file`: the schedule that it has, made.
  SearchSchedules(const PluginRegistry& registry, const Scenario& scenario, const Scenario& bare,
                  const std::vector<ScheduleOffer>& offers, const TriedSchedule& file,
                  SearchTable* table, Diagnostics* diagnostics, ComposeMemory* memory);

  // Over these degrees where [search] says none. Takes the pipeline's keys out of the table.
  PipelineRule Rule(const std::vector<int>& degrees);
  // Of a schedule the keys of the file's [schedule] that are parameters of the file's alone.
  const std::map<std::string, std::vector<std::string>>& foreign_keys() const { return foreign_; }

 private:
  std::vector<std::string> Names();
  TriedSchedule Tried(const std::string& name);
  void ShapeOfFile(PipelineRule* rule) const;
  std::vector<std::string> ParametersOf(const std::string& name) const;

  const PluginRegistry& registry_;
  const Scenario& scenario_;
  const Scenario& bare_;
  const std::vector<ScheduleOffer>& offers_;
  const TriedSchedule& file_;
  SearchTable& table_;
  Diagnostics& diagnostics_;
  ComposeMemory& memory_;
  std::vector<std::string> own_parameters_;  // of the file's schedule, that the file sets
  std::map<std::string, std::vector<std::string>> foreign_;
};

}  // namespace shardlab
