#pragma once
// Measurements against predictions: every row becomes a scenario, is planned as `shardlab plan`
// plans it, and is held against what was measured. A row that cannot be planned is kept with its
// reason.
//
//   Validation v = Validate(registry, measurements, rules);
//   for (const SourceErrors& s : v.step.sources) print(s.name, s.errors.mean_absolute);
//
// Step time: step_s, or what tokens_per_s_per_gpu implies. Memory: the account and the pipeline
// rank that the rules name (MemoryReading). Beside each prediction stand two baselines, defined in
// docs/validation.md: `work` times one constant fitted over all judged rows, and `roofline`.

#include <optional>
#include <string>
#include <vector>

#include "io/measurement_rules.h"
#include "io/plugin_registry.h"
#include "io/validation_statistics.h"

namespace shardlab {

// What a plan says of a row; seconds, bytes, FLOPs of the whole step.
struct RowPrediction {
  double step = 0, memory = 0;
  bool fits = true;
  double hardware_flops = 0;  // with replayed blocks
  // Baselines: hardware FLOPs / (devices x peak) and the plain roofline, seconds; parameters,
  // gradients and optimizer state of the judged rank, and the same with textbook activations,
  // bytes.
  double step_work = 0, step_roofline = 0, memory_work = 0, memory_roofline = 0;
  double parameters = 0;       // of the whole model
  double rank_parameters = 0;  // of the judged rank, before state is cut
  int sharing = 1;             // data x context ranks
};

struct ValidatedRow {
  RowScenario scenario;
  std::string skip;  // why there is no prediction; a rule's reason, or the first diagnostic
  Diagnostics diagnostics;
  std::optional<RowPrediction> prediction;
  std::optional<double> measured_step, measured_memory;  // seconds, bytes; none: not judged
  bool step_derived = false;                             // from tokens a second
  std::string skip_step, skip_memory;                    // why the one or the other is not judged
};

struct SlopePair {
  std::string row, other;              // ids; other empty: the same run on twice the devices
  double predicted = 0, measured = 0;  // bytes a parameter; measured 0: not stated
};

struct SlopeResult {
  SlopeCheck check;
  std::vector<SlopePair> pairs;
  bool holds = false;  // every pair is within the check's bounds; false when there are none
};

// Errors of one quantity on the rows of one source.
struct SourceErrors {
  std::string name, title;
  std::vector<std::size_t> rows;  // indices into Validation::rows
  ErrorSummary errors, first_half, second_half;
  double constant = 0;             // mean absolute error of the constant of all rows
  double own_constant = 0;         // of a constant fitted on this source's rows
  double other_half_constant = 0;  // fitted on the one half, judged on the other
  double roofline = 0;
  RankAgreement order;  // step time only: within groups of one model on one machine
};

struct QuantityErrors {
  double constant = 0;  // fitted: 1 / utilisation for step time, a factor for memory
  std::vector<SourceErrors> sources;
};

struct Validation {
  std::vector<ValidatedRow> rows;
  QuantityErrors step, memory;
  std::vector<SlopeResult> checks;
};

Validation Validate(const PluginRegistry& registry, const std::vector<Measurement>& measurements,
                    const MeasurementRules& rules);

}  // namespace shardlab
