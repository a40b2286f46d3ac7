// What does a matrix cost that the first and the last pipeline rank both need?

#include <algorithm>

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kHidden = 256, kVocabulary = 4096, kTable = kHidden * kVocabulary;

std::string Model(bool tied, const std::string& rest) {
  return std::string(R"(
[model]
plugin = "llama"
layers = 8
hidden = 256
heads = 8
ffn = 1024
vocabulary = 4096
tied = )") +
         (tied ? "true" : "false") + R"(

[hardware]
plugin = "h100-dgx"
nodes = 2

[training]
sequence_length = 512
micro_batch_size = 1
global_batch_size = 64

)" + rest;
}

const std::string kPipeline = "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\n";

const nlohmann::ordered_json* Exchange(const Planned& plan) {
  for (const auto& row : plan.document["communication"]) {
    if (row["axis"] == "pipeline" && row["collective"] == "all-reduce") return &row;
  }
  return nullptr;
}

// Memory is that of a model with an embedding and a head of its own.
TEST(Tied, EveryRankHoldsWhatItHoldsWithoutTying) {
  for (const char* state :
       {"", "[strategy.zero]\nstage = 1\n", "[strategy.zero]\nstage = 3\n", "[strategy.fsdp]\n",
        "[strategy.tensor]\ndegree = 2\n", "[optimizer]\nplugin = \"muon\"\n"}) {
    const Planned tied = PlanText(Model(true, kPipeline + state)),
                  apart = PlanText(Model(false, kPipeline + state));
    for (std::size_t r = 0; r < 4; ++r) {
      for (const char* account : {"parameters", "gradients", "optimizer", "gathered"})
        EXPECT_NEAR(tied.Bytes(r, account), apart.Bytes(r, account), 1)
            << state << account << " of rank " << r;
    }
    EXPECT_EQ(tied.document["model"]["parameters"].get<double>() + kTable,
              apart.document["model"]["parameters"].get<double>());
  }
}

TEST(Tied, TheClassroomHoldsACopyToo) {
  const std::string classroom = "accounting = \"textbook\"\n";
  const Planned tied = PlanText(classroom + Model(true, kPipeline)),
                apart = PlanText(classroom + Model(false, kPipeline));
  for (std::size_t r = 0; r < 4; ++r)
    EXPECT_EQ(tied.rank(r)["total_bytes"], apart.rank(r)["total_bytes"]) << r;
}

// A token passes the same products whether the head's matrix is the embedding's or its own: of 8
// layers of 4 h^2 + 3 h f (q, k, v, o; gate, up, down) and the head 2 FLOPs an element and pass,
// and the causal half of attention. Norms' weights are parameters of no product: 17 of width h.
TEST(Tied, TheHeadIsMultipliedWithAllTheSame) {
  const double products = 8 * (4 * kHidden * kHidden + 3 * kHidden * 1024) + kTable,
               norms = (2 * 8 + 1) * kHidden, attention = 6 * 8 * 512 * kHidden;
  for (const bool tied : {true, false}) {
    const auto document = PlanText(Model(tied, kPipeline)).document;
    EXPECT_DOUBLE_EQ(document["throughput"]["model_flops_per_token"].get<double>(),
                     6 * (products + norms) + attention)
        << tied;
  }
}

TEST(Tied, OneRankHoldsItOnce) {
  const Planned tied = PlanText(Model(true, "")), apart = PlanText(Model(false, ""));
  EXPECT_NEAR(apart.Bytes(0, "parameters") - tied.Bytes(0, "parameters"), 2 * kTable, 1);
  EXPECT_EQ(Exchange(tied), nullptr);
}

// Megatron-LM all-reduces the fp32 main gradient between the two: n = 2 ranks send all of it once.
TEST(Tied, TheGradientIsSummedBetweenTheEnds) {
  const Planned plan = PlanText(Model(true, kPipeline + "[strategy.tensor]\ndegree = 2\n"));
  const auto* row = Exchange(plan);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ((*row)["count"], 1);
  EXPECT_EQ((*row)["group_size"], 2);
  EXPECT_EQ((*row)["bytes"], 4 * kTable / 2);
  EXPECT_TRUE((*row)["declared"]);
  EXPECT_EQ((*row)["exposed_seconds"], (*row)["seconds"]);
  EXPECT_GT((*row)["seconds"], 0);
  const Planned apart = PlanText(Model(false, kPipeline));
  EXPECT_EQ(Exchange(apart), nullptr);
}

// A schedule in V form has first and last stage on one rank, which needs one copy.
TEST(Tied, AScheduleThatBringsTheEndsTogetherNeedsNoCopy) {
  const auto names = BuiltPlugins().Names("schedule");
  for (const std::string& name : names) {
    const std::string text =
        Model(true, "[schedule]\nplugin = \"" + name + "\"\ndegree = 4\nchunks = 2\n");
    Planned plan;
    const Scenario scenario = ScenarioFromText(text, "v.toml", {}, plan.diagnostics);
    plan.planned = PlanScenario(BuiltPlugins(), scenario, &plan.diagnostics);
    if (!plan.ok()) continue;
    plan.document = PlanDocument(plan.planned, plan.diagnostics);
    const auto stages = plan.rank(0)["stages"].get<std::vector<int>>();
    const bool together = std::find(stages.begin(), stages.end(), 7) != stages.end();
    EXPECT_EQ(Exchange(plan) == nullptr, together) << name;
  }
}

}  // namespace
}  // namespace shardlab
