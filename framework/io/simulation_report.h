#pragma once
// What `shardlab simulate` tells of a played step: JSON, text, a chart, a list of events.
//
//   SimulationReport report{planned, options, simulation};
//   out << SimulationDocument(report, false).dump(2);

#include <nlohmann/json.hpp>
#include <string>

#include "core/simulate.h"
#include "io/plan_document.h"
#include "io/text_style.h"

namespace shardlab {

struct SimulationReport {
  const PlannedScenario& planned;
  const SimulateOptions& options;
  const Simulation& simulation;

  const Composition& composition() const { return *planned.composed.composition; }
};

struct EventLists {
  bool passes = false, detail = false;
};

// Schema "shardlab.simulation/1".
nlohmann::ordered_json SimulationDocument(const SimulationReport& report, EventLists events);
std::string SimulationText(const SimulationReport& report, const TextStyle& style);
std::string SimulationChart(const SimulationReport& report, const TextStyle& style);
std::string SimulationEvents(const SimulationReport& report, bool detail);

// One thing on one stream of one rank.
struct SimulationEvent {
  int rank = 0;
  Stream stream = Stream::kCompute;
  std::string kind;  // the field's letters, SEND, RECV, a collective's name, "optimizer"
  std::string name;  // of an op or a tensor; "" for a pass
  int chunk = -1, micro_batch = -1, backward_chunk = -1, backward_micro_batch = -1;
  double start = 0, end = 0;
};
// Calls for the passes, the messages and the traffic beside them; with `detail` for all that a pass
// is made of, too.
void EachEvent(const SimulationReport& report, bool detail,
               const std::function<void(const SimulationEvent&)>& visit);

// The name of a collective's row: "all-gather", and of what.
std::string CollectiveOf(const Composition& composition, std::int32_t transfer);
std::string TensorOf(const Composition& composition, std::int32_t transfer);

}  // namespace shardlab
