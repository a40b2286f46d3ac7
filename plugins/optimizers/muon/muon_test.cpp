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

TEST(Muon, HasASource) { EXPECT_FALSE(Muon().source().empty()); }

}  // namespace
}  // namespace shardlab::muon
