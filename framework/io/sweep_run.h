#pragma once
// A sweep played: each combination is one plan, or a reason why there is none. Combinations are
// evaluated in pieces, on any number of threads, and handed on in order.
//
//   std::optional<Sweep> sweep = ReadSweep(registry, scenario, &diagnostics);
//   RunSweep(*sweep, {.jobs = 4}, [&](SweepPiece piece) { ... });

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/plugin_registry.h"
#include "io/scenario.h"
#include "io/sweep_row.h"
#include "io/sweep_table.h"

namespace shardlab {

// considered = illegal + pruned + evaluated; the others are part of evaluated.
struct SweepCounts {
  std::int64_t considered = 0, illegal = 0, pruned = 0, evaluated = 0;
  std::int64_t not_fitting = 0, filtered = 0;
  friend bool operator==(const SweepCounts&, const SweepCounts&) = default;
};
nlohmann::ordered_json CountsToJson(const SweepCounts& counts);

struct Sweep {
  const PluginRegistry* registry = nullptr;
  Scenario scenario;
  SweepTable table;
  std::string name;
  nlohmann::ordered_json defaults;  // the scenario with every default filled in
  std::string canonical;            // what was asked, as one line of TOML: two alike are one sweep
};

// Nothing, with diagnostics, when the table cannot be read or the scenario is wrong whatever the
// combination: a misspelt key is a mistake, 3 ranks for 32 layers is an illegal combination.
std::optional<Sweep> ReadSweep(const PluginRegistry& registry, const Scenario& scenario,
                               Diagnostics* diagnostics);

// The combinations [first, first + 128) or what there is of them: rows to show, in order.
struct SweepPiece {
  std::int64_t first = 0, past = 0;
  SweepCounts counts;  // of this piece
  std::vector<SweepRow> rows;
  std::vector<nlohmann::ordered_json> provenance;  // constants used, each once
  std::string problem;                             // of `keep`, the first
  friend bool operator==(const SweepPiece&, const SweepPiece&) = default;
};
inline constexpr std::int64_t kSweepPiece = 128;

struct SweepOptions {
  int jobs = 1;
  bool documents = false;
  std::int64_t first = 0;  // a multiple of kSweepPiece: what was done before is left out
  // Where there is one, pieces [first, past) are played by it, `jobs` of them at a time: by other
  // processes, say, each with a SweepPlayer. `slot` is below `jobs`; one call at a time has it.
  std::function<SweepPiece(std::int64_t first, std::int64_t past, int slot)> elsewhere = {};
};
void RunSweep(const Sweep& sweep, const SweepOptions& options,
              const std::function<void(SweepPiece)>& consume);

void Add(const SweepCounts& more, SweepCounts* counts);

}  // namespace shardlab
