// What PyTorch 2.6.0's FSDP2 cannot do, each with the reason and what to set instead.

#include "absl/strings/str_cat.h"
#include "export_fsdp.h"

namespace shardlab::export_fsdp {
namespace {

void CheckDegrees(const ExportInput& plan) {
  const auto degree = [&](const char* path, const char* key, const char* what) {
    if (plan.Integer(path, 1) > 1) {
      plan.Cannot(key, absl::StrCat("fully_shard cuts state over data ranks, it has no ", what),
                  absl::StrCat("set ", key, " = 1, or export megatron"));
    }
  };
  degree("plan.tensor", "strategy.tensor.degree", "tensor parallelism");
  degree("plan.context", "strategy.context.degree", "context parallelism");
  degree("plan.expert", "strategy.expert.degree", "expert parallelism");
  degree("plan.pipeline", "schedule.degree", "pipeline");
}

void CheckState(const ExportInput& plan) {
  const Value* strategies = plan.Find("resolved.strategy");
  bool sharded = plan.Find("resolved.strategy.fsdp") != nullptr;
  if (strategies != nullptr) {
    for (const auto& [name, table] : strategies->table) {
      const Value* plugin = table.Find("plugin");
      if (plugin != nullptr && plugin->text == "fsdp") sharded = true;
      if (plugin == nullptr || plugin->text != "hierarchical-zero") continue;
      plan.Cannot(absl::StrCat("strategy.", name),
                  "fully_shard cuts weights, gradients and optimizer state over the same ranks",
                  "use strategy.fsdp with shard");
    }
  }
  const std::int64_t stage = plan.Integer("plan.zero_stage");
  if (!sharded && stage < 3) {
    plan.Cannot("strategy.zero.stage",
                absl::StrCat("fully_shard cuts weights, gradients and optimizer state together, "
                             "which is not ZeRO-",
                             stage),
                stage == 2 ? "set strategy.zero.stage = 3, or use strategy.fsdp with "
                             "reshard_after_forward = false"
                           : "set strategy.zero.stage = 3, or export deepspeed");
  }
  const std::string offload = plan.Text("plan.offload", "none");
  if (offload != "none" && offload != "all") {
    plan.Cannot("strategy.fsdp.offload", "FSDP2 keeps all of its shards on the host, or none",
                "legal: \"none\", \"all\"");
  }
  if (plan.Integer("resolved.strategy.fsdp.prefetch", 1) == 0) {
    plan.Cannot("strategy.fsdp.prefetch", "FSDP2 always gathers one unit ahead",
                "set strategy.fsdp.prefetch = 1");
  }
}

void CheckRest(const ExportInput& plan) {
  const std::string optimizer = plan.Text("plan.optimizer");
  if (optimizer != "adam") {
    plan.Cannot("optimizer.plugin",
                absl::StrCat("this export has no code for the optimizer ", optimizer),
                "legal: adam");
  }
  const std::string mode = plan.Text("plan.recompute.mode", "none");
  if (mode == "selective") {
    plan.Cannot("strategy.checkpointing.mode", "this export replays blocks, not the ops within one",
                "legal: \"none\", \"full\"");
  }
  if (mode == "full" && plan.Integer("plan.recompute.segment", 1) > 1) {
    plan.Cannot("strategy.checkpointing.segment",
                "each block is a unit of fully_shard and is replayed alone",
                "set strategy.checkpointing.segment = 1");
  }
}

}  // namespace

ShardedDtypes Check(const ExportInput& plan) {
  CheckDegrees(plan);
  CheckState(plan);
  CheckRest(plan);
  const auto dtype = [&](const char* name) {
    return plan.Text(absl::StrCat("plan.precision.", name));
  };
  const std::string weights = dtype("parameters"), compute = dtype("compute"),
                    gradients = dtype("gradients"), master = dtype("master"),
                    moments = dtype("moments");
  if (compute == "fp8") {
    plan.Cannot("precision.compute", "PyTorch 2.6.0 itself has no training in fp8",
                "set precision.compute = \"bf16\", or export megatron");
  }
  if (master == "none") {
    // The optimizer steps on the shards themselves, in their dtype.
    if (gradients != weights || moments != weights) {
      plan.Cannot(
          "precision.gradients",
          absl::StrCat("FSDP2 keeps gradients and moments in the dtype of its shards, ", weights),
          "set precision.recipe = \"fsdp-mixed\" or \"pure-bf16\"");
    }
    return {weights, compute, dtype("gradient_reduce")};
  }
  if (master != "fp32" || gradients == "fp32" || moments != "fp32") {
    plan.Cannot("precision.master",
                absl::StrCat("FSDP2 keeps no ", master,
                             " copy beside its weights: its shards are "
                             "fp32, gradients and moments too, and come to 16 bytes a parameter"),
                "set precision.recipe = \"fsdp-mixed\"");
  } else {
    plan.Differs("precision.master",
                 absl::StrCat("FSDP2 comes to 16 bytes a parameter in another way: an fp32 shard, "
                              "its fp32 gradient and two moments, and no ",
                              weights, " copy of the shard"),
                 "plan with precision.recipe = \"fsdp-mixed\" for its own accounts");
  }
  return {"fp32", compute, dtype("gradient_reduce")};
}

}  // namespace shardlab::export_fsdp
