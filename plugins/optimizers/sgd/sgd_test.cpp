#include "sgd.h"

#include <gtest/gtest.h>

#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::sgd {
namespace {

Sgd Made(const std::string& table) {
  Diagnostics diagnostics;
  const Value read = ParseToml(table, "a.toml", diagnostics);
  ParameterReader reader(&read, {}, {}, &diagnostics);
  Sgd sgd;
  sgd.Visit(reader);
  EXPECT_TRUE(diagnostics.empty());
  return sgd;
}

TEST(Sgd, AMasterWeightAndNothingElse) {
  const Sgd sgd = Made("momentum = 0");
  ASSERT_EQ(sgd.States(Precision{}).size(), 1u);
  EXPECT_EQ(sgd.States(Precision{})[0].name, "master weight");
  EXPECT_EQ(sgd.FlopsPerParameter(), 2);
}

TEST(Sgd, MomentumIsOneTensorMore) {
  const Sgd sgd = Made("momentum = 0.9");
  Precision precision;
  precision.moments = Dtype::kBf16;
  const std::vector<OptimizerState> states = sgd.States(precision);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[1].dtype, Dtype::kBf16);
  EXPECT_EQ(sgd.FlopsPerParameter(), 4);
}

TEST(Sgd, NoStateAtAllWhereTheParametersAreTheirOwnMaster) {
  Precision precision;
  precision.master = Dtype::kNone;
  EXPECT_TRUE(Made("momentum = 0").States(precision).empty());
}

TEST(Sgd, HasASource) { EXPECT_FALSE(Sgd().source().empty()); }

}  // namespace
}  // namespace shardlab::sgd
