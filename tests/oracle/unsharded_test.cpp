// The toy's own arithmetic: before it may judge anyone, its backward pass is held against finite
// differences of its forward pass, for every parameter tensor.

#include <gtest/gtest.h>

#include <cmath>

#include "core/derive.h"
#include "core/edits.h"
#include "core/place.h"
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

void ExpectDifferencesMatch(const ToyModelOptions& options) {
  const Program program = Unroll(ToyModel(options));
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
      const double up = machine.Loss({TensorId(t), i, kStep}),
                   down = machine.Loss({TensorId(t), i, -kStep});
      EXPECT_NEAR(gradient[i], (up - down) / (2 * kStep), 1e-8)
          << program.tensors[t].name << " element " << i;
      largest = std::max(largest, std::abs(gradient[i]));
    }
    // Tests that compare to 1e-9 say something only about gradients that are not tiny.
    EXPECT_GT(largest, 1e-4) << program.tensors[t].name;
  }
  EXPECT_GE(parameters, 20);
}

TEST(UnshardedTest, DenseGradientsAreFiniteDifferences) { ExpectDifferencesMatch({.layers = 2}); }
TEST(UnshardedTest, ExpertGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch({.experts = true, .layers = 2});
}
TEST(UnshardedTest, TiedEmbeddingGradientsAreFiniteDifferences) {
  ExpectDifferencesMatch({.layers = 2, .tied_embedding = true, .sizes = kUnevenSizes});
}

}  // namespace
}  // namespace shardlab::oracle
