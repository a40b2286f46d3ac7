// Plans per second and friends. Names are those of the contract; limits are in check_limits.py.

#include <benchmark/benchmark.h>

#include "bench_support.h"
#include "core/order.h"

namespace shardlab::bench {
namespace {

void EvaluatePlan(benchmark::State& state, const PlannedScenario& planned) {
  const Composition& c = *planned.composed.composition;
  const CompiledOrder* order = planned.order ? &*planned.order : nullptr;
  Workspace workspace(c);
  workspace.Reserve(c.plan, order);
  for (auto _ : state) benchmark::DoNotOptimize(Evaluate(c, c.plan, order, workspace));
  state.SetItemsProcessed(state.iterations());
}

// Every op, saved tensor and transfer of the sample 3D plan.
void evaluate_dense_70b_3d(benchmark::State& state) {
  EvaluatePlan(state, Planned({"accounting=operator"}));
}
BENCHMARK(evaluate_dense_70b_3d);

// The same plan by the classroom's rows.
void evaluate_textbook_70b_3d(benchmark::State& state) {
  EvaluatePlan(state, Planned(std::vector<std::string>()));
}
BENCHMARK(evaluate_textbook_70b_3d);

// Experts, latent attention, context and tensor ranks, a pipeline of two, attention replayed.
void evaluate_moe_deepseek_v3(benchmark::State& state) {
  EvaluatePlan(state,
               PlannedOf(MoeScenario({"schedule.degree=2", "hardware.nodes=32",
                                      "schedule.balance=even", "schedule.layers=[31, 30]"})));
}
BENCHMARK(evaluate_moe_deepseek_v3);

// No closed form: sixteen ranks, 128 micro-batches and a split backward, 6,144 events.
void evaluate_zero_bubble_16x128(benchmark::State& state) {
  EvaluatePlan(state,
               Planned({"accounting=operator", "hardware.nodes=128", "schedule.degree=16",
                        "schedule.plugin=pipeline-zb-h1", "training.global_batch_size=1024"}));
}
BENCHMARK(evaluate_zero_bubble_16x128);

// Gathers and reductions under every pass of such a pipeline.
void evaluate_fsdp_pipeline_16x128(benchmark::State& state) {
  EvaluatePlan(state, Planned({"accounting=operator", "hardware.nodes=128", "schedule.degree=16",
                               "strategy.zero.stage=3", "training.global_batch_size=1024"}));
}
BENCHMARK(evaluate_fsdp_pipeline_16x128);

void compose_moe_deepseek_v3(benchmark::State& state) {
  const Scenario scenario = MoeScenario({});
  const PluginRegistry& registry = Registry();
  for (auto _ : state) {
    Diagnostics diagnostics;
    benchmark::DoNotOptimize(ComposeScenario(registry, scenario, &diagnostics));
  }
}
BENCHMARK(compose_moe_deepseek_v3);

// Plugins made, parameters read, rows written, edits applied, transfers derived, rows compiled,
// plan checked.
void compose_70b_3d(benchmark::State& state) {
  const Scenario scenario = SampleScenario({"accounting=operator"});
  const PluginRegistry& registry = Registry();
  for (auto _ : state) {
    Diagnostics diagnostics;
    benchmark::DoNotOptimize(ComposeScenario(registry, scenario, &diagnostics));
  }
}
BENCHMARK(compose_70b_3d);

void play_1f1b_16x128(benchmark::State& state) {
  const PlannedScenario planned = Planned({"accounting=operator"});
  const absl::StatusOr<CompiledOrder> order =
      CompileOrder(*planned.composed.composition->schedule, {16, 1, 128});
  std::vector<double> costs(16 * 4), ends(order->events.size());
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = 1 + 0.01 * static_cast<double>(i % 7);
  for (auto _ : state) {
    PlayOrder(*order, costs, 0.001, absl::MakeSpan(ends));
    benchmark::DoNotOptimize(ends.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(order->events.size()));
}
BENCHMARK(play_1f1b_16x128);

}  // namespace
}  // namespace shardlab::bench
