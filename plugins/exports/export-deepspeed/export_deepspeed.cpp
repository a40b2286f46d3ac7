#include "export_deepspeed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shardlab::export_deepspeed {
namespace {

// Parameters of one block: what is gathered at a time.
std::int64_t BlockParameters(const ExportInput& plan) {
  const std::int64_t table = plan.Integer("resolved.model.vocabulary") *
                             plan.Integer("resolved.model.hidden") *
                             (plan.Boolean("resolved.model.tied") ? 1 : 2);
  const std::int64_t norm = plan.Integer("resolved.model.hidden");  // the last one
  const std::int64_t layers = std::max<std::int64_t>(1, plan.Integer("model.layers", 1));
  return std::max<std::int64_t>(1, (plan.Integer("model.parameters") - table - norm) / layers);
}

std::string Server(const ExportInput& plan, std::int64_t* per_server) {
  const std::int64_t devices = plan.Integer("hardware.devices", 1);
  const Value* tiers = plan.Find("hardware.tiers");
  const Value* inner =
      tiers != nullptr && !tiers->array.empty() ? tiers->array[0].Find("devices") : nullptr;
  *per_server = inner != nullptr && inner->integer > 0 && devices % inner->integer == 0
                    ? inner->integer
                    : devices;
  return absl::StrCat(devices / *per_server);
}

}  // namespace

std::string ConfigText(const ExportInput& plan) {
  const std::int64_t stage = plan.Integer("plan.zero_stage"), block = BlockParameters(plan),
                     stated = plan.Integer("resolved.strategy.zero.bucket_size"),
                     bucket = stated > 0 ? stated : block;
  const std::string weights = plan.Text("plan.precision.parameters"),
                    gradients = plan.Text("plan.precision.gradients"),
                    offload = plan.Text("plan.offload", "none");
  const auto flag = [](bool on) { return on ? "true" : "false"; };
  std::vector<std::string> zero = {
      absl::StrCat("\"stage\": ", stage),
      absl::StrCat("\"overlap_comm\": ",
                   flag(stage == 3 || plan.Text("resolved.strategy.data.overlap") == "full")),
      "\"contiguous_gradients\": true", absl::StrCat("\"reduce_bucket_size\": ", bucket)};
  if (stage == 1 || stage == 2) {
    zero.emplace_back("\"reduce_scatter\": true");
    zero.push_back(absl::StrCat("\"allgather_bucket_size\": ", bucket));
  }
  if (stage == 3) {
    // One block ahead, freed after use; the defaults keep small tensors whole and up to a billion
    // parameters gathered.
    zero.push_back(absl::StrCat("\"stage3_prefetch_bucket_size\": ", block));
    zero.emplace_back("\"stage3_param_persistence_threshold\": 0");
    zero.push_back(absl::StrCat("\"stage3_max_live_parameters\": ", 2 * block));
    zero.emplace_back("\"stage3_max_reuse_distance\": 0");
    zero.emplace_back("\"stage3_gather_16bit_weights_on_model_save\": true");
  }
  if (offload != "none")
    zero.emplace_back("\"offload_optimizer\": { \"device\": \"cpu\", \"pin_memory\": true }");
  if (offload == "all")
    zero.emplace_back("\"offload_param\": { \"device\": \"cpu\", \"pin_memory\": true }");
  std::string text = absl::StrCat(
      "{\n  \"train_batch_size\": ", plan.Integer("plan.global_batch_size"),
      ",\n  \"train_micro_batch_size_per_gpu\": ", plan.Integer("plan.micro_batch_size"),
      ",\n  \"gradient_accumulation_steps\": ", plan.Integer("plan.micro_batches"),
      ",\n  \"bf16\": { \"enabled\": ", flag(weights == "bf16"),
      " },\n  \"fp16\": { \"enabled\": ", flag(weights == "fp16"),
      " },\n  \"data_types\": { \"grad_accum_dtype\": \"", gradients,
      "\" },\n  \"communication_data_type\": \"", plan.Text("plan.precision.gradient_reduce"),
      "\",\n  \"gradient_clipping\": 1.0,\n  \"optimizer\": { \"type\": \"AdamW\", \"params\": { "
      "\"adam_w_mode\": true } },\n  \"zero_optimization\": {\n");
  for (std::size_t i = 0; i < zero.size(); ++i)
    absl::StrAppend(&text, "    ", zero[i], i + 1 < zero.size() ? ",\n" : "\n");
  return text + "  }\n}\n";
}

std::string TrainText(const ExportInput& plan) {
  const bool pipeline = plan.Integer("plan.pipeline", 1) > 1,
             replays = plan.Text("plan.recompute.mode", "none") == "full";
  std::string text = absl::StrCat("\"\"\"", plan.Title(),
                                  "\n\nFor DeepSpeed 0.17.0; launch.sh starts it. What os.environ "
                                  "reads here is for the user to fill in.\n\"\"\"\n\n");
  absl::StrAppend(&text, "import json\nimport os\n");
  if (pipeline) absl::StrAppend(&text, "import runpy\n");
  absl::StrAppend(&text, "\nimport deepspeed\nimport torch\n");
  if (!pipeline)
    absl::StrAppend(&text, "from transformers import AutoConfig, AutoModelForCausalLM\n");
  absl::StrAppend(
      &text, "\nSEQUENCE_LENGTH = ", plan.Integer("plan.sequence_length"),
      "\nPARAMETERS = ", plan.Integer("model.parameters"),
      "\nSTEPS = int(os.environ[\"STEPS\"])\n\n"
      "with open(os.path.join(os.path.dirname(__file__), \"ds_config.json\")) as file:\n"
      "    config = json.load(file)\n"
      "config[\"optimizer\"][\"params\"][\"lr\"] = float(os.environ[\"LR\"])\n\n"
      "# A flat file of int32 tokens: each row is one sequence.\n"
      "tokens = torch.from_file(os.environ[\"DATA_PATH\"], dtype=torch.int32,\n"
      "                         size=os.path.getsize(os.environ[\"DATA_PATH\"]) // 4)\n"
      "rows = tokens[: tokens.numel() // SEQUENCE_LENGTH * SEQUENCE_LENGTH]\n"
      "rows = rows.view(-1, SEQUENCE_LENGTH)\n\n"
      "deepspeed.init_distributed()\n");
  if (pipeline) {
    absl::StrAppend(
        &text,
        "# The model as a list: MODEL_FILE defines layers (embedding, blocks, head), loss and the "
        "blocks'\n# class name, block.\n"
        "model_file = runpy.run_path(os.environ[\"MODEL_FILE\"])\n"
        "model = deepspeed.pipe.PipelineModule(\n    layers=model_file[\"layers\"],\n"
        "    num_stages=",
        plan.Integer("plan.pipeline"),
        ",\n    loss_fn=model_file[\"loss\"],\n"
        "    partition_method=\"type:\" + model_file[\"block\"],\n"
        "    activation_checkpoint_interval=",
        replays ? plan.Integer("plan.recompute.segment", 1) : 0,
        ",\n)\nengine, _, _, _ = deepspeed.initialize(\n    model=model, config=config, "
        "model_parameters=[p for p in model.parameters()],\n"
        "    training_data=torch.utils.data.StackDataset(rows, rows),  # inputs and labels, "
        "int32\n)\n"
        "for step in range(STEPS):\n    loss = engine.train_batch()\n");
    return text;
  }
  absl::StrAppend(
      &text,
      "model_config = AutoConfig.from_pretrained(os.environ[\"MODEL_PATH\"])\n"
      "model_config.use_cache = False\n"
      "with deepspeed.zero.Init(config_dict_or_path=config, enabled=config[\"zero_optimization\"]"
      "[\"stage\"] == 3):\n"
      "    model = AutoModelForCausalLM.from_config(model_config, attn_implementation=\"",
      plan.Text("resolved.training.attention") == "fused" ? "sdpa" : "eager",
      "\")\n"
      "count = sum(getattr(p, \"ds_numel\", p.numel()) for p in model.parameters())\n"
      "assert count == PARAMETERS, f\"MODEL_PATH has {count} parameters, the plan "
      "{PARAMETERS}\"\n");
  if (replays) absl::StrAppend(&text, "model.gradient_checkpointing_enable()\n");
  absl::StrAppend(&text,
                  "engine, _, loader, _ = deepspeed.initialize(\n    model=model, config=config, "
                  "model_parameters=model.parameters(), training_data=rows\n)\n"
                  "batches = iter(loader)\n"
                  "for _ in range(STEPS * config[\"gradient_accumulation_steps\"]):\n"
                  "    batch = next(batches).long().to(engine.device)\n"
                  "    loss = engine(input_ids=batch, labels=batch).loss\n"
                  "    engine.backward(loss)\n    engine.step()\n");
  return text;
}

std::string LaunchText(const ExportInput& plan) {
  std::int64_t per_server = 1;
  const std::string servers = Server(plan, &per_server);
  const bool pipeline = plan.Integer("plan.pipeline", 1) > 1;
  std::string text = absl::StrCat(
      "#!/usr/bin/env bash\n# ", plan.Title(), "\n# DeepSpeed 0.17.0 on ",
      plan.Integer("hardware.devices"), " GPUs.\nset -euo pipefail\n\n",
      "# To fill in: set these before the start.\n",
      "export DATA_PATH=${DATA_PATH:?a flat file of int32 tokens}\n",
      pipeline ? "export MODEL_FILE=${MODEL_FILE:?a Python file that defines layers, loss, block}\n"
               : "export MODEL_PATH=${MODEL_PATH:?a folder with the config.json of the model}\n",
      "export LR=${LR:?the learning rate} STEPS=${STEPS:?the number of steps}\n");
  if (servers == "1") {
    absl::StrAppend(&text, "\ndeepspeed --num_gpus ", per_server, " ");
  } else {
    absl::StrAppend(&text,
                    "HOSTFILE=${HOSTFILE:?a file with a line like server1 slots=", per_server,
                    " for each server}\n\ndeepspeed --hostfile \"$HOSTFILE\" --num_nodes ", servers,
                    " --num_gpus ", per_server, " ");
  }
  return absl::StrCat(text, "\\\n  \"$(dirname \"${BASH_SOURCE[0]}\")/train.py\"\n");
}

std::vector<ExportedFile> ExportDeepspeed::Files(const ExportInput& plan) const {
  Refuse(plan);
  return {{"ds_config.json", ConfigText(plan)},
          {"train.py", TrainText(plan)},
          {"launch.sh", LaunchText(plan)}};
}

}  // namespace shardlab::export_deepspeed

SHARDLAB_PLUGIN("export-deepspeed", shardlab::export_deepspeed::ExportDeepspeed,
                "configuration of DeepSpeed 0.17.0, with training loop and launch line")
