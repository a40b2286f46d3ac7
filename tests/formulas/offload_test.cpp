// What does state in the memory of the host take there, save on the device, and cost in time?

#include <algorithm>
#include <cmath>

#include "formulas/planned.h"

namespace shardlab {
namespace {

constexpr double kLayer = 4 * 256 * 256 + 3 * 256 * 1024 + 2 * 256;
constexpr double kParameters = 4 * kLayer + 2 * 512 * 256 + 256;
constexpr double kRanks = 8;
// The machine's constants, as `shardlab plan --format json` names them under provenance.
constexpr double kLink = 55e9, kStream = 35e9;

std::string Small(const std::string& rest) { return SmallLlama(rest, 1); }

double Device(const Planned& plan) {
  return plan.Bytes(0, "parameters") + plan.Bytes(0, "gradients") + plan.Bytes(0, "optimizer");
}

double HostSeconds(const Planned& plan, const std::string& phase) {
  double seconds = 0;
  for (const auto& row : plan.document["communication"]) {
    if (row["axis"] == "host" && row["phase"] == phase) seconds += row["seconds"].get<double>();
  }
  return seconds;
}

// fp32 weights and gradients, two fp32 moments.
TEST(Offload, AllOfFsdpMovesAllStateToTheHost) {
  const Planned none = PlanText(Small("[strategy.fsdp]\n")),
                all = PlanText(Small("[strategy.fsdp]\noffload = \"all\"\n"));
  EXPECT_EQ(Device(all), 0);
  EXPECT_EQ(all.document["memory"]["host"]["peak_bytes"], Device(none));
  EXPECT_NEAR(Device(none), 16 * kParameters / kRanks, 8);
  EXPECT_EQ(none.document["memory"]["host"]["peak_bytes"], 0);
  EXPECT_EQ(all.document["plan"]["offload"], "all");
  // What is gathered for use is on the device as before.
  EXPECT_EQ(all.Bytes(0, "gathered"), none.Bytes(0, "gathered"));
}

// The host has the moments, and pinned copies of gradient and weight: 8 + 4 + 4.
TEST(Offload, TheOptimizerTakesItsStateAndCopiesOfWhatItReadsAndWrites) {
  const Planned none = PlanText(Small("[strategy.fsdp]\n")),
                plan = PlanText(Small("[strategy.fsdp]\noffload = \"optimizer\"\n"));
  EXPECT_EQ(plan.Bytes(0, "optimizer"), 0);
  EXPECT_EQ(plan.Bytes(0, "parameters"), none.Bytes(0, "parameters"));
  EXPECT_NEAR(plan.rank(0)["host_bytes"].get<double>(), 16 * kParameters / kRanks, 8);
}

// A step: gradients down and weights up once, 8 + 8 + 4 + 4 bytes in the host's memory each.
TEST(Offload, TheStepOfAnOptimizerOnTheHost) {
  const Planned plan = PlanText(Small("[strategy.fsdp]\noffload = \"optimizer\"\n"));
  const double shard = kParameters / kRanks;
  EXPECT_NEAR(HostSeconds(plan, "gradient reduction"), 4 * shard / kLink, 1e-12);
  EXPECT_NEAR(HostSeconds(plan, "weight restore"), 4 * shard / kLink, 1e-12);
  EXPECT_NEAR(plan.document["time"]["exposed"]["host_seconds"].get<double>(), 8 * shard / kLink,
              1e-12);
  EXPECT_NEAR(plan.document["time"]["optimizer_seconds"].get<double>(), 24 * shard / kStream,
              1e-12);
}

// Every micro-batch: weights up in the forward and again in the backward pass, gradients down.
TEST(Offload, AllIsCopiedInEveryMicroBatch) {
  const Planned plan = PlanText(Small("[strategy.fsdp]\noffload = \"all\"\n"));
  const double shard = kParameters / kRanks, micro_batches = 2;
  // The head is used in one pass directly after the other, and still gathered twice.
  EXPECT_NEAR(HostSeconds(plan, "forward"), micro_batches * 4 * shard / kLink, 1e-9);
  const double again = HostSeconds(plan, "backward") + HostSeconds(plan, "weight gradient");
  EXPECT_LE(again, micro_batches * 4 * shard / kLink + 1e-9);
  EXPECT_GE(again, micro_batches * 4 * (4 * kLayer) / kRanks / kLink - 1e-9);
  EXPECT_NEAR(HostSeconds(plan, "gradient reduction"), micro_batches * 4 * shard / kLink, 1e-9);
  EXPECT_NEAR(HostSeconds(plan, "weight restore"), 0, 0);
}

TEST(Offload, OneDeviceHasAHostToo) {
  std::string text = Small("[strategy.fsdp]\noffload = \"all\"\n");
  text.replace(text.find("nodes = 1"), 9, "devices = 1");
  const Planned plan = PlanText(text);
  EXPECT_EQ(Device(plan), 0);
  EXPECT_EQ(plan.rank(0)["host_bytes"], 16 * kParameters);
  EXPECT_GT(plan.Bytes(0, "gathered"), 0);
  EXPECT_TRUE(plan.document["time"]["approximate"]);
}

TEST(Offload, ZeroKeepsTheMasterWeightsThere) {
  const Planned plan = PlanText(Small("[strategy.zero]\nstage = 1\noffload = \"optimizer\"\n"));
  // megatron-bf16: master and moments 12, pinned gradient 4 and weight 2.
  EXPECT_NEAR(plan.rank(0)["host_bytes"].get<double>(), 18 * kParameters / kRanks, 8);
  EXPECT_EQ(plan.Bytes(0, "optimizer"), 0);
}

TEST(Offload, AHostThatIsTooSmallDoesNotFit) {
  const Planned plan = PlanText(R"(
[model]
plugin = "llama"
preset = "llama3.1-405b"
[hardware]
plugin = "h100-dgx"
nodes = 2
[training]
sequence_length = 4096
global_batch_size = 16
[strategy.fsdp]
offload = "all"
)");
  const auto& memory = plan.document["memory"];
  EXPECT_FALSE(memory["host"]["fits"]);
  EXPECT_FALSE(memory["fits"]);
  EXPECT_EQ(memory["verdict"], "does_not_fit");
  EXPECT_GT(memory["host"]["peak_bytes"], memory["host"]["capacity_bytes"]);
}

TEST(Offload, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(PlanText(Small("[strategy.zero]\nstage = 1\noffload = \"all\"\n"), true).Said(),
              testing::HasSubstr("stage = 3"));
  EXPECT_THAT(
      PlanText("accounting = \"textbook\"\n" + Small("[strategy.fsdp]\noffload = \"all\"\n"), true)
          .Said(),
      testing::HasSubstr("no memory of the host"));
}

}  // namespace
}  // namespace shardlab
