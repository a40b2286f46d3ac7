#include "adam8bit.h"

#include <gtest/gtest.h>

#include "io/parameter_io.h"
#include "io/toml_value.h"

namespace shardlab::adam8bit {
namespace {

double BytesPerParameter(const Adam8bit& optimizer, const Precision& precision) {
  double bytes = 0;
  for (const OptimizerState& state : optimizer.States(precision))
    bytes += state.per_parameter * BytesPerElement(state.dtype);
  return bytes;
}

TEST(Adam8bit, TwoBytesAndTwoScalesABlock) {
  Precision alone;
  alone.master = Dtype::kNone;
  EXPECT_EQ(BytesPerParameter(Adam8bit(), alone), 2 + 2 * 4.0 / 2048);
  EXPECT_EQ(BytesPerParameter(Adam8bit(), Precision{}), 6 + 2 * 4.0 / 2048);
}

TEST(Adam8bit, TheMomentsAreEightBitsWhateverTheRecipe) {
  Precision wide;
  wide.moments = Dtype::kFp32;
  Precision narrow;
  narrow.moments = Dtype::kBf16;
  EXPECT_EQ(BytesPerParameter(Adam8bit(), wide), BytesPerParameter(Adam8bit(), narrow));
}

TEST(Adam8bit, SmallerBlocksHaveMoreScales) {
  Diagnostics diagnostics;
  const Value read = ParseToml("block_size = 256", "a.toml", diagnostics);
  ParameterReader reader(&read, {}, {}, &diagnostics);
  Adam8bit optimizer;
  optimizer.Visit(reader);
  EXPECT_EQ(BytesPerParameter(optimizer, Precision{}), 6 + 2 * 4.0 / 256);
}

TEST(Adam8bit, HasASource) { EXPECT_FALSE(Adam8bit().source().empty()); }

}  // namespace
}  // namespace shardlab::adam8bit
