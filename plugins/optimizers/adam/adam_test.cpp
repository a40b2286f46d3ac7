#include "adam.h"

#include <gtest/gtest.h>

namespace shardlab::adam {
namespace {

double BytesPerParameter(const Precision& precision) {
  double bytes = 0;
  for (const OptimizerState& state : Adam().States(precision))
    bytes += state.per_parameter * BytesPerElement(state.dtype);
  return bytes;
}

TEST(Adam, TwelveBytesWithAMasterWeight) { EXPECT_EQ(BytesPerParameter(Precision{}), 12); }

TEST(Adam, NoMasterWeightWhereTheParametersAreTheirOwn) {
  Precision fsdp;
  fsdp.master = Dtype::kNone;
  EXPECT_EQ(BytesPerParameter(fsdp), 8);
  fsdp.moments = Dtype::kBf16;
  EXPECT_EQ(BytesPerParameter(fsdp), 4);
  EXPECT_EQ(Adam().States(fsdp).size(), 2u);
}

TEST(Adam, ArithmeticHasASource) {
  EXPECT_EQ(Adam().FlopsPerParameter(), 11);
  EXPECT_FALSE(Adam().source().empty());
}

}  // namespace
}  // namespace shardlab::adam
