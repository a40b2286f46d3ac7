// Rows per second of whole sweeps into an SQLite file: plans made, evaluated and stored, with all
// of a stored row's columns, as `shardlab sweep --store` does but for reading the scenario; one
// thread. Items are legal rows; illegal combinations, which are cheaper, are played and stored
// beside them.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "bench_support.h"
#include "io/sweep_store.h"

namespace shardlab::bench {
namespace {

void SweepInto(benchmark::State& state, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  const Scenario scenario = SampleScenario(sets);
  const auto sweep = ReadSweep(Registry(), scenario, &diagnostics);
  if (!sweep) {
    state.SkipWithError("the sweep cannot be read");
    return;
  }
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("shardlab-bench-" + std::to_string(getpid()));
  StoredSweep wanted;
  wanted.scenario = sweep->canonical;
  wanted.combinations = sweep->table.size();
  std::int64_t legal = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (auto _ : state) {
    std::filesystem::remove(file);
    absl::StatusOr<SweepStore> store = SweepStore::Open(file.string(), true);
    absl::StatusOr<StoredSweep> stored = store->Begin(wanted);
    absl::Status status;
    RunSweep(*sweep, {}, [&](SweepPiece piece) {
      if (status.ok()) status = store->Append(std::move(piece), false, &*stored);
    });
    if (!status.ok()) state.SkipWithError("the rows cannot be stored");
    legal = stored->counts.evaluated;
  }
  std::filesystem::remove(file);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
  state.SetItemsProcessed(state.iterations() * legal);
  // With what the disk takes, too.
  state.counters["rows_per_wall_second"] =
      static_cast<double>(state.iterations() * legal) / wall.count();
  state.counters["legal"] = static_cast<double>(legal);
  state.counters["combinations"] = static_cast<double>(wanted.combinations);
}

// 70B on 32 H100: degrees, micro-batches, batches, recomputation and ZeRO stages. The last two, and
// a tensor degree of 1 or above, are 18 compositions; all else is numbers of a plan.
void sweep_rows_per_second(benchmark::State& state) {
  SweepInto(state, {"accounting=operator", "sweep.\"strategy.tensor.degree\"=[1, 2, 4, 8]",
                    "sweep.\"schedule.degree\"=[1, 2, 4, 8]",
                    "sweep.\"training.micro_batch_size\"=[1, 2, 4]",
                    "sweep.\"training.global_batch_size\"={from=128, to=2048, plus=128}",
                    "sweep.\"strategy.checkpointing.mode\"=[\"none\", \"selective\", \"full\"]",
                    "sweep.\"strategy.zero.stage\"=[0, 1, 2]"});
}
BENCHMARK(sweep_rows_per_second)->Unit(benchmark::kMillisecond);

// No two rows share a composition: each has its own sequence length or sharding.
void sweep_rows_of_their_own(benchmark::State& state) {
  SweepInto(state, {"accounting=operator", "sweep.\"strategy.zero.stage\"=[0, 1, 2]",
                    "sweep.\"training.sequence_length\"={from=4096, to=16384, plus=128}"});
}
BENCHMARK(sweep_rows_of_their_own)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardlab::bench
