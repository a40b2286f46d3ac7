// What the exporter says of itself, and of its own example. What its files mean is the matter of
// tests/exports.

#include "export_fsdp.h"

#include <gtest/gtest.h>

#include "support/example_export.h"

namespace shardlab::export_fsdp {
namespace {

TEST(ExportFsdp, WrapsEachBlockThenTheRoot) {
  const ExampleExport example = ExportExample("fsdp", {"precision.recipe=fsdp-mixed"});
  EXPECT_TRUE(example.diagnostics.empty());
  EXPECT_EQ(example.exported.version, "2.6.0");
  ASSERT_EQ(example.exported.files.size(), 1u);
  std::vector<std::string> missing;
  EXPECT_EQ(ExportedLines(example.exported, {"layers:", "fully_shard("}, &missing),
            "for layer in layers:\n    fully_shard(layer, mesh=mesh, mp_policy=policy, **rest)\n"
            "fully_shard(model, mesh=mesh, mp_policy=policy, **rest)");
}

TEST(ExportFsdp, HasNoTensorOrPipelineDegree) {
  const ExampleExport example = ExportExample(
      "fsdp", {"precision.recipe=fsdp-mixed", "strategy.tensor.degree=8", "schedule.degree=2"});
  ASSERT_EQ(example.diagnostics.all().size(), 2u);
  for (const Diagnostic& d : example.diagnostics.all()) EXPECT_EQ(d.severity, Severity::kError);
}

}  // namespace
}  // namespace shardlab::export_fsdp
