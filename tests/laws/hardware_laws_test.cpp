// Every machine, in every accounting and compute dtype: the contract of api/hardware.h.

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "api/hardware.h"
#include "laws/made.h"
#include "laws/random.h"

namespace shardlab {
namespace {

constexpr Dtype kComputeDtypes[] = {Dtype::kBf16, Dtype::kFp16, Dtype::kFp8,
                                    Dtype::kTf32, Dtype::kFp32, Dtype::kFp64};
constexpr OpKind kKinds[] = {OpKind::kProduct,   OpKind::kLookup, OpKind::kAttention, OpKind::kNorm,
                             OpKind::kLayerNorm, OpKind::kBias,   OpKind::kGelu,      OpKind::kRelu,
                             OpKind::kConcat,    OpKind::kAdd,    OpKind::kGatedSilu, OpKind::kSum,
                             OpKind::kMaxReduce, OpKind::kSumExp, OpKind::kLogLoss,   OpKind::kTopK,
                             OpKind::kDispatch,  OpKind::kWork};
constexpr Phase kPhases[] = {Phase::kForward, Phase::kReplay, Phase::kInputGradient,
                             Phase::kWeightGradient, Phase::kUpdate};

template <class F>
void EachMachine(F check) {
  for (const std::string& name : BuiltPlugins().Names(Hardware::kKind)) {
    for (const std::string& accounting : CatalogNames(BuiltPlugins(), "accounting")) {
      Diagnostics ignored;
      const std::optional<Accounting> read =
          ReadAccounting(BuiltPlugins(), accounting, {}, ignored);
      ASSERT_TRUE(read.has_value());
      for (const Dtype dtype : kComputeDtypes) {
        SCOPED_TRACE(absl::StrCat(name, ", ", accounting, ", computes in ", Name(dtype)));
        Making making;
        making.rules = read->rules;
        making.precision.compute = dtype;
        const auto hardware = Made<Hardware>(name, making);
        check(*hardware);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

OpShape RandomShape(Random& random, OpKind kind) {
  const auto size = [&] { return std::floor(std::exp(random.Between(0.0, 10.0))); };
  OpShape shape;
  shape.kind = kind;
  shape.phase = kPhases[random.Next() % 5];
  shape.m = size();
  if (kind == OpKind::kProduct) {
    shape.n = size();
    shape.k = size();
    shape.flops = 2 * shape.m * shape.n * shape.k;
    shape.bytes = 2 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  } else if (kind == OpKind::kWork) {
    shape.flops = shape.m * size();
  } else {
    shape.flops = shape.m * random.Between(0.0, kind == OpKind::kAttention ? 20000.0 : 12.0);
    shape.bytes = shape.m * random.Between(0.0, 16.0);
  }
  shape.tokens = size();
  return shape;
}

TEST(HardwareLaws, TheMachineIsWhole) {
  EachMachine([](const Hardware& hardware) {
    const Machine& m = hardware.machine();
    EXPECT_FALSE(m.name.empty());
    EXPECT_GT(m.devices, 0);
    EXPECT_GT(m.memory.value(), 0);
    EXPECT_GT(m.peak.value(), 0);
    EXPECT_GT(m.memory_bandwidth.value(), 0);
    EXPECT_GE(m.fragmentation, 0);
    EXPECT_GE(m.outside_allocator.value(), 0);
    ASSERT_FALSE(m.tiers.empty());
    ASSERT_LE(m.tiers.size(), static_cast<std::size_t>(kMaxTiers));
    int devices = 0;
    for (const Tier& tier : m.tiers) {
      EXPECT_FALSE(tier.name.empty());
      EXPECT_GE(tier.devices, devices) << "a tier holds the one before it";
      EXPECT_GT(tier.bandwidth.value(), 0);
      EXPECT_GE(tier.latency.value(), 0);
      EXPECT_GE(tier.ports, 1);
      devices = tier.devices;
    }
    EXPECT_GE(m.tiers.back().devices, m.devices) << "the last tier holds all";
    EXPECT_FALSE(hardware.Constants().empty());
    for (const Constant& constant : hardware.Constants())
      EXPECT_FALSE(constant.source.empty()) << constant.name;
  });
}

TEST(HardwareLaws, MoreWorkIsNeverFasterAndNothingBeatsThePeak) {
  EachMachine([](const Hardware& hardware) {
    Random random(5);
    const double peak = hardware.machine().peak.value(),
                 bandwidth = hardware.machine().memory_bandwidth.value();
    for (const OpKind kind : kKinds) {
      for (int i = 0; i < 300; ++i) {
        const OpShape shape = RandomShape(random, kind);
        const double seconds = hardware.OpTime(shape).value();
        const std::string text =
            absl::StrCat(Name(kind), " of ", shape.m, " x ", shape.n, " x ", shape.k, ", ",
                         shape.flops, " FLOP, ", shape.bytes, " B, ", Name(shape.phase));
        ASSERT_TRUE(std::isfinite(seconds)) << text;
        ASSERT_GE(seconds, 0) << text;
        ASSERT_GE(seconds * peak * (1 + 1e-12), shape.flops) << text;
        ASSERT_GE(seconds * bandwidth * (1 + 1e-12), shape.bytes) << text;
        OpShape more = shape;
        more.flops *= random.Between(1.0, 3.0);
        ASSERT_GE(hardware.OpTime(more).value(), seconds) << text;
        more = shape;
        more.bytes *= random.Between(1.0, 3.0);
        ASSERT_GE(hardware.OpTime(more).value(), seconds) << text;
      }
    }
  });
}

TEST(HardwareLaws, NothingTakesNoTimeOrAtMostALaunch) {
  EachMachine([](const Hardware& hardware) {
    for (const OpKind kind : kKinds) {
      OpShape shape;
      shape.kind = kind;
      shape.flops = shape.bytes = 0;
      EXPECT_LT(hardware.OpTime(shape).value(), 1e-4) << Name(kind);
    }
    OpShape lump;
    lump.kind = OpKind::kLump;
    EXPECT_EQ(hardware.OpTime(lump).value(), 0)
        << "the classroom's lumps cost nothing of their own";
  });
}

}  // namespace
}  // namespace shardlab
