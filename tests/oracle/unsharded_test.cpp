// The toy's own arithmetic: before it may judge anyone, its backward pass is held against finite
// differences of its forward pass, for every parameter tensor.

#include <gtest/gtest.h>

#include <cmath>

#include "core/derive.h"
#include "core/edits.h"
#include "core/place.h"
#include "oracle/shipped_models.h"
#include "oracle/toy_machine.h"
#include "oracle/toy_models.h"

namespace shardlab::oracle {
namespace {

class Unsharded final {
 public:
  explicit Unsharded(const Program& program) : program_(program) {
    PlaceWork(program_);
    for (Tensor& tensor : program_.tensors)
      tensor.home = tensor.state = tensor.gradient = tensor.use;
    derived_ = Derive(program_, mesh_);
  }
  double Loss(const Nudge& nudge) const {
    return ToyMachine(program_, mesh_, derived_, {},
                      {.batch = 3, .micro_batches = 2, .nudge = nudge})
        .Loss();
  }
  Trace Run() const {
    Trace trace;
    ToyMachine(program_, mesh_, derived_, {}, {.batch = 3, .micro_batches = 2, .nudge = {}})
        .Run(nullptr, &trace);
    return trace;
  }

 private:
  Program program_;
  Mesh mesh_;
  Derived derived_;
};

// A soft-max does not see what is added to all of its scores.
bool HasNoGradient(const Tensor& tensor) {
  return tensor.name.find("attention.k.bias") != std::string::npos;
}

void ExpectDifferencesMatch(const Program& rolled, double small = 1e-4) {
  const Program program = Unroll(rolled);
  const Unsharded machine(program);
  const Trace trace = machine.Run();
  constexpr double kStep = 1e-5;
  int parameters = 0;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (program.tensors[t].role != TensorRole::kParameter) continue;
    ++parameters;
    const std::vector<double>& gradient = trace.parameter_gradients[t];
    ASSERT_FALSE(gradient.empty()) << program.tensors[t].name;
    double largest = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto rise = [&](double step) {
        return machine.Loss({TensorId(t), i, step}) - machine.Loss({TensorId(t), i, -step});
      };
      // Four points: norms of a few small numbers bend too sharply for two.
      const double slope = (8 * rise(kStep) - rise(2 * kStep)) / (12 * kStep);
      EXPECT_NEAR(gradient[i], slope, 1e-8 * std::max(1.0, std::abs(gradient[i])))
          << program.tensors[t].name << " element " << i;
      largest = std::max(largest, std::abs(gradient[i]));
    }
    // Tests that compare to 1e-9 say something only about gradients that are not tiny.
    if (HasNoGradient(program.tensors[t])) continue;
    EXPECT_GT(largest, small) << program.tensors[t].name;
  }
  EXPECT_GE(parameters, 20);
}

TEST(UnshardedTest, DenseGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch(ToyModel({.layers = 2}));
}
TEST(UnshardedTest, ExpertGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch(ToyModel({.experts = true, .layers = 2}));
}
TEST(UnshardedTest, TiedEmbeddingGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch(ToyModel({.layers = 2, .tied_embedding = true, .sizes = kUnevenSizes}));
}
TEST(UnshardedTest, ShippedModelsGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch(ShippedGpt(), 1e-6);
  ExpectDifferencesMatch(ShippedParallel(), 1e-6);
  ExpectDifferencesMatch(ShippedRelative(false), 1e-6);
  ExpectDifferencesMatch(ShippedRelative(true), 1e-6);
  ExpectDifferencesMatch(ShippedExperts(false), 1e-6);
  ExpectDifferencesMatch(ShippedExperts(true), 1e-6);
  ExpectDifferencesMatch(ShippedWeightsInside(), 1e-6);
}

}  // namespace
}  // namespace shardlab::oracle
