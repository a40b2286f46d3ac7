// Simulate against Evaluate, over plans of every kind: two programs that share the rows and nothing
// else.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "core/evaluate.h"
#include "core/simulate.h"
#include "laws/plans.h"

namespace shardlab {
namespace {

Simulation Played(const LawPlan& plan, const SimulateOptions& options = {}) {
  return Simulate(plan.composition(), plan.plan(), plan.order(), options);
}

TEST(SimulationLaws, Survey) {
  if (std::getenv("SURVEY") == nullptr) GTEST_SKIP();
  for (const LawPlan& plan : LegalPlans()) {
    const Evaluation& e = plan.planned.explanation.evaluation;
    const Simulation s = Played(plan);
    double peak = 0;
    for (const SimulatedRank& r : s.ranks) peak = std::max(peak, r.peak);
    printf(
        "SURVEY step %+.3e peak %+.3e hides %d approx %d p %d v %d m %d sched %s acc %s share %g "
        "split %d\n",
        s.makespan / e.step - 1, peak / e.peak - 1, s.hides, e.approximate, plan.plan().pipeline,
        plan.plan().chunks, plan.plan().micro_batches, plan.composition().schedule_name.c_str(),
        plan.composition().rules.name.c_str(), plan.composition().overlap_share,
        plan.order() ? plan.order()->splits_backward : 0);
    if (std::abs(s.makespan / e.step - 1) > 0.02) printf("%s\n", plan.text.c_str());
  }
}

}  // namespace
}  // namespace shardlab
