// How the work is split: degrees, schedule, state, recomputation.

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "export_megatron.h"

namespace shardlab::export_megatron {
namespace {

constexpr std::array<const char*, 6> kStrategies = {"data", "tensor",        "context",
                                                    "zero", "checkpointing", "expert"};

void CheckStrategies(const ExportInput& plan) {
  const Value* strategies = plan.Find("resolved.strategy");
  if (strategies == nullptr) return;
  for (const auto& [name, table] : strategies->table) {
    const Value* plugin = table.Find("plugin");
    const std::string kind = plugin != nullptr ? plugin->text : name;
    if (std::find(kStrategies.begin(), kStrategies.end(), kind) != kStrategies.end()) continue;
    plan.Cannot(
        absl::StrCat("strategy.", name),
        absl::StrCat("the distributed optimizer of Megatron-LM core_v0.13.0 has no form of ", kind),
        "use strategy.zero with stage 0 or 1 here, or export fsdp");
  }
}

// The cut of the layers over the stages, where it is not even: E embedding, t a layer, L the loss.
std::string LayoutOf(const std::vector<std::int64_t>& layers) {
  std::string layout = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) layout += "|";
    if (layers[i] > 0) absl::StrAppend(&layout, "t*", layers[i]);
  }
  return layout + "L";
}

void ScheduleFlags(const ExportInput& plan, Flags* flags) {
  const std::int64_t ranks = plan.Integer("plan.pipeline", 1);
  if (ranks == 1) return;
  const std::string schedule = plan.Text("plan.schedule");
  const std::int64_t chunks = plan.Integer("plan.chunks", 1),
                     micro_batches = plan.Integer("plan.micro_batches", 1);
  if (schedule != "pipeline-1f1b" && schedule != "pipeline-interleaved") {
    plan.Cannot("schedule.plugin",
                absl::StrCat("Megatron-LM core_v0.13.0 has no schedule ", schedule),
                "legal: pipeline-1f1b, pipeline-interleaved");
    return;
  }
  const std::vector<std::int64_t> layers = plan.Integers("plan.layers");
  const bool even =
      std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end();
  if (!even && plan.Boolean("resolved.model.mtp")) {
    plan.Cannot("schedule.layers",
                "Megatron-LM core_v0.13.0 places no multi-token prediction in uneven stages",
                "use stages of as many layers, or set model.mtp = false");
  }
  if (!even) {
    flags->push_back(absl::StrCat("--pipeline-model-parallel-layout \"", LayoutOf(layers), "\""));
  } else if (chunks > 1 && !layers.empty()) {
    flags->push_back(absl::StrCat("--num-layers-per-virtual-pipeline-stage ", layers[0]));
  }
  if (chunks == 1) return;
  const std::int64_t automatic = micro_batches / std::max<std::int64_t>(1, micro_batches / ranks);
  const std::int64_t group = plan.Integer("resolved.schedule.group", automatic);
  if (group < ranks) {
    plan.Cannot("training.global_batch_size",
                absl::StrCat("Megatron-LM interleaves groups of at least ", ranks,
                             " micro-batches (its pipeline degree), here there are ", group),
                "use more micro-batches, or fewer pipeline ranks");
  }
  flags->push_back(absl::StrCat("--microbatch-group-size-per-virtual-pipeline-stage ", group));
}

void StateFlags(const ExportInput& plan, Flags* flags) {
  const std::int64_t stage = plan.Integer("plan.zero_stage");
  if (stage > 1) {
    plan.Cannot("strategy.zero.stage",
                absl::StrCat("the distributed optimizer of Megatron-LM cuts optimizer state alone "
                             "(ZeRO-1), not ZeRO-",
                             stage),
                "set strategy.zero.stage = 1, or export deepspeed or fsdp");
  }
  if (stage == 1) flags->emplace_back("--use-distributed-optimizer");
  const std::string offload = plan.Text("plan.offload", "none");
  if (offload == "optimizer") {
    flags->emplace_back("--optimizer-cpu-offload");
    flags->emplace_back("--optimizer-offload-fraction 1.0");
    if (stage != 1)
      plan.Cannot(
          "strategy.zero.stage",
          "Megatron-LM keeps optimizer state on the host only with its distributed optimizer",
          "set strategy.zero.stage = 1");
  } else if (offload != "none") {
    plan.Cannot("strategy.zero.offload", "Megatron-LM keeps weights and gradients on the device",
                "legal: \"none\", \"optimizer\"");
  }
  if (plan.Text("resolved.strategy.data.overlap") == "full") {
    flags->emplace_back("--overlap-grad-reduce");
    if (stage == 1) flags->emplace_back("--overlap-param-gather");
    const std::int64_t bucket = plan.Integer("resolved.strategy.zero.bucket_size");
    if (bucket > 0) flags->push_back(absl::StrCat("--ddp-bucket-size ", bucket));
  }
}

// Tensor ranks that share an expert: those that neither hold others nor repeat it. Without expert
// ranks these are all tensor ranks, whatever a strategy calls its own.
std::int64_t ExpertTensor(const ExportInput& plan) {
  const std::int64_t of_stage = plan.Integer("hardware.devices", 1) /
                                std::max<std::int64_t>(1, plan.Integer("plan.pipeline", 1));
  return std::max<std::int64_t>(
      1, of_stage / (plan.Integer("plan.expert", 1) * plan.Integer("plan.expert_data", of_stage)));
}

// Servers that the ranks of the experts are on.
std::int64_t ExpertServers(const ExportInput& plan) {
  const Value* const rows = plan.Find("communication");
  for (std::size_t i = 0; rows != nullptr && i < rows->array.size(); ++i) {
    const Value& row = rows->array[i];
    const Value *const axis = row.Find("axis"), *const spans = row.Find("spans");
    if (axis == nullptr || axis->text != "expert" || spans == nullptr || spans->array.empty())
      continue;
    return static_cast<std::int64_t>(spans->array.back().number / spans->array.front().number);
  }
  return 1;
}

void DispatchFlags(const ExportInput& plan, Flags* flags) {
  const bool together = plan.Text("resolved.strategy.expert.dispatch") == "each-server";
  if (!together || plan.Integer("plan.expert", 1) == 1) {
    flags->emplace_back("--moe-token-dispatcher-type alltoall");
    return;
  }
  // Token weights in fp32 are what DeepEP sends.
  flags->emplace_back("--moe-token-dispatcher-type flex");
  flags->emplace_back("--moe-enable-deepep");
  flags->emplace_back("--moe-router-dtype fp32");
  if (plan.Number("resolved.strategy.expert.capacity_factor") > 0) {
    plan.Cannot("strategy.expert.capacity_factor",
                "Megatron-LM drops and pads tokens with the all-to-all dispatcher only",
                "set strategy.expert.dispatch = \"each-expert\", or leave capacity_factor out");
  }
  const std::int64_t most = plan.Integer("resolved.strategy.expert.servers_per_token");
  const std::int64_t servers = ExpertServers(plan);
  const std::int64_t top_k = plan.Integer("resolved.model.top_k");
  // A token of top_k experts reaches no more servers than that, and a group is scored by its best
  // top_k / groups experts: of more groups than top_k by none.
  if (most == 0 || most >= std::min(servers, top_k)) return;
  const std::int64_t experts = plan.Integer("resolved.model.experts");
  if (experts % servers != 0) {
    plan.Cannot("strategy.expert.servers_per_token",
                absl::StrCat("Megatron-LM routes to groups of equal size, and ", experts,
                             " experts do not divide by ", servers, " servers"),
                "leave servers_per_token out");
  } else if (most * (experts / servers) < top_k) {
    plan.Cannot(
        "strategy.expert.servers_per_token",
        absl::StrCat(most, most == 1 ? " server has " : " servers have ",
                     most * (experts / servers), " experts, and a token is routed to ", top_k),
        absl::StrCat("set servers_per_token = ", (top_k * servers + experts - 1) / experts,
                     " or more"));
  }
  flags->push_back(absl::StrCat("--moe-router-num-groups ", servers));
  flags->push_back(absl::StrCat("--moe-router-group-topk ", most));
}

void ExpertFlags(const ExportInput& plan, Flags* flags) {
  if (plan.Integer("resolved.model.experts") == 0) return;
  const std::int64_t tensor = plan.Integer("plan.tensor", 1);
  flags->push_back(absl::StrCat("--expert-model-parallel-size ", plan.Integer("plan.expert", 1)));
  // Left out, it is the tensor degree.
  flags->push_back(absl::StrCat("--expert-tensor-parallel-size ", ExpertTensor(plan)));
  DispatchFlags(plan, flags);
  if (tensor > 1 && !plan.Boolean("plan.sequence_parallel")) {
    plan.Cannot("strategy.tensor.sequence_parallel",
                "Megatron-LM asks for sequence parallelism where experts meet tensor parallelism",
                "set strategy.tensor.sequence_parallel = true");
  }
  if (const double capacity = plan.Number("resolved.strategy.expert.capacity_factor");
      capacity > 0) {
    flags->push_back(absl::StrCat("--moe-expert-capacity-factor ", capacity));
    flags->emplace_back("--moe-pad-expert-input-to-capacity");
  }
}

// Ranks of one stage are neighbours unless the pipeline turns faster than the replicas; then the
// stages of the experts' replicas must be those of all others.
void OrderFlags(const ExportInput& plan, Flags* flags) {
  const std::string order = plan.Text("plan.mesh_order", "tp-cp-ep-dp-pp");
  if (order == "tp-cp-ep-dp-pp") return;
  if (order != "tp-cp-ep-pp-dp") {
    plan.Cannot("mesh.order", absl::StrCat("Megatron-LM does not number ranks as ", order),
                "legal: \"tp-cp-ep-dp-pp\", \"tp-cp-ep-pp-dp\"");
    return;
  }
  flags->emplace_back("--use-tp-pp-dp-mapping");
  const std::int64_t experts = plan.Integer("plan.expert", 1) * ExpertTensor(plan),
                     others = plan.Integer("plan.tensor", 1) * plan.Integer("plan.context", 1);
  if (plan.Integer("resolved.model.experts") == 0 || plan.Integer("plan.pipeline", 1) == 1 ||
      experts == others)
    return;
  plan.Cannot("mesh.order",
              absl::StrCat("with the pipeline inside of the replicas Megatron-LM asks for as many "
                           "replicas of experts as of all else, so for ",
                           others, " expert ranks x expert tensor ranks, not ", experts),
              "set mesh.order = \"tp-cp-ep-dp-pp\"");
}

// Whether a recipe has numbers of what is kept for the backward pass.
bool KeepsNarrower(const ExportInput& plan) {
  const Value* constants = plan.Find("provenance");
  if (constants == nullptr) return false;
  return std::any_of(constants->array.begin(), constants->array.end(), [](const Value& one) {
    const Value* name = one.Find("name");
    return name != nullptr && name->text.rfind("precision.saved.", 0) == 0;
  });
}

}  // namespace

Flags ParallelFlags(const ExportInput& plan) {
  CheckStrategies(plan);
  const std::int64_t tensor = plan.Integer("plan.tensor", 1),
                     context = plan.Integer("plan.context", 1);
  Flags flags = {absl::StrCat("--tensor-model-parallel-size ", tensor),
                 absl::StrCat("--pipeline-model-parallel-size ", plan.Integer("plan.pipeline", 1)),
                 absl::StrCat("--context-parallel-size ", context)};
  // Queries of each key-value head stay together, and no release of this age repeats a head.
  const std::int64_t groups = plan.Integer("resolved.model.kv_heads");
  if (groups > 0 && groups % tensor != 0 && plan.Integer("resolved.model.kv_lora") == 0) {
    plan.Cannot(
        "strategy.tensor.degree",
        absl::StrCat("Megatron-LM core_v0.13.0 cuts the ", groups,
                     " key-value heads over the tensor ranks, and they do not divide by ", tensor),
        absl::StrCat("use a divisor of ", groups));
  }
  if (tensor > 1 && plan.Boolean("plan.sequence_parallel"))
    flags.emplace_back("--sequence-parallel");
  if (tensor > 1 && plan.Number("resolved.strategy.tensor.overlap") > 0) {
    flags.emplace_back("--tp-comm-overlap");
    if (!plan.Boolean("plan.sequence_parallel")) {
      plan.Cannot("strategy.tensor.overlap",
                  "Megatron-LM overlaps tensor traffic only with sequence parallelism",
                  "set strategy.tensor.sequence_parallel = true, or strategy.tensor.overlap = 0");
    }
  }
  if (context > 1) {
    const std::int64_t tokens = plan.Integer("plan.sequence_length");
    if (tokens % (2 * context) != 0) {
      plan.Cannot("training.sequence_length",
                  absl::StrCat("Megatron-LM cuts a sequence into 2 x ", context,
                               " parts over the context ranks, and ", tokens, " does not divide"),
                  absl::StrCat("use a multiple of ", 2 * context));
    }
    // The words of Transformer Engine, which they are handed to.
    const std::string method = plan.Text("plan.context_method", "ring");
    flags.push_back(absl::StrCat("--cp-comm-type ", method == "ring"     ? "p2p"
                                                    : method == "gather" ? "all_gather"
                                                                         : "a2a"));
  }
  ScheduleFlags(plan, &flags);
  StateFlags(plan, &flags);
  ExpertFlags(plan, &flags);
  OrderFlags(plan, &flags);
  return flags;
}

Flags RecomputeFlags(const ExportInput& plan) {
  const std::string mode = plan.Text("plan.recompute.mode", "none");
  if (mode == "none") return {};
  if (mode == "full") {
    const std::int64_t segment = plan.Integer("plan.recompute.segment", 1),
                       layers = plan.Integer("plan.recompute.layers"),
                       chunks = plan.Integer("plan.chunks", 1);
    if (plan.Integer("plan.recompute.stride", 1) > 1) {
      plan.Cannot("strategy.checkpointing.stride",
                  "Megatron-LM replays the first layers of a rank, not every so many-th",
                  "set strategy.checkpointing.layers instead of stride");
    }
    if (layers % chunks != 0) {
      plan.Cannot("strategy.checkpointing.layers",
                  absl::StrCat("Megatron-LM replays as many layers of each chunk, and ", layers,
                               " are not whole over ", chunks, " chunks"),
                  absl::StrCat("use a multiple of ", chunks));
    }
    Flags flags = {"--recompute-granularity full"};
    flags.push_back(absl::StrCat("--recompute-method ", layers > 0 ? "block" : "uniform"));
    flags.push_back(
        absl::StrCat("--recompute-num-layers ", layers > 0 ? layers / chunks : segment));
    return flags;
  }
  const Value* modules = plan.Find("plan.recompute.modules");
  std::string names;
  for (const Value& item : modules != nullptr ? modules->array : std::vector<Value>()) {
    if (item.text == "attention") {
      names += " core_attn";
    } else {
      plan.Cannot("strategy.checkpointing.modules",
                  absl::StrCat("Megatron-LM core_v0.13.0 has no selective recomputation of ",
                               item.text, " alone"),
                  "legal: [\"attention\"]; or mode = \"full\"");
    }
  }
  return {"--recompute-granularity selective", absl::StrCat("--recompute-modules", names)};
}

Flags PrecisionFlags(const ExportInput& plan) {
  const auto dtype = [&](const char* name) {
    return plan.Text(absl::StrCat("plan.precision.", name));
  };
  const std::string weights = dtype("parameters"), compute = dtype("compute"),
                    gradients = dtype("gradients"), moments = dtype("moments"),
                    master = dtype("master");
  const bool shorter = moments != "fp32";
  Flags flags;
  if (weights == "bf16" || weights == "fp16") {
    flags.push_back(absl::StrCat("--", weights));
    // With short moments the copy is what a bf16 weight lacks of fp32: 2 bytes.
    const bool rest = shorter && weights == "bf16";
    if (rest && master == "fp32") {
      plan.Differs("precision.master",
                   "with short moments Megatron-LM and Transformer Engine 2.1 keep only those 2 "
                   "bytes of the fp32 copy that the bf16 weight lacks, 2 fewer than planned",
                   "plan with precision.master = \"bf16\" for its own accounts");
    } else if (master != "fp32" && !(rest && master == "bf16")) {
      plan.Cannot("precision.master",
                  absl::StrCat("Megatron-LM keeps an fp32 copy of ", weights, " weights"),
                  "set precision.master = \"fp32\"");
    }
  } else if (weights == "fp32" && master != "none") {
    plan.Cannot("precision.master", "Megatron-LM keeps no second copy of fp32 weights",
                "set precision.master = \"none\"");
  } else if (weights != "fp32") {
    plan.Cannot(
        "precision.parameters",
        absl::StrCat("Megatron-LM core_v0.13.0 keeps weights in bf16, fp16 or fp32, not ", weights),
        "set precision.parameters = \"bf16\"");
  }
  if (plan.Integer("resolved.model.experts") > 0 && weights != "bf16") {
    plan.Cannot(
        "precision.parameters",
        absl::StrCat("Megatron-LM multiplies experts in groups in bf16 alone, not in ", weights),
        "set precision.parameters = \"bf16\"");
  }
  if (compute == "fp8") {
    flags.emplace_back("--fp8-format hybrid");
    flags.emplace_back("--fp8-recipe delayed");
    if (KeepsNarrower(plan)) {
      plan.Differs("precision.recipe",
                   "the plan keeps inputs in fp8 for the backward pass, and Megatron-LM "
                   "core_v0.13.0 has no flag for what is kept: Transformer Engine decides",
                   "plan with precision.recipe = \"megatron-fp8\" to have them in bf16");
    }
  } else if (compute != weights) {
    plan.Cannot(
        "precision.compute",
        absl::StrCat("Megatron-LM computes in the weights' dtype, ", weights, ", not in ", compute),
        weights == "fp32" ? "set precision.recipe = \"megatron-bf16\""
                          : absl::StrCat("set precision.compute = \"", weights, "\""));
  }
  // bf16 alone means that gradients are summed and reduced in 4 bytes; fp16 alone that they are
  // not.
  if (gradients == "bf16" && weights == "bf16") {
    flags.emplace_back("--grad-reduce-in-bf16");
  } else if (gradients == "fp32" && weights == "fp16") {
    flags.emplace_back("--accumulate-allreduce-grads-in-fp32");
  } else if (gradients != "fp32" && gradients != weights) {
    plan.Cannot(
        "precision.gradients",
        absl::StrCat("Megatron-LM keeps no ", gradients, " gradients of ", weights, " weights"),
        "set precision.gradients = \"fp32\"");
  }
  if (dtype("gradient_reduce") != gradients) {
    plan.Cannot("precision.gradient_reduce",
                absl::StrCat("Megatron-LM reduces gradients as it keeps them, in ", gradients),
                absl::StrCat("set precision.gradient_reduce = \"", gradients, "\""));
  }
  if (shorter || plan.Text("plan.offload", "none") == "optimizer") {
    flags.emplace_back("--use-precision-aware-optimizer");
    if (plan.Text("plan.optimizer") != "adam") {
      plan.Cannot(shorter ? "precision.moments" : "strategy.zero.offload",
                  "Megatron-LM keeps short moments, and state on the host, with Adam alone",
                  "set optimizer.plugin = \"adam\"");
    }
  }
  if (shorter && (moments == "bf16" || moments == "fp16") && plan.Integer("plan.zero_stage") == 1) {
    flags.push_back(absl::StrCat("--exp-avg-dtype ", moments));
    flags.push_back(absl::StrCat("--exp-avg-sq-dtype ", moments));
  } else if (shorter) {
    plan.Cannot("precision.moments",
                absl::StrCat("Megatron-LM keeps ", moments,
                             " moments only in its distributed optimizer, as bf16 or fp16"),
                "set precision.moments = \"fp32\", or strategy.zero.stage = 1 with bf16");
  }
  const bool fused = plan.Text("resolved.training.attention") == "fused";
  flags.emplace_back(fused ? "--attention-backend flash" : "--attention-backend unfused");
  if (fused && weights == "fp32") {
    plan.Cannot("training.attention", "FlashAttention works in 16 bits, not in fp32",
                "set training.attention = \"eager\", or precision.recipe = \"megatron-bf16\"");
  }
  return flags;
}

}  // namespace shardlab::export_megatron
