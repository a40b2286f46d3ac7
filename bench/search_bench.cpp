// Plans per second of whole searches, composing included; one thread.

#include <benchmark/benchmark.h>

#include "bench_support.h"
#include "io/search_run.h"

namespace shardlab::bench {
namespace {

// The default grid for the model and machine of a scenario; items are its points.
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
  std::int64_t evaluated = 0;
  for (auto _ : state) {
    const SearchResult result = RunSearch(Registry(), *grid, {}, [](std::int64_t) {});
    evaluated = result.counts.evaluated;
    benchmark::DoNotOptimize(result.best.data());
  }
  state.SetItemsProcessed(state.iterations() * grid->size());
  state.counters["evaluated"] = static_cast<double>(evaluated);
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

}  // namespace
}  // namespace shardlab::bench
