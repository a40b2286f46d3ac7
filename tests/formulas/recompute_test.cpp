// What do layers keep when only some of them are recomputed?

#include "formulas/planned.h"

namespace shardlab {
namespace {

std::string Model(const std::string& checkpointing, const std::string& rest = "") {
  return R"(
[model]
plugin = "llama"
layers = 16
hidden = 256
heads = 8
ffn = 1024
vocabulary = 512

[hardware]
plugin = "h100-dgx"
nodes = 1

[training]
sequence_length = 512
micro_batch_size = 1
global_batch_size = 64

[strategy.checkpointing]
)" + checkpointing +
         rest;
}

double Kept(const std::string& checkpointing, std::size_t rank = 0, const std::string& rest = "") {
  return PlanText(Model(checkpointing, rest)).Bytes(rank, "activations");
}

constexpr double kInput = 2.0 * 512 * 256;  // of a layer

// A layer that keeps all of it, and what ends of the model keep, from the two plans with all and
// with no layer recomputed. One layer's worth is always alive: while it is replayed.
TEST(Recompute, EveryKthLayerKeepsItsInputAlone) {
  const double none = Kept("mode = \"none\"\n"), all = Kept("mode = \"full\"\n");
  const double saved = none - all;  // 16 layers but for their inputs, less the one that is replayed
  const double inner = saved / 15;  // what a layer keeps beside its input
  for (const int k : {2, 4, 8}) {
    const int replayed = 16 / k;
    EXPECT_NEAR(Kept("mode = \"full\"\nstride = " + std::to_string(k) + "\n"),
                none - replayed * inner + inner, 1)
        << k;
  }
}

TEST(Recompute, SomeLayersOfEachPipelineRank) {
  const std::string pipeline = "[schedule]\nplugin = \"pipeline-1f1b\"\ndegree = 4\n";
  const double in_flight = 3;  // on rank 1 of 4
  const double none = Kept("mode = \"none\"\n", 1, pipeline),
               all = Kept("mode = \"full\"\n", 1, pipeline);
  const double layer = none / in_flight / 4;
  EXPECT_NEAR(all, in_flight * 4 * kInput + layer - kInput, 1);
  for (const int n : {1, 2, 3, 4, 9}) {
    const int replayed = std::min(n, 4);
    EXPECT_NEAR(Kept("mode = \"full\"\nlayers = " + std::to_string(n) + "\n", 1, pipeline),
                in_flight * (replayed * kInput + (4 - replayed) * layer) + layer - kInput, 1)
        << n;
  }
}

// With whatever schedule gives a rank two chunks.
TEST(Recompute, ChunksOfARankTakeTurns) {
  for (const std::string& name : BuiltPlugins().Names("schedule")) {
    const std::string text =
        Model("mode = \"full\"\nlayers = 3\n",
              "[schedule]\nplugin = \"" + name + "\"\ndegree = 2\nchunks = 2\n");
    Planned plan;
    const Scenario scenario = ScenarioFromText(text, "chunks.toml", {}, plan.diagnostics);
    plan.planned = PlanScenario(BuiltPlugins(), scenario, &plan.diagnostics);
    if (!plan.ok()) continue;  // one chunk a rank
    plan.document = PlanDocument(plan.planned, plan.diagnostics);
    const Composition& c = *plan.planned.composed.composition;
    const ScheduleShape shape{2, 2, c.plan.micro_batches};
    if (c.schedule->Stages(shape) < 4) continue;  // a stage held twice is dealt out alike
    std::size_t block = 0;
    while (c.edited.program.classes[block].position != StagePosition::kLayer) ++block;
    // Of the two chunks of a rank one has two layers of four, the other one.
    for (int rank = 0; rank < 2; ++rank) {
      const auto stages = plan.document["memory"]["ranks"][static_cast<std::size_t>(rank)]["stages"]
                              .get<std::vector<int>>();
      for (std::size_t chunk = 0; chunk < 2; ++chunk) {
        const double replayed = chunk == 0 ? 2 : 1;
        EXPECT_EQ(LayersOn(c, c.plan, stages[chunk], block), replayed) << name;
        EXPECT_EQ(LayersOn(c, c.plan, stages[chunk], block + 1), 4 - replayed) << name;
      }
    }
  }
}

TEST(Recompute, TimeIsTheShareOfTheLayers) {
  const auto seconds = [](const std::string& how) {
    return PlanText(Model(how)).document["time"]["recompute_seconds"].get<double>();
  };
  const double all = seconds("mode = \"full\"\n");
  EXPECT_GT(all, 0);
  EXPECT_NEAR(seconds("mode = \"full\"\nstride = 4\n"), all / 4, 1e-9 * all);
  EXPECT_NEAR(seconds("mode = \"full\"\nlayers = 12\n"), all * 12 / 16, 1e-9 * all);
}

TEST(Recompute, StateAndTrafficAreThoseOfAllLayers) {
  const std::string rest =
      "[strategy.fsdp]\n[strategy.tensor]\ndegree = 2\nsequence_parallel = true\n";
  const Planned all = PlanText(Model("mode = \"full\"\n", rest)),
                some = PlanText(Model("mode = \"full\"\nlayers = 5\n", rest)),
                none = PlanText(Model("mode = \"none\"\n", rest));
  for (const char* account : {"parameters", "gradients", "optimizer", "gathered", "transient"})
    EXPECT_EQ(some.Bytes(0, account), all.Bytes(0, account)) << account;
  const auto sent = [](const Planned& plan) {
    double bytes = 0;
    for (const auto& row : plan.document["communication"]) bytes += row["bytes"].get<double>();
    return bytes;
  };
  EXPECT_NEAR(sent(some), sent(none) + 5.0 / 16 * (sent(all) - sent(none)), 1e-6 * sent(all));
}

TEST(Recompute, TheDocumentSaysWhich) {
  const auto recompute = [](const std::string& how) {
    return PlanText(Model(how)).document["plan"]["recompute"];
  };
  const auto stride = recompute("mode = \"full\"\nstride = 4\n"),
             layers = recompute("mode = \"full\"\nlayers = 3\n");
  EXPECT_EQ(stride["mode"], "full");
  EXPECT_EQ(stride["stride"], 4);
  EXPECT_TRUE(stride["layers"].is_null());
  EXPECT_EQ(layers["stride"], 1);
  EXPECT_EQ(layers["layers"], 3);
  EXPECT_EQ(layers["segment"], 1);
}

TEST(Recompute, WhatContradictsItselfIsRefused) {
  const auto said = [](const std::string& how) { return PlanText(Model(how), true).Said(); };
  using testing::HasSubstr;
  EXPECT_THAT(said("mode = \"none\"\nstride = 2\n"), HasSubstr("set mode = \"full\""));
  EXPECT_THAT(said("mode = \"selective\"\nlayers = 2\n"), HasSubstr("set mode = \"full\""));
  EXPECT_THAT(said("mode = \"full\"\nlayers = 2\nstride = 2\n"), HasSubstr("leave one of them"));
  EXPECT_THAT(said("mode = \"full\"\nsegment = 2\nstride = 2\n"),
              HasSubstr("leave out stride or segment"));
  for (const char* how : {"stride = 2\n", "layers = 2\n"}) {
    const Planned plan = PlanText(
        "accounting = \"textbook\"\n" + Model(std::string("mode = \"full\"\n") + how), true);
    EXPECT_THAT(plan.Said(), HasSubstr("all layers or none"));
  }
}

}  // namespace
}  // namespace shardlab
