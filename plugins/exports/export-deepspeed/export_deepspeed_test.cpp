// What the exporter says of itself, and of its own example. What its files mean is the matter of
// tests/exports.

#include "export_deepspeed.h"

#include <gtest/gtest.h>

#include "support/example_export.h"

namespace shardlab::export_deepspeed {
namespace {

TEST(ExportDeepspeed, ConfigurationLoopAndLaunch) {
  const ExampleExport example = ExportExample("deepspeed", {});
  EXPECT_TRUE(example.diagnostics.empty());
  EXPECT_EQ(example.exported.version, "0.17.0");
  ASSERT_EQ(example.exported.files.size(), 3u);
  EXPECT_EQ(example.exported.files[0].name, "ds_config.json");
  std::vector<std::string> missing;
  // A block of Llama 3.1 70B has 855,654,400 parameters.
  EXPECT_EQ(ExportedLines(example.exported, {"_steps\":", "\"stage\":", "prefetch"}, &missing),
            "\"gradient_accumulation_steps\": 4,\n  \"stage\": 3,\n"
            "  \"stage3_prefetch_bucket_size\": 855654400,");
}

TEST(ExportDeepspeed, BucketsAreThePlans) {
  const ExampleExport example =
      ExportExample("deepspeed", {"strategy.zero.stage=2", "strategy.zero.bucket_size=500000000"});
  std::vector<std::string> missing;
  EXPECT_EQ(ExportedLines(example.exported, {"_bucket_size\":"}, &missing),
            "\"reduce_bucket_size\": 500000000,\n\"allgather_bucket_size\": 500000000");
}

TEST(ExportDeepspeed, ThePipelineEngineRefusesZeRO3) {
  const ExampleExport example = ExportExample("deepspeed", {"schedule.degree=4"});
  ASSERT_EQ(example.diagnostics.all().size(), 1u);
  EXPECT_EQ(example.diagnostics.all()[0].code, "export.unsupported");
  EXPECT_EQ(example.diagnostics.all()[0].place.key, "strategy.zero.stage");
}

}  // namespace
}  // namespace shardlab::export_deepspeed
