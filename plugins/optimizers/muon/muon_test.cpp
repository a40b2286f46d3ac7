#include "muon.h"

#include <gtest/gtest.h>

namespace shardlab::muon {
namespace {

double BytesPerParameter(const ParameterKind& kind) {
  double bytes = 0;
  for (const OptimizerState& state : Muon().StatesOf(kind, Precision{}))
    bytes += state.per_parameter * BytesPerElement(state.dtype);
  return bytes;
}

TEST(Muon, MatricesOfLayersHaveOneMomentum) {
  EXPECT_EQ(BytesPerParameter({.dimensions = 2, .layer = true}), 8);
  EXPECT_EQ(BytesPerParameter({.dimensions = 4, .layer = true}), 8);
}

TEST(Muon, VectorsEmbeddingAndHeadAreAdams) {
  EXPECT_EQ(BytesPerParameter({.dimensions = 1, .layer = true}), 12);
  EXPECT_EQ(BytesPerParameter({.dimensions = 2, .layer = false}), 12);
}

TEST(Muon, WithoutAMasterWeight) {
  Precision precision;
  precision.master = Dtype::kNone;
  EXPECT_EQ(Muon().States(precision).size(), 1u);
}

// A square of 2: each iteration makes three products of 2 x 2 x 2, 16 FLOPs each.
TEST(Muon, FiveIterationsOfThreeProducts) {
  EXPECT_EQ(Muon().FlopsOfMatrix({}, 2, 2), 5 * 3 * 16);
  EXPECT_EQ(Muon().FlopsOfMatrix({}, 3, 7), Muon().FlopsOfMatrix({}, 7, 3));
  // At most 6 n m^2 an iteration (Jordan et al. 2024), m being the smaller.
  EXPECT_LE(Muon().FlopsOfMatrix({}, 100, 400), 5 * 6.0 * 400 * 100 * 100);
  EXPECT_EQ(Muon().FlopsOfMatrix({.dimensions = 1}, 1, 64), 0);
  EXPECT_EQ(Muon().FlopsOfMatrix({.layer = false}, 64, 64), 0);
}

TEST(Muon, HasASource) { EXPECT_FALSE(Muon().source().empty()); }

}  // namespace
}  // namespace shardlab::muon
