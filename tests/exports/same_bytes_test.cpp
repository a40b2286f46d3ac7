// Does what is exported to DeepSpeed and PyTorch mean the plan it came from? The files are read by
// each framework's own rules (its defaults of precision, its names), planned again, and every rank
// must need the same bytes and the step the same time.

#include <gtest/gtest.h>

#include <cstdint>
#include <regex>

#include "exports/same_plan.h"

namespace shardlab::exports {
namespace {

// --- DeepSpeed: the engine's rules
// --------------------------------------------------------------

Json PlanDeepspeed(const Json& first, const Exported& exported) {
  const Json config = Json::parse(exported.Text("ds_config.json"));
  const std::string train = exported.Text("train.py");
  const std::string weights = config.at("bf16").at("enabled")   ? "bf16"
                              : config.at("fp16").at("enabled") ? "fp16"
                                                                : "fp32";
  const Json& zero = config.at("zero_optimization");
  const int stage = zero.at("stage");
  const auto constants = ConstantsOf(train);
  EXPECT_EQ(std::stoll(constants.at("PARAMETERS")), first.at("model").at("parameters"));
  const bool all = zero.contains("offload_param"), part = zero.contains("offload_optimizer");
  const int degree = first.at("plan").at("pipeline");
  // The batch must be micro-batch x accumulation x replicas, or the engine does not start.
  EXPECT_EQ(config.at("train_batch_size").get<int>(),
            config.at("train_micro_batch_size_per_gpu").get<int>() *
                config.at("gradient_accumulation_steps").get<int>() *
                first.at("hardware").at("devices").get<int>() / degree);
  // Small tensors are cut too, and nothing stays gathered: else it is another plan.
  if (stage == 3) {
    EXPECT_EQ(zero.at("stage3_param_persistence_threshold"), 0);
    EXPECT_EQ(zero.at("stage3_max_reuse_distance"), 0);
  }
  Json training = first.at("resolved").at("training");
  training["sequence_length"] = std::stoll(constants.at("SEQUENCE_LENGTH"));
  training["micro_batch_size"] = config.at("train_micro_batch_size_per_gpu");
  training["global_batch_size"] = config.at("train_batch_size");
  const bool replays = train.find("gradient_checkpointing_enable()") != std::string::npos ||
                       train.find("activation_checkpoint_interval=1") != std::string::npos;
  return PlanAgain(first,
                   {{"model", first.at("resolved").at("model")},
                    {"training", training},
                    {"strategy",
                     {{"zero",
                       {{"stage", stage},
                        {"offload", all    ? "all"
                                    : part ? "optimizer"
                                           : "none"}}},
                      {"data", first.at("resolved").at("strategy").at("data")},
                      {"checkpointing", {{"mode", replays ? "full" : "none"}}}}},
                    {"schedule",
                     {{"plugin", "pipeline-1f1b"},
                      {"degree", train.find("num_stages=") == std::string::npos ? 1 : degree},
                      {"transfers", first.at("resolved").at("schedule").at("transfers")}}},
                    {"precision",
                     {{"parameters", weights},
                      {"compute", weights},
                      {"gradients", config.at("data_types").at("grad_accum_dtype")},
                      {"gradient_reduce", config.at("communication_data_type")},
                      {"master", weights == "fp32" ? "none" : "fp32"},
                      {"moments", "fp32"}}}});
}

TEST(SameBytes, DeepspeedsConfiguration) {
  const char* scenario = "lessons/18-deepspeed-config/scenario.toml";
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"strategy.zero.stage=2"},
      {"strategy.zero.stage=1", "strategy.checkpointing.mode=none"},
      {"strategy.zero.stage=0", "precision.gradients=fp32", "precision.gradient_reduce=fp32"},
      {"accounting=operator"},
      {"accounting=operator", "strategy.zero.offload=all"},
      {"accounting=operator", "strategy.zero.stage=1", "strategy.zero.offload=optimizer"},
      {"strategy.zero.stage=1", "schedule.degree=4"},
      {"strategy.zero.stage=1", "training.global_batch_size=256", "training.micro_batch_size=2"},
  };
  for (const std::vector<std::string>& sets : cases) {
    SCOPED_TRACE(::testing::PrintToString(sets));
    const Exported exported = Export("deepspeed", scenario, sets);
    ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
    const Json first = Plan(scenario, sets);
    ExpectSamePlan(first, PlanDeepspeed(first, exported));
  }
}

// --- PyTorch: fully_shard's rules
// ---------------------------------------------------------------

Json PlanFsdp(const Json& first, const std::string& python) {
  const auto constants = ConstantsOf(python);
  const auto dtype = [&](const char* name) {
    const std::string torch = constants.at(name);
    return torch == "torch.bfloat16" ? "bf16" : torch == "torch.float16" ? "fp16" : "fp32";
  };
  // (shard,) or (replicate, shard)
  std::smatch mesh;
  EXPECT_TRUE(std::regex_search(constants.at("mesh"), mesh,
                                std::regex("\\(\"cuda\", \\(([0-9]+), ?([0-9]*)\\)")))
      << constants.at("mesh");
  const std::int64_t shard = std::stoll(mesh[2].length() > 0 ? mesh[2] : mesh[1]);
  Json fsdp = {{"shard", shard},
               {"reshard_after_forward",
                constants.at("rest").find("\"reshard_after_forward\": True") != std::string::npos}};
  std::smatch unit;
  if (std::regex_search(python, unit, std::regex("first : first \\+ ([0-9]+)")))
    fsdp["blocks_per_unit"] = std::stoll(unit[1]);
  if (std::regex_search(python, unit, std::regex("i \\+ 1 : i \\+ 1 \\+ ([0-9]+)")))
    fsdp["prefetch"] = std::stoll(unit[1]);
  if (python.find("CPUOffloadPolicy(") != std::string::npos) fsdp["offload"] = "all";
  const bool replays = python.find("= checkpoint_wrapper(") != std::string::npos;
  Json training = first.at("resolved").at("training");
  training["sequence_length"] = std::stoll(constants.at("SEQUENCE_LENGTH"));
  training["micro_batch_size"] = std::stoll(constants.at("MICRO_BATCH"));
  training["global_batch_size"] = std::stoll(constants.at("MICRO_BATCH")) *
                                  std::stoll(constants.at("MICRO_BATCHES")) *
                                  first.at("hardware").at("devices").get<std::int64_t>();
  EXPECT_EQ(std::stoll(constants.at("PARAMETERS")), first.at("model").at("parameters"));
  return PlanAgain(first, {{"model", first.at("resolved").at("model")},
                           {"training", training},
                           {"strategy",
                            {{"fsdp", fsdp},
                             {"data", first.at("resolved").at("strategy").at("data")},
                             {"checkpointing", {{"mode", replays ? "full" : "none"}}}}},
                           {"schedule", {{"plugin", "pipeline-1f1b"}}},
                           {"precision",
                            {{"parameters", dtype("KEPT")},
                             {"compute", dtype("GATHERED")},
                             {"gradients", dtype("KEPT")},
                             {"gradient_reduce", dtype("REDUCED")},
                             {"master", "none"},
                             {"moments", dtype("KEPT")}}}});
}

TEST(SameBytes, FullyShardsCode) {
  const std::string hybrid = "scenarios/70b-hybrid-shard-128-gpus.toml",
                    small = "scenarios/7b-fsdp-8-gpus.toml";
  struct Case {
    std::string scenario;
    std::vector<std::string> sets;
  };
  const std::vector<Case> cases = {
      {hybrid, {}},
      {hybrid, {"precision.recipe=pure-bf16"}},
      {small, {"precision.recipe=fsdp-mixed"}},
      {small, {"precision.recipe=fsdp-mixed", "strategy.fsdp.blocks_per_unit=2"}},
      {small, {"precision.recipe=fsdp-mixed", "strategy.fsdp.reshard_after_forward=false"}},
      {small, {"precision.recipe=fsdp-mixed", "strategy.fsdp.offload=all"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.scenario + ::testing::PrintToString(c.sets));
    const Exported exported = Export("fsdp", c.scenario, c.sets);
    ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
    const Json first = Plan(c.scenario, c.sets);
    ExpectSamePlan(first, PlanFsdp(first, exported.Text("train.py")));
  }
}

// The lesson's 2 + 2 + 12 bytes are 4 + 4 + 8 in FSDP2: other accounts, the same sum, and a
// warning.
TEST(SameBytes, SixteenBytesInAnotherWay) {
  const char* scenario = "lessons/19-fsdp-code/scenario.toml";
  const Exported exported = Export("fsdp", scenario);
  ASSERT_EQ(exported.document.at("diagnostics").size(), 1u);
  EXPECT_EQ(exported.document.at("diagnostics")[0].at("code"), "export.differs");
  const Json first = Plan(scenario), again = PlanFsdp(first, exported.Text("train.py"));
  ASSERT_TRUE(again.is_object()) << again;
  EXPECT_EQ(again.at("memory").at("peak_bytes"), first.at("memory").at("peak_bytes"));
  EXPECT_NE(again.at("memory").at("ranks")[0].at("gradients_bytes"),
            first.at("memory").at("ranks")[0].at("gradients_bytes"));
}

}  // namespace
}  // namespace shardlab::exports
