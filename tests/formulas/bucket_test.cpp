// What do buckets of gradients cost, and what do they change?

#include <algorithm>

#include "core/simulate.h"
#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 256, kVocabulary = 512, kLayers = 4;
constexpr double kLayer = 4 * kHidden * kHidden + 3 * kHidden * 1024 + 2 * kHidden;
constexpr double kAll = kLayers * kLayer + 2 * kVocabulary * kHidden + kHidden;
constexpr const char* kWhole = "bucket_size = 500000000\n";  // DeepSpeed's default, in elements

std::string Model(const std::string& zero, const std::string& rest = "") {
  return SmallLlama("[strategy.zero]\n" + zero + rest, 2, 32);
}

struct Sum {
  double count = 0, bytes = 0, seconds = 0, exposed = 0;
};

// Of what replicas reduce, or restore after the update.
Sum SumOf(const Planned& plan, const std::string& phase) {
  Sum sum;
  for (const auto& row : plan.document["communication"]) {
    if (row["axis"] != "data" || row["phase"] != phase || row["declared"]) continue;
    sum.count += row["count"].get<double>();
    sum.bytes += row["bytes"].get<double>();
    sum.seconds += row["seconds"].get<double>();
    sum.exposed += row["exposed_seconds"].get<double>();
  }
  return sum;
}

double Step(const Planned& plan) { return plan.document["time"]["step_seconds"].get<double>(); }

TEST(Buckets, OneThatHoldsEverythingIsOneCallBehindTheBackwardPass) {
  const Planned plan = PlanText(Model(kWhole)), by_layer = PlanText(Model(""));
  for (const char* phase : {"gradient reduction", "weight restore"}) {
    const Sum sum = SumOf(plan, phase);
    EXPECT_NEAR(sum.count, 1, 1e-9) << phase;
    EXPECT_NEAR(sum.exposed, sum.seconds, 1e-9 * sum.seconds) << phase;
    const Sum layers = SumOf(by_layer, phase);
    EXPECT_EQ(layers.count, kLayers + 2) << phase << ": each layer, the embedding and the head";
    // Rows are rounded to the byte.
    EXPECT_NEAR(sum.bytes, layers.bytes, 4) << phase;
    EXPECT_LT(sum.seconds, layers.seconds) << phase << ": one latency";
  }
}

// Each gradient is sent once in fp32, 7/8 of it by a rank, in calls of so many elements.
TEST(Buckets, AsManyCallsAsBucketsAreFilled) {
  for (const int size : {1 << 14, 1 << 18, 1 << 20}) {
    const Planned plan = PlanText(Model("bucket_size = " + std::to_string(size) + "\n"));
    const Sum sum = SumOf(plan, "gradient reduction");
    EXPECT_NEAR(sum.count, kAll / size, 1e-9 * sum.count) << size;
    EXPECT_NEAR(sum.bytes, kAll * 4 * 7 / 8, 4) << size;
    EXPECT_EQ(plan.Bytes(0, "transient"), size * 4.0) << size << ": gradients are copied together";
  }
}

TEST(Buckets, LargerOnesPayFewerLatencies) {
  double before = 1e9;
  for (int size = 1 << 12; size <= 1 << 24; size *= 4) {
    const Planned plan = PlanText(Model("bucket_size = " + std::to_string(size) + "\n"));
    const double seconds = SumOf(plan, "gradient reduction").seconds;
    EXPECT_LE(seconds, before * (1 + 1e-12)) << size;
    before = seconds;
  }
}

// What hides ends a bucket behind the last backward pass: of many less stays to be seen than of
// one, as long as the pass covers the others and bytes, not latencies, take the time.
TEST(Buckets, TheLastOneIsSeen) {
  const auto wide = [](const std::string& zero) {
    std::string text = Model(zero);
    const std::string narrow = "hidden = 256\nheads = 8\nffn = 1024\n";
    return text.replace(text.find(narrow), narrow.size(),
                        "hidden = 4096\nheads = 32\nffn = 8192\n");
  };
  const Planned small = PlanText(wide("bucket_size = 67108864\n")),
                large = PlanText(wide("bucket_size = 1073741824\n"));
  EXPECT_NEAR(SumOf(large, "gradient reduction").count, 1, 1e-9);
  EXPECT_LT(SumOf(small, "gradient reduction").exposed, SumOf(large, "gradient reduction").exposed);
}

TEST(Buckets, MemoryIsNeverMoreThanThereIs) {
  EXPECT_NEAR(PlanText(Model(kWhole)).Bytes(0, "transient"), 4 * kAll, 1);
  EXPECT_EQ(PlanText(Model("")).Bytes(0, "transient"), 0);
}

// Megatron-Core's gradients lie in one buffer: a bucket is a part of it.
TEST(Buckets, WhereGradientsLieSideBySideNothingIsCopied) {
  const std::string nemo = "[software]\npreset = \"nemo\"\n";
  EXPECT_EQ(PlanText(Model(kWhole, nemo)).Bytes(0, "transient"),
            PlanText(Model("", nemo)).Bytes(0, "transient"));
}

// Stage 2 reduces after each micro-batch: whole gradients of a layer in bf16, and the bucket in
// fp32 to which they are copied.
TEST(Buckets, StageTwoFillsThemInEveryMicroBatch) {
  const Planned plan = PlanText(Model("stage = 2\nbucket_size = 1048576\n"));
  EXPECT_EQ(plan.Bytes(0, "transient"), 2 * kLayer + 4 * 1048576);
  const Sum sum = SumOf(plan, "gradient reduction");
  EXPECT_NEAR(sum.count, 2 * kAll / 1048576, 1e-9 * sum.count) << "two micro-batches a rank";
}

// Evaluate adds up what Simulate plays; each works its calls out for itself.
TEST(Buckets, PlayedTheStepTakesAsLong) {
  const std::string pipeline = "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 2\n";
  for (const char* zero : {"", "stage = 2\n"}) {
    for (const char* size : {"bucket_size = 65536\n", "bucket_size = 3000000\n", kWhole}) {
      for (const std::string& rest : {std::string(), pipeline}) {
        const Planned plan = PlanText(Model(std::string(zero) + size, rest));
        const Composition& c = *plan.planned.composed.composition;
        const auto& order = plan.planned.order;
        const Simulation played = Simulate(c, c.plan, order ? &*order : nullptr, {});
        EXPECT_NEAR(played.makespan, Step(plan), 0.02 * Step(plan)) << zero << size << rest;
        for (std::size_t r = 0; r < played.ranks.size(); ++r) {
          EXPECT_NEAR(played.ranks[r].peak, plan.rank(r)["total_bytes"].get<double>(), 2)
              << zero << size << rest;
        }
      }
    }
  }
}

TEST(Buckets, StageThreeHasNone) {
  const Planned plan = PlanText(Model(std::string("stage = 3\n") + kWhole), /*refused=*/true);
  EXPECT_NE(plan.Said().find("stage 3 gathers and reduces block by block"), std::string::npos);
}

TEST(Buckets, StageZeroIsToldThatItHasNone) {
  const Planned plan = PlanText(Model(std::string("stage = 0\n") + kWhole));
  EXPECT_NE(plan.Said().find("stage 0 shards nothing"), std::string::npos);
}

}  // namespace
}  // namespace shardlab
