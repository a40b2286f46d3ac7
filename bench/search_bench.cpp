// Plans per second of whole searches, composing included; one thread.

#include <benchmark/benchmark.h>

#include "bench_support.h"
#include "io/search_run.h"

namespace shardlab::bench {
namespace {

// The default grid for the model and machine of a scenario; items are its points. `decided`: legal
// plans a second, each with its block costs, bounds, constraints, and where no bound rules it out
// the memory of every rank and the time.
void SearchGridOf(benchmark::State& state, const std::string& file,
                  const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  const Scenario scenario =
      ReadScenario(std::string(SHARDLAB_SOURCE_DIR) + "/scenarios/" + file, sets, diagnostics);
  const auto grid = ReadSearchGrid(Registry(), scenario, &diagnostics);
  if (!grid) {
    state.SkipWithError("the grid cannot be read");
    return;
  }
  SweepCounts counts;
  for (auto _ : state) {
    const SearchResult result = RunSearch(Registry(), *grid, {}, [](std::int64_t) {});
    counts = result.counts;
    benchmark::DoNotOptimize(result.best.data());
  }
  state.SetItemsProcessed(state.iterations() * grid->size());
  state.counters["evaluated"] = static_cast<double>(counts.evaluated);
  state.counters["decided"] =
      benchmark::Counter(static_cast<double>(counts.considered - counts.illegal),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void search_70b_32_devices(benchmark::State& state) {
  SearchGridOf(state, "llama3.1-70b-32xh100.toml", {"accounting=operator"});
}
BENCHMARK(search_70b_32_devices)->Unit(benchmark::kMillisecond);

void search_gpt3_175b_64_devices(benchmark::State& state) {
  SearchGridOf(state, "gpt3-175b-tp8-pp8-a100.toml", {"hardware.devices=64"});
}
BENCHMARK(search_gpt3_175b_64_devices)->Unit(benchmark::kMillisecond);

void search_405b_16384_devices(benchmark::State& state) {
  SearchGridOf(state, "llama3.1-405b-16384-gpus.toml", {});
}
BENCHMARK(search_405b_16384_devices)->Unit(benchmark::kMillisecond);

// Two million plans: composing is a small part.
void search_405b_varied(benchmark::State& state) {
  SearchGridOf(state, "llama3.1-405b-16384-gpus.toml",
               {"search.vary={\"training.global_batch_size\" = [2048, 4096, 6144, 8192], "
                "\"training.sequence_length\" = [4096, 8192, 12288, 16384]}"});
}
BENCHMARK(search_405b_varied)->Unit(benchmark::kMillisecond);

void search_mixtral_8x7b_32_devices(benchmark::State& state) {
  SearchGridOf(state, "mixtral-8x7b-ep8-32-gpus.toml", {});
}
BENCHMARK(search_mixtral_8x7b_32_devices)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardlab::bench
