// What one evaluation and one composition cost in instructions: run under callgrind with N and 2N
// repetitions, the difference over N is exact, start-up and plugin loading cancel.
//
//   valgrind --tool=callgrind bench/shardlab_instructions evaluate 1000

#include <cstdlib>
#include <iostream>
#include <string>

#include "bench_support.h"

int main(int argc, char** argv) {
  using namespace shardlab;
  if (argc != 3) {
    std::cerr << "usage: shardlab_instructions evaluate|compose REPETITIONS\n";
    return 2;
  }
  const std::string what = argv[1];
  const int repetitions = std::atoi(argv[2]);
  const PlannedScenario planned = bench::Planned({"accounting=operator"});
  const Composition& c = *planned.composed.composition;
  const CompiledOrder* order = planned.order ? &*planned.order : nullptr;
  Workspace workspace(c);
  workspace.Reserve(c.plan, order);
  const Scenario scenario = bench::SampleScenario({"accounting=operator"});
  double sum = 0;  // used, so that nothing is left out
  for (int i = 0; i < repetitions; ++i) {
    if (what == "evaluate") {
      sum += Evaluate(c, c.plan, order, workspace).step;
    } else {
      Diagnostics diagnostics;
      sum += ComposeScenario(bench::Registry(), scenario, &diagnostics)
                 .composition->plan.micro_batches;
    }
  }
  std::cout << sum << "\n";
  return 0;
}
