// Do the flags mean the plan they came from? They are read by the rules of Megatron-LM's
// pretrain_gpt.py (its defaults of precision, its padding of the vocabulary, its names), planned
// again, and every rank must need the same bytes and the step the same time.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <sstream>

#include "exports/same_plan.h"

namespace shardlab::exports {
namespace {

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
      // Experts that all tensor ranks share, and whole ones.
      {"scenarios/mixtral-8x7b-ep8-32-gpus.toml",
       {"strategy.tensor.degree=4", "strategy.tensor.sequence_parallel=true",
        "strategy.expert.degree=2", "strategy.expert.tensor_degree=4"}},
      {"scenarios/mixtral-8x7b-ep8-32-gpus.toml",
       {"strategy.tensor.degree=4", "strategy.tensor.sequence_parallel=true"}},
      // Latent attention, dense layers first, shared experts.
      {"scenarios/qwen3-30b-a3b-32-gpus.toml",
       {"model.preset=moonlight-16b-a3b", "model.router_bias=false"}},
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

// Experts of no strategy are cut by the tensor ranks like all else. Megatron-LM must be told so; it
// then has their traffic in a group of its own, a matter of microseconds.
TEST(SameBytes, MegatronsExpertsAreSharedByTheTensorRanks) {
  const char* scenario = "scenarios/mixtral-8x7b-ep8-32-gpus.toml";
  const std::vector<std::string> sets = {"strategy.tensor.degree=8",
                                         "strategy.tensor.sequence_parallel=true",
                                         "strategy.expert.degree=1"};
  const std::string script = Export("megatron", scenario, sets).Text("train.sh");
  EXPECT_EQ(Number(FlagsOf(script), "expert-tensor-parallel-size", 0), 8);
  const Json first = Plan(scenario, sets), again = PlanMegatron(first, script);
  ASSERT_TRUE(again.is_object()) << again;
  EXPECT_EQ(again.at("memory").at("ranks"), first.at("memory").at("ranks"));
  EXPECT_NEAR(again.at("time").at("step_seconds").get<double>() /
                  first.at("time").at("step_seconds").get<double>(),
              1, 1e-3);
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

}  // namespace
}  // namespace shardlab::exports
