// What DeepSpeed 0.17.0 cannot do, each with the reason and what to set instead.

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "export_deepspeed.h"

namespace shardlab::export_deepspeed {
namespace {

void RefuseDegrees(const ExportInput& plan) {
  const std::int64_t stage = plan.Integer("plan.zero_stage"),
                     pipeline = plan.Integer("plan.pipeline", 1);
  if (plan.Integer("plan.tensor", 1) > 1) {
    plan.Cannot("strategy.tensor.degree",
                "this export does not write DeepSpeed's AutoTP (tensor_parallel.autotp_size)",
                "set strategy.tensor.degree = 1, or export megatron");
  }
  if (plan.Integer("plan.context", 1) > 1) {
    plan.Cannot("strategy.context.degree",
                "a DeepSpeed configuration does not cut a sequence: that is the code of the model",
                "set strategy.context.degree = 1, or export megatron");
  }
  if (plan.Integer("plan.expert", 1) > 1) {
    plan.Cannot("strategy.expert.degree",
                "DeepSpeed spreads experts only in its own MoE layer, which the model must use",
                "set strategy.expert.degree = 1, or export megatron");
  }
  if (pipeline > 1 && stage > 1) {
    plan.Cannot("strategy.zero.stage",
                absl::StrCat("the pipeline engine of DeepSpeed refuses ZeRO-", stage,
                             ": it sums gradients of many micro-batches in place"),
                "set strategy.zero.stage = 0 or 1, or schedule.degree = 1");
  }
  if (pipeline == 1) return;
  const std::string schedule = plan.Text("plan.schedule");
  if (schedule != "pipeline-1f1b") {
    plan.Cannot("schedule.plugin",
                absl::StrCat("the pipeline engine of DeepSpeed has no schedule ", schedule),
                "legal: pipeline-1f1b");
  }
  const std::vector<std::int64_t> layers = plan.Integers("plan.layers");
  if (std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) != layers.end()) {
    plan.Cannot(
        "schedule.layers",
        "DeepSpeed counts layers of one type evenly over the stages, and this cut is uneven",
        "use a pipeline degree that divides the layers");
  }
}

void RefuseState(const ExportInput& plan) {
  const Value* strategies = plan.Find("resolved.strategy");
  for (const auto& [name, table] :
       strategies != nullptr ? strategies->table : std::vector<std::pair<std::string, Value>>()) {
    const Value* plugin = table.Find("plugin");
    if (plugin == nullptr || plugin->text != "hierarchical-zero") continue;
    plan.Cannot(absl::StrCat("strategy.", name),
                "this export has no form of state that is cut within a group alone",
                "use strategy.zero");
  }
  const std::int64_t data = plan.Integer("plan.data", 1),
                     shard = plan.Integer("plan.fsdp_shard", 1);
  if (plan.Find("resolved.strategy.fsdp") != nullptr) {
    if (shard != data) {
      plan.Cannot("strategy.fsdp.shard",
                  absl::StrCat("ZeRO-3 cuts over all ", data, " replicas, not over ", shard),
                  "set strategy.fsdp.shard = \"all\", or export fsdp");
    }
    if (!plan.Boolean("resolved.strategy.fsdp.reshard_after_forward", true)) {
      plan.Cannot("strategy.fsdp.reshard_after_forward",
                  "ZeRO-3 frees a block after its forward pass",
                  "set strategy.fsdp.reshard_after_forward = true, or export fsdp");
    }
    if (plan.Integer("resolved.strategy.fsdp.blocks_per_unit", 1) > 1) {
      plan.Cannot("strategy.fsdp.blocks_per_unit", "ZeRO-3 gathers parameters module by module",
                  "set strategy.fsdp.blocks_per_unit = 1, or export fsdp");
    }
  }
  if (plan.Integer("plan.zero_stage") == 2 && plan.Integer("plan.micro_batches", 1) > 1 &&
      plan.Text("resolved.strategy.zero.reduce") == "step") {
    plan.Cannot("strategy.zero.reduce", "ZeRO-2 of DeepSpeed reduces gradients every micro-batch",
                "set strategy.zero.reduce = \"micro_batch\"");
  }
  if (plan.Text("plan.offload", "none") == "all" && plan.Integer("plan.zero_stage") != 3) {
    plan.Cannot("strategy.zero.offload", "DeepSpeed keeps weights on the host with ZeRO-3 only",
                "set strategy.zero.stage = 3, or offload = \"optimizer\"");
  }
  if (plan.Text("plan.offload", "none") == "optimizer" && plan.Integer("plan.zero_stage") == 0) {
    plan.Cannot("strategy.zero.offload",
                "DeepSpeed keeps optimizer state on the host with ZeRO only",
                "set strategy.zero.stage = 1");
  }
}

void RefusePrecision(const ExportInput& plan) {
  const auto dtype = [&](const char* name) {
    return plan.Text(absl::StrCat("plan.precision.", name));
  };
  const std::string weights = dtype("parameters");
  const bool half = weights == "bf16" || weights == "fp16";
  if (!half && weights != "fp32") {
    plan.Cannot("precision.parameters",
                absl::StrCat("DeepSpeed keeps weights in bf16, fp16 or fp32, not in ", weights),
                "set precision.parameters = \"bf16\"");
  }
  if (dtype("compute") != weights) {
    plan.Cannot("precision.compute",
                absl::StrCat("DeepSpeed computes in the dtype of the weights, ", weights,
                             ", not in ", dtype("compute")),
                absl::StrCat("set precision.compute = \"", weights, "\""));
  }
  const std::string master = half ? "fp32" : "none";
  if (dtype("master") != master) {
    plan.Cannot("precision.master",
                half ? absl::StrCat("DeepSpeed keeps an fp32 copy of ", weights, " weights")
                     : "DeepSpeed keeps no second copy of fp32 weights",
                absl::StrCat("set precision.master = \"", master, "\""));
  }
  if (dtype("moments") != "fp32") {
    plan.Cannot("precision.moments", "the Adam of DeepSpeed keeps fp32 moments",
                "set precision.moments = \"fp32\"");
  }
  const std::string gradients = dtype("gradients");
  if (gradients != "fp32" && gradients != weights) {
    plan.Cannot(
        "precision.gradients",
        absl::StrCat("DeepSpeed keeps gradients in fp32 or in the dtype of the weights, ", weights),
        absl::StrCat("set precision.gradients = \"", weights, "\""));
  }
  if (weights == "bf16" && gradients == "bf16" && plan.Integer("plan.zero_stage") == 0) {
    plan.Cannot("precision.gradients",
                "DeepSpeed sums bf16 gradients in fp32 where no ZeRO stage is on",
                "set precision.gradients = \"fp32\", or strategy.zero.stage = 1");
  }
  if (weights == "fp16" && gradients == "fp32" && plan.Integer("plan.zero_stage") == 0) {
    plan.Cannot("precision.gradients",
                "DeepSpeed keeps gradients of fp16 weights in fp16 where no ZeRO stage is on",
                "set precision.gradients = \"fp16\", or strategy.zero.stage = 1");
  }
}

void RefuseRest(const ExportInput& plan) {
  const std::string optimizer = plan.Text("plan.optimizer");
  if (optimizer != "adam") {
    plan.Cannot("optimizer.plugin",
                absl::StrCat("this export has no configuration of the optimizer ", optimizer),
                "legal: adam");
  }
  const std::string mode = plan.Text("plan.recompute.mode", "none");
  if (mode == "selective") {
    plan.Cannot(
        "strategy.checkpointing.mode",
        "the code of the model decides what DeepSpeed replays; its switch is for whole blocks",
        "legal: \"none\", \"full\"");
  }
  if (mode == "full" && (plan.Integer("plan.recompute.stride", 1) > 1 ||
                         plan.Find("plan.recompute.layers") != nullptr)) {
    plan.Cannot("strategy.checkpointing.mode", "DeepSpeed replays all blocks or none",
                "leave strategy.checkpointing.stride and layers out");
  }
  if (mode == "full" && plan.Integer("plan.recompute.segment", 1) > 1 &&
      plan.Integer("plan.pipeline", 1) == 1) {
    plan.Cannot("strategy.checkpointing.segment",
                "outside of its pipeline engine the model's own switch replays block by block",
                "set strategy.checkpointing.segment = 1");
  }
}

}  // namespace

void Refuse(const ExportInput& plan) {
  RefuseDegrees(plan);
  RefuseState(plan);
  RefusePrecision(plan);
  RefuseRest(plan);
}

}  // namespace shardlab::export_deepspeed
