// What the exporter says of itself, and of its own example. What its files mean is the matter of
// tests/exports.

#include "export_megatron.h"

#include <gtest/gtest.h>

#include "support/example_export.h"

namespace shardlab::export_megatron {
namespace {

TEST(ExportMegatron, OneScriptInTheSpellingOfARelease) {
  const ExampleExport example = ExportExample("megatron", {});
  EXPECT_TRUE(example.diagnostics.empty());
  EXPECT_EQ(example.exported.framework, "Megatron-LM");
  EXPECT_EQ(example.exported.version, "core_v0.13.0");
  ASSERT_EQ(example.exported.files.size(), 1u);
  std::vector<std::string> missing;
  // The flags that the course names for this plan.
  EXPECT_EQ(ExportedLines(example.exported,
                          {"--tensor-model", "--pipeline-model", "--use-dist", "--grad-reduce"},
                          &missing),
            "--tensor-model-parallel-size 8\n--pipeline-model-parallel-size 2\n"
            "--use-distributed-optimizer\n--grad-reduce-in-bf16");
  EXPECT_TRUE(missing.empty());
}

TEST(ExportMegatron, ZeRO3IsRefusedAtItsLine) {
  const ExampleExport example = ExportExample("megatron", {"strategy.zero.stage=3"});
  ASSERT_EQ(example.diagnostics.all().size(), 1u);
  EXPECT_EQ(example.diagnostics.all()[0].place.key, "strategy.zero.stage");
  EXPECT_FALSE(example.diagnostics.all()[0].hint.empty());
  EXPECT_TRUE(example.exported.files.empty());
}

}  // namespace
}  // namespace shardlab::export_megatron
