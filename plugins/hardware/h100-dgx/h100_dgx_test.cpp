#include "h100_dgx.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardlab::h100_dgx {
namespace {

// Stands for a scenario: sets members through the visitor as a reader would.
class Setter final : public ParameterVisitor {
 public:
  Setter(std::string name, double value) : name_(std::move(name)), value_(value) {}
  void Boolean(const Parameter&, bool*) override {}
  void Integer(const Parameter& p, int* v) override {
    if (p.name == name_) *v = static_cast<int>(value_);
  }
  void Number(const Parameter& p, double* v) override {
    if (p.name == name_) *v = value_;
  }
  void Text(const Parameter&, std::string*) override {}
  void Amount(const Parameter& p, Unit, double* v) override {
    if (p.name == name_) *v = value_;
  }
  void Integers(const Parameter&, std::vector<int>*) override {}
  void IntegerOr(const Parameter&, const std::string&, int*) override {}
  void Raw(const Parameter&, Value*) override {}

 private:
  std::string name_;
  double value_;
};

struct World {
  AccountingRules rules;
  Precision precision;
  Diagnostics diagnostics;
  H100Dgx machine;
  std::set<std::string> given;

  explicit World(bool nominal) { rules.facts["hardware.nominal_memory"] = nominal; }
  World& Set(const std::string& name, double value) {
    Setter setter(name, value);
    machine.Visit(setter);
    given.insert(name);
    return *this;
  }
  H100Dgx& Init() {
    InitContext context;
    context.rules = &rules;
    context.precision = &precision;
    context.place_of = [](const std::string& name) {
      return Place{.file = "a.toml", .line = 1, .column = 1, .key = name};
    };
    context.is_given = [this](const std::string& name) { return given.count(name) > 0; };
    context.diagnostics = &diagnostics;
    machine.Init(context);
    return machine;
  }
};

OpShape Product(double m, double n, double k, Phase phase = Phase::kForward) {
  return {.kind = OpKind::kProduct,
          .phase = phase,
          .m = m,
          .n = n,
          .k = k,
          .flops = 2 * m * n * k,
          .bytes = 2 * (m * n + m * k + n * k)};
}

TEST(H100Dgx, MachineOfTheTextbook) {
  World world(true);
  const Machine& m = world.Init().machine();
  EXPECT_EQ(m.devices, 32);
  EXPECT_EQ(m.memory.value(), 80e9);
  EXPECT_EQ(m.outside_allocator.value(), 0);
  EXPECT_EQ(m.fragmentation, 0);
  ASSERT_EQ(m.tiers.size(), 2u);
  EXPECT_EQ(m.tiers[0].devices, 8);
  EXPECT_EQ(m.tiers[0].bandwidth.value(), 450e9);
  EXPECT_EQ(m.tiers[1].devices, 32);
  EXPECT_EQ(m.tiers[1].bandwidth.value(), 50e9);
  EXPECT_EQ(m.peak.value(), 989e12);
  EXPECT_TRUE(world.diagnostics.empty());
}

TEST(H100Dgx, MachineOfTheOperatorAccounting) {
  World world(false);
  const Machine& m = world.Init().machine();
  EXPECT_EQ(m.memory.value(), 81559.0 * 1024 * 1024);
  EXPECT_GT(m.outside_allocator.value(), 1e9);
  EXPECT_GT(m.fragmentation, 0);
}

TEST(H100Dgx, StatedZeroIsNotAutomatic) {
  World world(false);
  world.Set("overhead", 0).Set("fragmentation", 0);
  EXPECT_EQ(world.Init().machine().outside_allocator.value(), 0);
  EXPECT_EQ(world.machine.machine().fragmentation, 0);
}

TEST(H100Dgx, DevicesOverrideNodes) {
  World four(true);
  EXPECT_EQ(four.Set("devices", 4).Init().machine().devices, 4);
  EXPECT_EQ(four.machine.machine().tiers.size(), 2u);
  World agree(true);
  agree.Set("devices", 24).Set("nodes", 3).Init();
  EXPECT_TRUE(agree.diagnostics.empty());
  World clash(true);
  clash.Set("devices", 24).Set("nodes", 4).Init();
  ASSERT_TRUE(clash.diagnostics.HasErrors());
  EXPECT_EQ(clash.diagnostics.all()[0].place.key, "devices");
}

TEST(H100Dgx, EfficiencyIsIgnoredWithAWarningWhereOpsArePriced) {
  World world(false);
  world.Set("efficiency", 0.4).Init();
  ASSERT_EQ(world.diagnostics.all().size(), 1u);
  EXPECT_EQ(world.diagnostics.all()[0].severity, Severity::kWarning);
  World textbook(true);
  textbook.Set("efficiency", 0.4).Init();
  EXPECT_TRUE(textbook.diagnostics.empty());
}

TEST(H100Dgx, ClassroomCompute) {
  World world(true);
  const OpShape work{.kind = OpKind::kWork, .flops = 989e12, .tokens = 512};
  EXPECT_DOUBLE_EQ(world.Init().OpTime(work).value(), 2.0);
  World curve(true);
  curve.Set("efficiency_half_tokens", 512);
  EXPECT_DOUBLE_EQ(curve.Init().OpTime(work).value(), 4.0);
  EXPECT_EQ(curve.machine.OpTime({.kind = OpKind::kLump, .flops = 1e15}).value(), 0);
}

TEST(H100Dgx, ProductsStayUnderTheRecordAndLargeOnesNearWhatIsSustained) {
  World world(false);
  const H100Dgx& h = world.Init();
  for (double m : {1024., 2048., 4096., 8192.}) {
    for (double n : {512., 1000., 3584., 7168., 28672.}) {
      for (double k : {64., 1024., 8192.}) {
        const OpShape shape = Product(m, n, k);
        EXPECT_LT(shape.flops / h.OpTime(shape).value(), 794.5e12);
      }
    }
  }
  const OpShape large = Product(8192, 8192, 8192);
  EXPECT_GT(large.flops / h.OpTime(large).value(), 0.95 * 0.83 * 794.5e12);
}

TEST(H100Dgx, TilesWavesAndInnerDimensionCost) {
  World world(false);
  const H100Dgx& h = world.Init();
  const auto rate = [&](const OpShape& s) { return s.flops / h.OpTime(s).value(); };
  // 132 tiles fill one wave; a 133rd opens another.
  EXPECT_GT(rate(Product(128 * 132, 256, 8192)), rate(Product(128 * 133, 256, 8192)));
  EXPECT_GT(rate(Product(8192, 8192, 8192)), rate(Product(8192, 8192, 256)));
  EXPECT_GT(rate(Product(8192, 8192, 8192)),
            rate(Product(8192, 8192, 8192, Phase::kWeightGradient)));
  // A cut of one tile costs as much as the whole tile.
  EXPECT_DOUBLE_EQ(h.OpTime(Product(4096, 129, 8192)).value(),
                   h.OpTime(Product(4096, 250, 8192)).value());
}

TEST(H100Dgx, TimeGrowsWithWork) {
  World world(false);
  const H100Dgx& h = world.Init();
  double before = 0;
  for (double m = 1; m < 40000; m += 97) {
    const double t = h.OpTime(Product(m, 3000, 4096)).value();
    EXPECT_GE(t, before * (1 - 1e-12));
    before = t;
  }
  for (const OpKind kind : {OpKind::kAttention, OpKind::kNorm, OpKind::kProduct, OpKind::kWork}) {
    const OpShape small{.kind = kind, .m = 4096, .n = 64, .k = 64, .flops = 1e9, .bytes = 1e6};
    OpShape more = small;
    more.flops *= 2;
    EXPECT_GE(h.OpTime(more).value(), h.OpTime(small).value());
    more.bytes *= 1000;
    EXPECT_GE(h.OpTime(more).value(), h.OpTime(small).value());
  }
}

// FlashAttention-3, figure 5: batch x length = 16k tokens, 16 heads of 128, causal; cuDNN reaches
// 518 at 4k.
TEST(H100Dgx, AttentionFollowsThePublishedCurve) {
  World world(false);
  const H100Dgx& h = world.Init();
  const double published[][2] = {{512, 315},  {1024, 410}, {2048, 484},
                                 {4096, 518}, {8192, 529}, {16384, 539}};
  for (const auto& [length, tflops] : published) {
    const double m = 16384 * 16 * 128;
    const OpShape shape{
        .kind = OpKind::kAttention, .m = m, .flops = 2 * length * m, .bytes = 4 * 2 * m};
    EXPECT_NEAR(shape.flops / h.OpTime(shape).value() / 1e12, tflops, 0.1 * tflops) << length;
  }
}

TEST(H100Dgx, Fp8DoublesThePeak) {
  World world(false);
  world.precision.compute = Dtype::kFp8;
  const H100Dgx& h = world.Init();
  EXPECT_EQ(h.machine().peak.value(), 1979e12);
  const OpShape large = Product(8192, 8192, 8192);
  EXPECT_GT(large.flops / h.OpTime(large).value(), 1000e12);
}

TEST(H100Dgx, EveryConstantHasASource) {
  World world(false);
  for (const Constant& c : world.Init().Constants()) EXPECT_FALSE(c.source.empty()) << c.name;
}

}  // namespace
}  // namespace shardlab::h100_dgx
