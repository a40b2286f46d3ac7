#include "export_megatron.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardlab::export_megatron {
namespace {

void AppendArray(const char* name, const Flags& flags, std::string* out) {
  absl::StrAppend(out, name, "=(\n");
  for (const std::string& flag : flags) absl::StrAppend(out, "  ", flag, "\n");
  absl::StrAppend(out, ")\n");
}

std::int64_t DevicesPerServer(const ExportInput& plan) {
  const std::int64_t devices = plan.Integer("hardware.devices", 1);
  const Value* tiers = plan.Find("hardware.tiers");
  if (tiers == nullptr || tiers->array.empty()) return devices;
  const Value* inner = tiers->array[0].Find("devices");
  const std::int64_t of_tier = inner != nullptr ? inner->integer : devices;
  return of_tier > 0 && devices % of_tier == 0 ? of_tier : devices;
}

Flags BatchFlags(const ExportInput& plan) {
  return {absl::StrCat("--micro-batch-size ", plan.Integer("plan.micro_batch_size")),
          absl::StrCat("--global-batch-size ", plan.Integer("plan.global_batch_size")),
          absl::StrCat("--seq-length ", plan.Integer("plan.sequence_length"))};
}

Flags OptimizerFlags(const ExportInput& plan) {
  const std::string optimizer = plan.Text("plan.optimizer");
  Flags flags = {"--lr \"$LR\"", "--train-iters \"$TRAIN_ITERS\""};
  if (optimizer == "adam") {
    flags.emplace_back("--optimizer adam");
  } else if (optimizer == "sgd") {
    flags.emplace_back("--optimizer sgd");
    flags.push_back(absl::StrCat("--sgd-momentum ", plan.Number("resolved.optimizer.momentum")));
  } else {
    plan.Cannot("optimizer.plugin",
                absl::StrCat("Megatron-LM core_v0.13.0 has no optimizer ", optimizer),
                "legal: adam, sgd");
  }
  return flags;
}

}  // namespace

void ExportMegatron::Init(const InitContext& context) {
  models_ = context.read_toml("models.toml");
}

std::vector<ExportedFile> ExportMegatron::Files(const ExportInput& plan) const {
  const std::string preset = plan.Text("resolved.model.preset");
  std::vector<std::string> fill = {
      "MEGATRON_PATH=${MEGATRON_PATH:?the folder of Megatron-LM core_v0.13.0}",
      "DATA_PATH=${DATA_PATH:?the prefix of the .bin and .idx files}",
      "TOKENIZER_TYPE=${TOKENIZER_TYPE:?what reads it, HuggingFaceTokenizer or another}",
      "LR=${LR:?the learning rate}",
      "TRAIN_ITERS=${TRAIN_ITERS:?the number of steps}",
      "NODE_RANK=${NODE_RANK:?the number of this server, from 0}",
      "MASTER_ADDR=${MASTER_ADDR:?the name of server 0}"};
  // No short circuit: all mistakes are told at once.
  const Flags parallel = ParallelFlags(plan);
  const Flags model = ModelFlags(plan, preset.empty() ? nullptr : models_.Find(preset), &fill);
  const Flags precision = PrecisionFlags(plan);
  const Flags recompute = RecomputeFlags(plan);
  const Flags optimizer = OptimizerFlags(plan);

  const std::int64_t devices = plan.Integer("hardware.devices"), server = DevicesPerServer(plan);
  std::string text = absl::StrCat(
      "#!/usr/bin/env bash\n# ", plan.Title(), "\n# For Megatron-LM core_v0.13.0 on ", devices,
      " GPUs. Data parallelism has no flag, it is what is left: ", devices, " / (",
      plan.Integer("plan.tensor"), " x ", plan.Integer("plan.context"), " x ",
      plan.Integer("plan.pipeline"), ") = ", plan.Integer("plan.data"), ";\n# micro-batches are ",
      plan.Integer("plan.global_batch_size"), " / (", plan.Integer("plan.micro_batch_size"), " x ",
      plan.Integer("plan.data"), ") = ", plan.Integer("plan.micro_batches"),
      ".\nset -euo pipefail\n\n# To fill in: set these before the start.\n");
  for (const std::string& line : fill) absl::StrAppend(&text, line, "\n");
  absl::StrAppend(&text, "\n");
  AppendArray("PARALLEL", parallel, &text);
  AppendArray("BATCH", BatchFlags(plan), &text);
  AppendArray("MODEL", model, &text);
  AppendArray("PRECISION", precision, &text);
  AppendArray("RECOMPUTE", recompute, &text);
  AppendArray("OPTIMIZER", optimizer, &text);
  AppendArray("DATA",
              {"--tokenizer-type \"$TOKENIZER_TYPE\"", "--tokenizer-model \"$TOKENIZER_MODEL\"",
               "--data-path \"$DATA_PATH\""},
              &text);
  absl::StrAppend(
      &text,
      "\n# One queue to the device: collectives then start in the order in which they are issued.\n"
      "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
      "torchrun --nproc-per-node ",
      server, " --nnodes ", devices / server,
      " --node-rank \"$NODE_RANK\" \\\n  --master-addr \"$MASTER_ADDR\" --master-port 29500 \\\n"
      "  \"$MEGATRON_PATH/pretrain_gpt.py\" \\\n"
      "  \"${PARALLEL[@]}\" \"${BATCH[@]}\" \"${MODEL[@]}\" \"${PRECISION[@]}\" \\\n"
      "  \"${RECOMPUTE[@]}\" \"${OPTIMIZER[@]}\" \"${DATA[@]}\"\n");
  return {{"train.sh", text}};
}

}  // namespace shardlab::export_megatron

SHARDLAB_PLUGIN("export-megatron", shardlab::export_megatron::ExportMegatron,
                "flags of Megatron-LM core_v0.13.0, as a shell script")
