// The model's dimensions, and what Megatron-LM's GPT has no form of.

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "export_megatron.h"

namespace shardlab::export_megatron {
namespace {

constexpr const char* kVersion = "Megatron-LM core_v0.13.0";

std::int64_t Dimension(const ExportInput& plan, const char* name) {
  return plan.Integer(absl::StrCat("resolved.model.", name));
}
bool Is(const ExportInput& plan, const char* name) {
  return plan.Boolean(absl::StrCat("resolved.model.", name));
}

// Whether the router's bias is a correction of sigmoid scores, as in DeepSeek-V3.
bool CorrectsScores(const Value* known) {
  const Value* score = known != nullptr ? known->Find("router_score") : nullptr;
  return score != nullptr && score->text == "sigmoid";
}

// Architecture that pretrain_gpt.py cannot build; each is told where it is written.
void Refuse(const ExportInput& plan, const Value* known) {
  const auto cannot = [&](bool holds, const char* key, const char* what) {
    if (holds)
      plan.Cannot(absl::StrCat("model.", key), absl::StrCat(kVersion, "'s GPT has no ", what),
                  "train this model with export fsdp or deepspeed");
  };
  cannot(Dimension(plan, "norms") != 2, "norms", "blocks with other than two norms");
  cannot(Is(plan, "post_norm"), "post_norm", "norms after attention and MLP");
  cannot(Is(plan, "parallel"), "parallel", "attention beside the MLP");
  cannot(Dimension(plan, "sliding_window") > 0, "sliding_window", "sliding window");
  cannot(plan.Text("resolved.model.qk_norm") == "full", "qk_norm",
         "norm of the whole projection, only of each head");
  const std::string norm = plan.Text("resolved.model.norm");
  cannot(norm != "rms" && norm != "layer", "norm", "such norm, only \"rms\" and \"layer\"");
  cannot(Is(plan, "embedding_norm"), "embedding_norm", "norm after the embedding");
  cannot(Is(plan, "head_bias"), "head_bias", "bias of the head");
  cannot(Is(plan, "sinks"), "sinks", "attention sinks");
  cannot(Is(plan, "router_bias") && !CorrectsScores(known), "router_bias",
         "bias in the router's product");
  cannot(Is(plan, "shared_gate"), "shared_gate", "gate of the shared experts");
  const std::string activation = plan.Text("resolved.model.activation");
  cannot(activation == "relu", "activation", "plain ReLU");
  cannot(Dimension(plan, "experts") > 0 && Is(plan, "mlp_bias"), "mlp_bias",
         "biases beside experts, but those of queries, keys and values");
  const bool qkv = Is(plan, "qkv_bias"), o = Is(plan, "o_bias"), mlp = Is(plan, "mlp_bias");
  cannot(o != mlp || (o && !qkv), "o_bias",
         "such mixture of biases: all, none, or of queries, keys and values alone");
}

void Biases(const ExportInput& plan, Flags* flags) {
  if (Is(plan, "mlp_bias")) return;  // Megatron's default: everywhere
  flags->emplace_back("--disable-bias-linear");
  if (Is(plan, "qkv_bias")) flags->emplace_back("--add-qkv-bias");
}

// Megatron-LM pads the tokenizer's entries to a multiple of divisor x tensor degree, by default of
// 128 x. The rows of the plan come out with 1 where the tokenizer has as many entries; of any other
// tokenizer that fits into them (published vocabularies are often padded already) with one multiple
// that is all of the rows.
std::int64_t VocabularyDivisor(const ExportInput& plan, const Value* known,
                               std::vector<std::string>* fill) {
  const std::int64_t rows = Dimension(plan, "vocabulary"), tensor = plan.Integer("plan.tensor", 1);
  const Value* entries = known != nullptr ? known->Find("tokenizer") : nullptr;
  const bool same = entries != nullptr && entries->integer == rows;
  fill->push_back(absl::StrCat("TOKENIZER_MODEL=${TOKENIZER_MODEL:?a tokenizer of ",
                               same ? "" : "up to ", rows, " entries}"));
  if (same) return 1;
  if (rows % tensor != 0) {
    plan.Cannot("model.vocabulary",
                absl::StrCat("Megatron-LM pads the vocabulary to a multiple of the tensor degree, ",
                             "and ", rows, " is none of ", tensor),
                absl::StrCat("set model.vocabulary = ", (rows + tensor - 1) / tensor * tensor));
    return 1;
  }
  return rows / tensor;
}

// What the plan's bytes do not depend on: from models.toml, else the user's.
void Positions(const ExportInput& plan, const Value* known, Flags* flags,
               std::vector<std::string>* fill) {
  const auto number = [&](const char* key) {
    const Value* value = known != nullptr ? known->Find(key) : nullptr;
    return value != nullptr ? value->number : 0.0;
  };
  if (const std::int64_t learned = Dimension(plan, "positions"); learned > 0) {
    flags->emplace_back("--position-embedding-type learned_absolute");
    flags->push_back(absl::StrCat("--max-position-embeddings ", learned));
  } else {
    flags->emplace_back("--position-embedding-type rope");
    flags->push_back(
        absl::StrCat("--max-position-embeddings ", plan.Integer("plan.sequence_length")));
    if (number("rotary_base") > 0) {
      flags->push_back(
          absl::StrCat("--rotary-base ", static_cast<std::int64_t>(number("rotary_base"))));
    } else {
      flags->emplace_back("--rotary-base \"$ROTARY_BASE\"");
      fill->emplace_back("ROTARY_BASE=${ROTARY_BASE:?rope_theta, of config.json}");
    }
    if (number("rope_scaling_factor") > 0) {
      flags->emplace_back("--use-rope-scaling");
      flags->push_back(absl::StrCat("--rope-scaling-factor ", number("rope_scaling_factor")));
    }
  }
  if (number("norm_epsilon") > 0) {
    flags->push_back(absl::StrCat("--norm-epsilon ", number("norm_epsilon")));
  } else {
    flags->emplace_back("--norm-epsilon \"$NORM_EPSILON\"");
    fill->emplace_back("NORM_EPSILON=${NORM_EPSILON:?epsilon of the norms, of config.json}");
  }
}

void Experts(const ExportInput& plan, const Value* known, Flags* flags) {
  const std::int64_t experts = Dimension(plan, "experts");
  if (experts == 0) return;
  const std::int64_t width = plan.Integer("resolved.model.expert_ffn", Dimension(plan, "ffn"));
  flags->push_back(absl::StrCat("--num-experts ", experts));
  flags->push_back(absl::StrCat("--moe-router-topk ", Dimension(plan, "top_k")));
  // The soft-max of one score would be 1, whatever the score.
  if (Dimension(plan, "top_k") == 1) flags->emplace_back("--moe-router-pre-softmax");
  flags->push_back(absl::StrCat("--moe-ffn-hidden-size ", width));
  if (CorrectsScores(known)) {
    flags->emplace_back("--moe-router-score-function sigmoid");
    if (Is(plan, "router_bias")) {
      flags->emplace_back("--moe-router-enable-expert-bias");
      plan.Differs("model.router_bias",
                   "Megatron-LM keeps the correction of the router's scores as a buffer, without "
                   "gradient and optimizer state",
                   "plan with model.router_bias = false for the bytes without it");
    }
  }
  flags->emplace_back("--moe-grouped-gemm");
  if (const std::int64_t shared = Dimension(plan, "shared_experts"); shared > 0) {
    flags->push_back(absl::StrCat("--moe-shared-expert-intermediate-size ",
                                  plan.Integer("resolved.model.shared_ffn", shared * width)));
  }
  const std::int64_t dense = Dimension(plan, "dense_layers"), every = Dimension(plan, "moe_every"),
                     layers = Dimension(plan, "layers");
  if (dense > 0 || every > 1) {
    // One digit a layer, in Python: 1 where it has experts. After the dense layers the last of each
    // `moe_every` has them.
    std::string pattern;
    for (std::int64_t i = 0; i < layers; ++i) {
      const bool routed = i >= dense && (i - dense + 1) % every == 0;
      absl::StrAppend(&pattern, i > 0 ? "," : "", routed ? "1" : "0");
    }
    flags->push_back(absl::StrCat("--moe-layer-freq \"[", pattern, "]\""));
  }
  if (Is(plan, "mtp")) flags->emplace_back("--mtp-num-layers 1");
}

void LatentAttention(const ExportInput& plan, Flags* flags) {
  if (Dimension(plan, "kv_lora") == 0) return;
  flags->emplace_back("--multi-latent-attention");
  flags->push_back(absl::StrCat("--kv-lora-rank ", Dimension(plan, "kv_lora")));
  if (const std::int64_t q = Dimension(plan, "q_lora"); q > 0)
    flags->push_back(absl::StrCat("--q-lora-rank ", q));
  flags->push_back(absl::StrCat("--qk-head-dim ", Dimension(plan, "qk_nope")));
  flags->push_back(absl::StrCat("--qk-pos-emb-head-dim ", Dimension(plan, "qk_rope")));
  flags->push_back(absl::StrCat("--v-head-dim ", Dimension(plan, "v_dim")));
  flags->emplace_back("--qk-layernorm");  // the norms of both latents
}

}  // namespace

Flags ModelFlags(const ExportInput& plan, const Value* known, std::vector<std::string>* fill) {
  Refuse(plan, known);
  const std::int64_t heads = Dimension(plan, "heads"), groups = Dimension(plan, "kv_heads"),
                     ffn = Dimension(plan, "ffn");
  Flags flags = {absl::StrCat("--num-layers ", Dimension(plan, "layers")),
                 absl::StrCat("--hidden-size ", Dimension(plan, "hidden"))};
  // Without a plain MLP anywhere the width of the experts stands for it.
  flags.push_back(
      absl::StrCat("--ffn-hidden-size ", ffn > 0 ? ffn : Dimension(plan, "expert_ffn")));
  flags.push_back(absl::StrCat("--num-attention-heads ", heads));
  if (Dimension(plan, "kv_lora") == 0) {
    if (groups > 0 && groups != heads) {
      flags.emplace_back("--group-query-attention");
      flags.push_back(absl::StrCat("--num-query-groups ", groups));
    }
    flags.push_back(absl::StrCat("--kv-channels ", Dimension(plan, "head_dim")));
  }
  LatentAttention(plan, &flags);
  Experts(plan, known, &flags);
  // Only models with a plain MLP name its activation.
  if (plan.Find("resolved.model.activation") == nullptr) flags.emplace_back("--swiglu");
  flags.push_back(absl::StrCat(
      "--normalization ", plan.Text("resolved.model.norm") == "rms" ? "RMSNorm" : "LayerNorm"));
  if (plan.Text("resolved.model.qk_norm") == "head") flags.emplace_back("--qk-layernorm");
  Positions(plan, known, &flags, fill);
  const double dropout = plan.Number("resolved.training.dropout");
  flags.push_back(absl::StrCat("--attention-dropout ", dropout));
  flags.push_back(absl::StrCat("--hidden-dropout ", dropout));
  if (!Is(plan, "tied")) flags.emplace_back("--untie-embeddings-and-output-weights");
  Biases(plan, &flags);
  flags.push_back(
      absl::StrCat("--make-vocab-size-divisible-by ", VocabularyDivisor(plan, known, fill)));
  flags.emplace_back("--transformer-impl transformer_engine");
  return flags;
}

}  // namespace shardlab::export_megatron
