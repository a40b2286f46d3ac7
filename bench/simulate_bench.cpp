// A step played, and written as a trace.

#include <benchmark/benchmark.h>

#include "bench_support.h"
#include "io/trace.h"

namespace shardlab::bench {
namespace {

const CompiledOrder* OrderOf(const PlannedScenario& planned) {
  return planned.order ? &*planned.order : nullptr;
}

void SimulatePlan(benchmark::State& state, const PlannedScenario& planned) {
  const Composition& c = *planned.composed.composition;
  std::size_t passes = 0;
  for (auto _ : state) {
    const Simulation simulation = Simulate(c, c.plan, OrderOf(planned), {});
    passes = simulation.passes.size();
    benchmark::DoNotOptimize(simulation.makespan);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(passes));
}

void simulate_70b_32_devices(benchmark::State& state) {
  SimulatePlan(state, Planned({"accounting=operator"}));
}
BENCHMARK(simulate_70b_32_devices)->Unit(benchmark::kMillisecond);

// Sixteen pipeline ranks, 128 micro-batches.
void simulate_1024_devices(benchmark::State& state) {
  SimulatePlan(state, Planned({"accounting=operator", "hardware.nodes=128", "schedule.degree=16",
                               "training.global_batch_size=1024"}));
}
BENCHMARK(simulate_1024_devices)->Unit(benchmark::kMillisecond);

// Cost over sizes: pipeline ranks x micro-batches of 64 devices each, so that the time per device
// and micro-batch, as items per second, stays what it is.
void simulate_sizes(benchmark::State& state) {
  const auto ranks = std::to_string(state.range(0)), nodes = std::to_string(state.range(0) * 8);
  const auto batch = std::to_string(state.range(1) * 8);
  SimulatePlan(state, Planned({"accounting=operator", "hardware.nodes=" + nodes,
                               "schedule.degree=" + ranks, "training.global_batch_size=" + batch}));
}
BENCHMARK(simulate_sizes)
    ->ArgsProduct({{2, 4, 8, 16}, {32, 128, 512}})
    ->Unit(benchmark::kMillisecond);

// Every layer, op and collective of both pipeline ranks.
void write_trace_70b(benchmark::State& state) {
  const PlannedScenario planned = Planned({"accounting=operator"});
  const Composition& c = *planned.composed.composition;
  const SimulateOptions options;
  const Simulation simulation = Simulate(c, c.plan, OrderOf(planned), options);
  const SimulationReport report{planned, options, simulation};
  std::size_t bytes = 0;
  for (auto _ : state) bytes = TraceJson(report, {true, DevicesShown(c, c.plan, 0)}).size();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(write_trace_70b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardlab::bench
