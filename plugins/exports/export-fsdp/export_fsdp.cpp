#include "export_fsdp.h"

#include "absl/strings/str_cat.h"

namespace shardlab::export_fsdp {
namespace {

std::string Torch(const std::string& dtype) {
  if (dtype == "bf16") return "torch.bfloat16";
  if (dtype == "fp16") return "torch.float16";
  return "torch.float32";
}

std::string Wrapping(const ExportInput& plan) {
  const bool frees = plan.Boolean("resolved.strategy.fsdp.reshard_after_forward", true);
  const std::int64_t blocks = plan.Integer("resolved.strategy.fsdp.blocks_per_unit", 1),
                     prefetch = plan.Integer("resolved.strategy.fsdp.prefetch", 1);
  const std::string how = "mesh=mesh, mp_policy=policy, **rest)\n";
  std::string text = absl::StrCat("rest = {\"reshard_after_forward\": ", frees ? "True" : "False",
                                  ", \"offload_policy\": offload}\n");
  if (blocks == 1) {
    absl::StrAppend(&text, "for layer in layers:\n    fully_shard(layer, ", how);
  } else {
    absl::StrAppend(&text, "for first in range(0, len(layers), ", blocks,
                    "):\n    unit = list(layers[first : first + ", blocks,
                    "])\n    fully_shard(unit, ", how);
  }
  absl::StrAppend(&text, "fully_shard(model, ", how);
  if (prefetch > 1) {
    absl::StrAppend(&text, "for i, layer in enumerate(layers):\n",
                    "    layer.set_modules_to_forward_prefetch(list(layers[i + 1 : i + 1 + ",
                    prefetch, "]))\n",
                    "    layer.set_modules_to_backward_prefetch(list(reversed(layers[max(0, i - ",
                    prefetch, ") : i])))\n");
  }
  return text;
}

std::string Replaying(const ExportInput& plan) {
  if (plan.Text("plan.recompute.mode", "none") != "full") return "";
  const std::int64_t stride = plan.Integer("plan.recompute.stride", 1),
                     first = plan.Integer("plan.recompute.layers");
  std::string range = "range(len(layers))";
  if (first > 0) range = absl::StrCat("range(min(", first, ", len(layers)))");
  if (stride > 1) range = absl::StrCat("range(0, len(layers), ", stride, ")");
  return absl::StrCat("for i in ", range, ":\n    layers[i] = checkpoint_wrapper(layers[i])\n");
}

std::string Mesh(const ExportInput& plan) {
  const std::int64_t data = plan.Integer("plan.data", 1),
                     shard = plan.Find("resolved.strategy.fsdp") != nullptr
                                 ? plan.Integer("plan.fsdp_shard", data)
                                 : data;
  if (shard == data)
    return absl::StrCat("mesh = init_device_mesh(\"cuda\", (", data,
                        ",), mesh_dim_names=(\"shard\",))\n");
  return absl::StrCat("mesh = init_device_mesh(\"cuda\", (", data / shard, ", ", shard,
                      "), mesh_dim_names=(\"replicate\", \"shard\"))\n");
}

std::string Head(const ExportInput& plan) {
  const std::int64_t devices = plan.Integer("hardware.devices", 1);
  return absl::StrCat(
      "\"\"\"", plan.Title(),
      "\n\nFor PyTorch 2.6.0 (FSDP2) and the transformers and accelerate libraries, on ", devices,
      " GPUs. What os.environ reads here\nis for the user to fill in: MODEL_PATH a folder with the "
      "model's config.json, DATA_PATH a flat file of int32\ntokens, LR, STEPS. On each server:\n\n"
      "    torchrun --nnodes $NNODES --nproc-per-node $GPUS --rdzv-backend c10d "
      "--rdzv-endpoint $HOST:29500 train.py\n\nwith $NNODES x $GPUS = ",
      devices, ".\n\"\"\"\n\nimport os\n\nimport torch\nimport torch.distributed as dist\n",
      "from accelerate import init_empty_weights\n",
      plan.Text("plan.recompute.mode", "none") == "full"
          ? "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
            "checkpoint_wrapper\n"
          : "",
      "from torch.distributed.device_mesh import init_device_mesh\n"
      "from torch.distributed.fsdp import ",
      plan.Text("plan.offload", "none") == "all" ? "CPUOffloadPolicy" : "OffloadPolicy",
      ", MixedPrecisionPolicy, fully_shard\n"
      "from transformers import AutoConfig, AutoModelForCausalLM\n\n");
}

std::string Model(const ExportInput& plan) {
  const bool offloads = plan.Text("plan.offload", "none") == "all";
  std::string text = absl::StrCat(
      "config = AutoConfig.from_pretrained(os.environ[\"MODEL_PATH\"])\n"
      "config.use_cache = False\n"
      "with init_empty_weights(include_buffers=False):\n"
      "    model = AutoModelForCausalLM.from_config(config, torch_dtype=KEPT, "
      "attn_implementation=\"",
      plan.Text("resolved.training.attention") == "fused" ? "sdpa" : "eager",
      "\")\ncount = sum(p.numel() for p in model.parameters())\n"
      "assert count == PARAMETERS, f\"MODEL_PATH has {count} parameters, the plan {PARAMETERS}\"\n"
      "layers = next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and "
      "len(m) == LAYERS)\n",
      Replaying(plan),
      "\npolicy = MixedPrecisionPolicy(param_dtype=GATHERED, reduce_dtype=REDUCED)\noffload = ",
      offloads ? "CPUOffloadPolicy(pin_memory=True)" : "OffloadPolicy()", "\n", Wrapping(plan),
      "\nhome = \"", offloads ? "cpu" : "cuda",
      "\"  # of the shards; none of them has any memory yet\n"
      "model._apply(lambda t: torch.empty_like(t, device=home) if t.device.type == \"meta\" else "
      "t.to(\"cuda\"))\n");
  if (plan.Boolean("resolved.model.tied")) absl::StrAppend(&text, "model.tie_weights()\n");
  return absl::StrCat(text,
                      "with torch.no_grad():\n"
                      "    for name, parameter in model.named_parameters():\n"
                      "        if parameter.dim() > 1:\n"
                      "            torch.nn.init.normal_(parameter, std=0.02)\n"
                      "        else:\n"
                      "            parameter.fill_(0.0 if name.endswith(\"bias\") else 1.0)\n\n");
}

}  // namespace

std::vector<ExportedFile> ExportFsdp::Files(const ExportInput& plan) const {
  const ShardedDtypes dtypes = Check(plan);
  std::string text = Head(plan);
  absl::StrAppend(&text, "LAYERS = ", plan.Integer("model.layers"),
                  "\nPARAMETERS = ", plan.Integer("model.parameters"),
                  "\nSEQUENCE_LENGTH = ", plan.Integer("plan.sequence_length"),
                  "\nMICRO_BATCH = ", plan.Integer("plan.micro_batch_size"),
                  "\nMICRO_BATCHES = ", plan.Integer("plan.micro_batches"),
                  "  # of a rank and step: global batch ", plan.Integer("plan.global_batch_size"),
                  "\nKEPT = ", Torch(dtypes.kept),
                  "  # shards, their gradients and moments\nGATHERED = ", Torch(dtypes.gathered),
                  "  # a block, just before its use\nREDUCED = ", Torch(dtypes.reduced),
                  "  # gradients, while they travel\n",
                  "\ndist.init_process_group(\"cpu:gloo,cuda:nccl\")\n"
                  "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))\n",
                  Mesh(plan), "\n", Model(plan));
  absl::StrAppend(
      &text,
      "optimizer = torch.optim.AdamW(model.parameters(), lr=float(os.environ[\"LR\"]))\n"
      "tokens = torch.from_file(os.environ[\"DATA_PATH\"], dtype=torch.int32,\n"
      "                         size=os.path.getsize(os.environ[\"DATA_PATH\"]) // 4)\n"
      "rows = tokens[: tokens.numel() // SEQUENCE_LENGTH * SEQUENCE_LENGTH].view(-1, "
      "SEQUENCE_LENGTH)\n"
      "at = dist.get_rank() * MICRO_BATCH  # each rank reads its own sequences\n"
      "for step in range(int(os.environ[\"STEPS\"])):\n"
      "    for _ in range(MICRO_BATCHES):\n"
      "        batch = rows[at : at + MICRO_BATCH].long().cuda()\n"
      "        at += dist.get_world_size() * MICRO_BATCH\n"
      "        loss = model(input_ids=batch, labels=batch).loss / MICRO_BATCHES\n"
      "        loss.backward()  # reduces the gradients of this micro-batch into the shards\n"
      "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
      "    optimizer.step()\n"
      "    optimizer.zero_grad()\n"
      "dist.destroy_process_group()\n");
  return {{"train.py", text}};
}

}  // namespace shardlab::export_fsdp

SHARDLAB_PLUGIN("export-fsdp", shardlab::export_fsdp::ExportFsdp,
                "code for PyTorch 2.6.0: fully_shard (FSDP2) and the loop around it")
