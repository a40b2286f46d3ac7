// Does what is exported mean the plan it came from? The files are read by each framework's own
// rules (its defaults of precision, its padding of the vocabulary, its names), planned again, and
// every rank must need the same bytes and the step the same time.

#include <gtest/gtest.h>

#include <cstdint>
#include <regex>
#include <sstream>

#include "exports/exported.h"

namespace shardlab::exports {
namespace {

using Json = nlohmann::json;

std::string ToToml(const Json& value) {
  if (value.is_object()) {
    std::string out = "{";
    for (const auto& [key, item] : value.items()) {
      if (item.is_null()) continue;
      out += (out.size() > 1 ? ", " : "") + ("\"" + key + "\" = ") + ToToml(item);
    }
    return out + "}";
  }
  return value.dump();
}

// A scenario of the tables given; the machine and the training are the first plan's.
Json PlanAgain(const Json& first, const Json& tables) {
  Json scenario = {{"name", "again"}, {"accounting", first.at("accounting")}};
  for (const char* table : {"hardware", "training", "software", "optimizer"})
    scenario[table] = first.at("resolved").at(table);
  scenario.update(tables);
  std::string toml;
  for (const auto& [key, value] : scenario.items()) toml += key + " = " + ToToml(value) + "\n";
  return PlanText(toml);
}

void ExpectSamePlan(const Json& first, const Json& again) {
  ASSERT_TRUE(again.is_object()) << again;
  EXPECT_EQ(again.at("model").at("parameters"), first.at("model").at("parameters"));
  EXPECT_EQ(again.at("memory").at("ranks"), first.at("memory").at("ranks"));
  EXPECT_EQ(again.at("plan").at("layers"), first.at("plan").at("layers"));
  EXPECT_EQ(again.at("time").at("step_seconds"), first.at("time").at("step_seconds"));
}

// --- Megatron-LM: pretrain_gpt.py's rules
// -------------------------------------------------------

using Flags = std::map<std::string, std::string>;

std::int64_t Number(const Flags& flags, const std::string& name, std::int64_t otherwise) {
  const auto at = flags.find(name);
  return at == flags.end() ? otherwise : std::stoll(at->second);
}

// Entries of the largest tokenizer that the script allows.
std::int64_t LargestTokenizer(const std::string& script) {
  std::smatch entries;
  EXPECT_TRUE(
      std::regex_search(script, entries, std::regex("a tokenizer of (up to )?([0-9]+) entries")));
  return std::stoll(entries[2]);
}

// Rows of the embedding: the tokenizer's entries, padded to a multiple of 128 (unless told) x the
// tensor degree.
std::int64_t PaddedVocabulary(const Flags& flags, std::int64_t entries) {
  const std::int64_t multiple = Number(flags, "make-vocab-size-divisible-by", 128) *
                                Number(flags, "tensor-model-parallel-size", 1);
  return (entries + multiple - 1) / multiple * multiple;
}

Json MegatronModel(const Flags& flags, std::int64_t entries) {
  const bool biases = !flags.contains("disable-bias-linear");
  const std::int64_t heads = Number(flags, "num-attention-heads", 0),
                     hidden = Number(flags, "hidden-size", 0);
  Json model = {
      {"layers", Number(flags, "num-layers", 0)},
      {"hidden", hidden},
      {"heads", heads},
      {"kv_heads",
       flags.contains("group-query-attention") ? Number(flags, "num-query-groups", 1) : heads},
      {"head_dim", Number(flags, "kv-channels", hidden / heads)},
      {"vocabulary", PaddedVocabulary(flags, entries)},
      {"tied", !flags.contains("untie-embeddings-and-output-weights")},
      {"norm",
       flags.contains("normalization") && flags.at("normalization") == "RMSNorm" ? "rms" : "layer"},
      {"qkv_bias", biases || flags.contains("add-qkv-bias")},
      {"o_bias", biases},
      {"mlp_bias", biases},
      {"qk_norm", flags.contains("qk-layernorm") ? "head" : "none"}};
  if (flags.contains("num-experts")) {
    model["plugin"] = "moe";
    model["experts"] = Number(flags, "num-experts", 0);
    model["top_k"] = Number(flags, "moe-router-topk", 2);
    model["expert_ffn"] = Number(flags, "moe-ffn-hidden-size", 0);
    if (const std::int64_t shared = Number(flags, "moe-shared-expert-intermediate-size", 0)) {
      model["shared_experts"] = 1;
      model["shared_ffn"] = shared;
    }
    if (flags.contains("moe-layer-freq")) {
      const std::string& pattern = flags.at("moe-layer-freq");
      model["dense_layers"] = std::count(pattern.begin(), pattern.end(), '0');
      model["ffn"] = Number(flags, "ffn-hidden-size", 4 * hidden);
    }
    if (flags.contains("multi-latent-attention")) {
      // Without the flag the latents have no norms, and the model that many parameters less.
      EXPECT_TRUE(flags.contains("qk-layernorm"));
      model["qk_norm"] = "none";
      for (const char* of_heads : {"kv_heads", "head_dim"}) model.erase(of_heads);
      model["kv_lora"] = Number(flags, "kv-lora-rank", 32);
      model["q_lora"] = Number(flags, "q-lora-rank", 0);
      model["qk_nope"] = Number(flags, "qk-head-dim", 128);
      model["qk_rope"] = Number(flags, "qk-pos-emb-head-dim", 64);
      model["v_dim"] = Number(flags, "v-head-dim", 128);
    }
    return model;
  }
  model["ffn"] = Number(flags, "ffn-hidden-size", 4 * hidden);
  model["plugin"] = flags.contains("swiglu") ? "llama" : "gpt";
  if (!flags.contains("position-embedding-type") ||
      flags.at("position-embedding-type") == "learned_absolute")
    model["positions"] = Number(flags, "max-position-embeddings", 0);
  return model;
}

Json MegatronSchedule(const Flags& flags) {
  const std::int64_t ranks = Number(flags, "pipeline-model-parallel-size", 1);
  Json schedule = {{"plugin", "pipeline-1f1b"}, {"degree", ranks}};
  std::int64_t chunks = 1;
  if (flags.contains("num-layers-per-virtual-pipeline-stage")) {
    chunks = Number(flags, "num-layers", 0) / ranks /
             Number(flags, "num-layers-per-virtual-pipeline-stage", 1);
  }
  if (flags.contains("pipeline-model-parallel-layout")) {
    Json layers = Json::array();
    std::istringstream stages(flags.at("pipeline-model-parallel-layout"));
    for (std::string stage; std::getline(stages, stage, '|');) {
      std::smatch count;
      layers.push_back(
          std::regex_search(stage, count, std::regex("t\\*([0-9]+)")) ? std::stoll(count[1]) : 0);
    }
    chunks = static_cast<std::int64_t>(layers.size()) / ranks;
    schedule["layers"] = layers;
  }
  if (chunks > 1) {
    schedule["plugin"] = "pipeline-interleaved";
    schedule["chunks"] = chunks;
    schedule["group"] = Number(flags, "microbatch-group-size-per-virtual-pipeline-stage", ranks);
  }
  return schedule;
}

// --bf16 alone keeps and reduces gradients in fp32, --fp16 alone in fp16.
Json MegatronPrecision(const Flags& flags) {
  EXPECT_NE(flags.contains("bf16"), flags.contains("fp16"));
  const std::string weights = flags.contains("bf16") ? "bf16" : "fp16";
  const bool wide = flags.contains("accumulate-allreduce-grads-in-fp32") ||
                    (weights == "bf16" && !flags.contains("grad-reduce-in-bf16"));
  const std::string gradients = wide ? "fp32" : weights;
  if (flags.contains("fp8-format")) {
    EXPECT_EQ(flags.at("fp8-recipe"), "delayed");
  }
  return {{"recipe", flags.contains("fp8-format") ? "megatron-fp8" : "megatron-bf16"},
          {"parameters", weights},
          {"compute", flags.contains("fp8-format") ? "fp8" : weights},
          {"gradients", gradients},
          {"gradient_reduce", gradients},
          // Of an optimizer with short moments: what a bf16 weight lacks of fp32.
          {"master", flags.contains("exp-avg-dtype") && weights == "bf16" ? "bf16" : "fp32"},
          {"moments", flags.contains("exp-avg-dtype") ? flags.at("exp-avg-dtype") : "fp32"}};
}

// What Transformer Engine knows (cp_comm_type); Megatron-LM hands the word through.
std::string ContextMethod(const Flags& flags) {
  static const std::map<std::string, std::string> methods = {
      {"p2p", "ring"}, {"all_gather", "gather"}, {"a2a", "all-to-all"}};
  const auto at = flags.find("cp-comm-type");
  return at == flags.end() ? "ring" : methods.at(at->second);
}

// `entries` of the tokenizer; 0: the largest that the script allows.
Json PlanMegatron(const Json& first, const std::string& script, std::int64_t entries = 0) {
  if (entries == 0) entries = LargestTokenizer(script);
  const Flags flags = FlagsOf(script);
  Json training = first.at("resolved").at("training");
  training["micro_batch_size"] = Number(flags, "micro-batch-size", 1);
  training["global_batch_size"] = Number(flags, "global-batch-size", 1);
  training["sequence_length"] = Number(flags, "seq-length", 1);
  Json strategy = {
      {"tensor",
       {{"degree", Number(flags, "tensor-model-parallel-size", 1)},
        {"sequence_parallel", flags.contains("sequence-parallel")}}},
      {"zero", {{"stage", flags.contains("use-distributed-optimizer") ? 1 : 0}}},
      {"data", {{"overlap", flags.contains("overlap-grad-reduce") ? "full" : "none"}}}};
  if (const std::int64_t context = Number(flags, "context-parallel-size", 1); context > 1)
    strategy["context"] = {{"degree", context}, {"method", ContextMethod(flags)}};
  if (flags.contains("num-experts")) {
    // Left out, the experts' tensor degree is that of the layers.
    strategy["expert"] = {
        {"degree", Number(flags, "expert-model-parallel-size", 1)},
        {"tensor_degree", Number(flags, "expert-tensor-parallel-size",
                                 Number(flags, "tensor-model-parallel-size", 1))}};
  }
  strategy["checkpointing"] = {{"mode", "none"}};
  if (flags.contains("recompute-granularity")) {
    Json& replay = strategy["checkpointing"];
    replay["mode"] = flags.at("recompute-granularity");
    if (replay["mode"] == "full" && flags.at("recompute-method") == "uniform")
      replay["segment"] = Number(flags, "recompute-num-layers", 1);
    if (replay["mode"] == "full" && flags.at("recompute-method") == "block")
      replay["layers"] = Number(flags, "recompute-num-layers", 1);
    if (replay["mode"] == "selective") replay["modules"] = {"attention"};
  }
  Json schedule = MegatronSchedule(flags);
  schedule["transfers"] = first.at("resolved").at("schedule").at("transfers");
  return PlanAgain(first, {{"model", MegatronModel(flags, entries)},
                           {"training", training},
                           {"strategy", strategy},
                           {"schedule", schedule},
                           {"precision", MegatronPrecision(flags)}});
}

TEST(SameBytes, MegatronsFlags) {
  struct Case {
    const char* scenario;
    std::vector<std::string> sets;
  };
  const std::string interleaved = "scenarios/70b-interleaved.toml";
  const std::vector<Case> cases = {
      {"lessons/17-megatron-flags/scenario.toml", {}},
      {"lessons/17-megatron-flags/scenario.toml", {"accounting=operator"}},
      {"lessons/17-megatron-flags/scenario.toml", {"precision.recipe=megatron-bf16"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"precision.recipe=megatron-bf16", "precision.parameters=fp16", "precision.compute=fp16"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"precision.parameters=fp16", "precision.compute=fp16", "precision.gradients=fp16",
        "precision.gradient_reduce=fp16"}},
      {"lessons/17-megatron-flags/scenario.toml", {"strategy.zero.stage=0"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator", "strategy.checkpointing={mode=\"full\",layers=10}"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"strategy.checkpointing={mode=\"full\",segment=4}"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator",
        "strategy.checkpointing={mode=\"selective\",modules=[\"attention\"]}"}},
      {"lessons/17-megatron-flags/scenario.toml", {"strategy.context.degree=2"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator", "strategy.context.degree=2", "strategy.context.method=gather"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator", "strategy.tensor.degree=4", "strategy.context.degree=2",
        "strategy.context.method=all-to-all"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator", "precision.recipe=megatron-fp8"}},
      {"lessons/17-megatron-flags/scenario.toml",
       {"accounting=operator", "precision.recipe=megatron-bf16", "precision.moments=bf16",
        "precision.master=bf16"}},
      {"scenarios/70b-interleaved.toml", {}},
      {"scenarios/405b-uneven-stages.toml", {}},
      {"scenarios/gpt3-175b-tp8-pp8-a100.toml", {}},
      {"scenarios/mixtral-8x7b-ep8-32-gpus.toml", {}},
      {"scenarios/qwen3-30b-a3b-32-gpus.toml", {}},
      // Latent attention, dense layers first, shared experts.
      {"scenarios/qwen3-30b-a3b-32-gpus.toml",
       {"model.preset=moonlight-16b-a3b", "strategy.expert.degree=8"}},
      {"scenarios/qwen3-30b-a3b-32-gpus.toml",
       {"model.preset=deepseek-v2", "strategy.expert.degree=32"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.scenario + ::testing::PrintToString(c.sets));
    const Exported exported = Export("megatron", c.scenario, c.sets);
    ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
    const Json first = Plan(c.scenario, c.sets);
    ExpectSamePlan(first, PlanMegatron(first, exported.Text("train.sh")));
  }
}

// Megatron-LM makes the embedding from the tokenizer. Published vocabularies are often padded
// already: Qwen2.5 has 151,665 entries and 152,064 rows, GPT-3 50,257 and 51,200.
TEST(SameBytes, MegatronsPaddingGivesThePlansVocabularyFromTheTokenizers) {
  struct Case {
    const char* scenario;
    std::vector<std::string> sets;
    std::int64_t rows;
    std::vector<std::int64_t> tokenizers;
  };
  const std::string lesson = "lessons/17-megatron-flags/scenario.toml";
  const std::vector<Case> cases = {
      {lesson.c_str(), {}, 128256, {128256}},
      {lesson.c_str(), {"strategy.tensor.degree=4", "schedule.degree=4"}, 128256, {128256}},
      {lesson.c_str(), {"model.preset=qwen2.5-14b"}, 152064, {151643, 151646, 151665, 152064, 1}},
      {lesson.c_str(),
       {"model.preset=qwen3-8b", "strategy.tensor.degree=4"},
       151936,
       {151643, 151669, 151936}},
      {"scenarios/gpt3-175b-tp8-pp8-a100.toml", {}, 51200, {50257, 51200}},
      {"scenarios/qwen3-30b-a3b-32-gpus.toml", {}, 151936, {151643, 151669}},
      // Rows of the user's own, for a tokenizer that the exporter does not know.
      {lesson.c_str(), {"model.vocabulary=130000"}, 130000, {128256, 129999, 130000}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.scenario + ::testing::PrintToString(c.sets));
    const Exported exported = Export("megatron", c.scenario, c.sets);
    ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
    const std::string script = exported.Text("train.sh");
    EXPECT_EQ(LargestTokenizer(script), c.rows);
    const Json first = Plan(c.scenario, c.sets);
    EXPECT_EQ(first.at("resolved").at("model").at("vocabulary"), c.rows);
    for (const std::int64_t entries : c.tokenizers) {
      EXPECT_EQ(PaddedVocabulary(FlagsOf(script), entries), c.rows) << entries;
      ExpectSamePlan(first, PlanMegatron(first, script, entries));
    }
  }
}

// What the flags guard against: without them Megatron's defaults make another plan.
TEST(SameBytes, MegatronsDefaultsWouldBeAnotherPlan) {
  const char* scenario = "lessons/17-megatron-flags/scenario.toml";
  const Json first = Plan(scenario);
  const std::string script = Export("megatron", scenario).Text("train.sh");
  const auto without = [&](const std::string& line) {
    std::string text = script;
    const std::size_t at = text.find("  " + line + "\n");
    EXPECT_NE(at, std::string::npos) << line;
    text.erase(at, line.size() + 3);
    return PlanMegatron(first, text);
  };
  // 4-byte gradients: 2 bytes more of each of the rank's 4,409,606,144 parameters.
  const Json gradients = without("--grad-reduce-in-bf16");
  EXPECT_EQ(gradients.at("memory").at("ranks")[0].at("total_bytes").get<std::int64_t>() -
                first.at("memory").at("ranks")[0].at("total_bytes").get<std::int64_t>(),
            2 * 4409606144);
  // 128,256 rows become 129,024, the next multiple of 128 x 8, in embedding and head.
  const Json padded = without("--make-vocab-size-divisible-by 1");
  EXPECT_EQ(padded.at("model").at("parameters").get<std::int64_t>() -
                first.at("model").at("parameters").get<std::int64_t>(),
            2 * (129024 - 128256) * 8192);
}

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
