#pragma once
// A composition: the program after the strategies have edited it, with the mesh, the machine, the
// network and the schedule; immutable. Plans (integers) are evaluated against it by the million.
//
//   Composition composition = ...;                       // io/compose_scenario.h makes one from a
//   file Workspace workspace(composition); Evaluation e = Evaluate(composition, composition.plan,
//   order, workspace);

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/hardware.h"
#include "api/network.h"
#include "api/optimizer.h"
#include "api/schedule.h"
#include "core/edits.h"
#include "core/form.h"
#include "domain/plan.h"

namespace shardlab {

struct Training {
  double sequence_length = 0;
  int global_batch_size = 0;  // sequences
  double total_tokens = 0;    // of the whole run; 0 = not stated
  double dropout = 0;
  bool eager_attention = false;
};

// Layers of each stage, and how many of each class that makes: counts[stage x classes + class].
// `alike`: of each stage the first with the same counts.
struct LayerSplit {
  std::vector<int> layers;
  std::vector<double> counts;
  std::vector<std::int32_t> alike;
};

struct Composition {
  Edited edited;
  Form form;
  AccountingRules rules;
  Precision precision;
  Training training;
  std::shared_ptr<const Hardware> hardware;
  std::shared_ptr<const Network> network;
  std::shared_ptr<const Schedule>
      schedule;  // null when the scenario has one pipeline rank and names none
  std::shared_ptr<const Optimizer> optimizer;
  OptimizerStates states;
  std::string schedule_name, network_name, optimizer_name;
  bool exposed_transfers = false;  // pipeline sends take time
  double host_seconds = 0;         // the framework's host takes to start one op
  double overlap_share = 1;        // of traffic that could hide, what does not slow its cover down
  std::vector<LayerSplit> splits;  // [plan.split]
  Plan plan;                       // the scenario's own
};

}  // namespace shardlab
