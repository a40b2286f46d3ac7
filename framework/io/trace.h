#pragma once
// A played step as Chrome trace-event JSON, which Perfetto and speedscope open: a process for each
// device, a track for each of its streams, slices that nest and never overlap on a track, arrows
// from each send to the pass that waits for it, and a counter with the bytes of every account.
//
//   std::ofstream("step.json") << TraceJson(report, {.devices = DevicesShown(c, plan, 0)});
//
// Format: Chromium project, "Trace Event Format" (2016).

#include <string>
#include <vector>

#include "io/simulation_report.h"

namespace shardlab {

struct TraceOptions {
  bool detail = false;       // layers, ops and collectives inside the passes
  std::vector<int> devices;  // by number
};

// One device of each pipeline rank; with `first` > 0 so many of the machine's.
std::vector<int> DevicesShown(const Composition& composition, const Plan& plan, int first);
int PipelineRankOf(const Composition& composition, const Plan& plan, int device);

std::string TraceJson(const SimulationReport& report, const TraceOptions& options);

}  // namespace shardlab
