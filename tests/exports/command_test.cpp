// shardlab export: the files that come out can be read by the languages they are in, state their
// framework and version, and what a framework cannot do is told, all of it, with a remedy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "exports/exported.h"

namespace shardlab::exports {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMegatron = "lessons/17-megatron-flags/scenario.toml";
constexpr const char* kDeepspeed = "lessons/18-deepspeed-config/scenario.toml";
constexpr const char* kFsdp = "lessons/19-fsdp-code/scenario.toml";

struct Case {
  const char* name;
  const char* scenario;
  std::vector<std::string> sets;
};

// Plans of many shapes, each by an exporter that can say it.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"megatron", kMegatron, {}},
      {"megatron", "scenarios/70b-interleaved.toml", {}},
      {"megatron", "scenarios/405b-uneven-stages.toml", {}},
      {"megatron", "scenarios/mixtral-8x7b-ep8-32-gpus.toml", {}},
      {"megatron", "scenarios/qwen3-30b-a3b-32-gpus.toml", {}},
      {"megatron", "scenarios/gpt3-175b-tp8-pp8-a100.toml", {}},
      {"deepspeed", kDeepspeed, {}},
      {"deepspeed", kDeepspeed, {"strategy.zero.stage=2"}},
      {"deepspeed", kDeepspeed, {"strategy.zero.stage=1", "schedule.degree=4"}},
      {"deepspeed", kDeepspeed, {"accounting=operator", "strategy.zero.offload=all"}},
      {"deepspeed", kDeepspeed, {"hardware.devices=8", "hardware.nodes=1"}},
      {"fsdp", kFsdp, {}},
      {"fsdp",
       kFsdp,
       {"accounting=operator", "precision.recipe=fsdp-mixed", "strategy.fsdp.offload=all"}},
      {"fsdp", "scenarios/70b-hybrid-shard-128-gpus.toml", {}},
      {"fsdp",
       "scenarios/7b-fsdp-8-gpus.toml",
       {"strategy.fsdp.blocks_per_unit=2", "strategy.fsdp.reshard_after_forward=false",
        "strategy.fsdp.prefetch=2"}},
  };
  return cases;
}

TEST(ExportCommand, EveryFileIsReadByItsLanguage) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(std::string(c.name) + " " + c.scenario + " " + ::testing::PrintToString(c.sets));
    const Exported exported = Export(c.name, c.scenario, c.sets);
    ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
    ASSERT_FALSE(exported.document.at("files").empty());
    for (const Json& file : exported.document.at("files")) {
      const std::string name = file.at("name"), text = file.at("text");
      SCOPED_TRACE(name);
      ASSERT_FALSE(text.empty());
      EXPECT_EQ(text.back(), '\n');
      const std::string suffix = fs::path(name).extension().string();
      if (suffix == ".sh") {
        EXPECT_EQ(Checked("bash -n", text, suffix), 0) << text;
      } else if (suffix == ".py") {
        EXPECT_EQ(Checked("python3 -m py_compile", text, suffix), 0) << text;
      } else if (suffix == ".json") {
        EXPECT_TRUE(Json::accept(text)) << text;
        EXPECT_EQ(Checked("python3 -m json.tool", text, suffix), 0) << text;
      } else {
        ADD_FAILURE() << "no reader for " << suffix;
      }
    }
  }
}

TEST(ExportCommand, TheDocumentSaysFrameworkAndVersionAndSoDoesAFile) {
  for (const Case& c : Cases()) {
    const Exported exported = Export(c.name, c.scenario, c.sets);
    EXPECT_EQ(exported.document.at("schema"), "shardlab.export/1");
    EXPECT_FALSE(exported.document.at("framework").get<std::string>().empty());
    const std::string version = exported.document.at("version");
    std::string all;
    for (const Json& file : exported.document.at("files")) all += file.at("text");
    EXPECT_THAT(all, HasSubstr(version));
  }
}

TEST(ExportCommand, WhatOnlyTheUserKnowsStopsAScriptThatDoesNotHaveIt) {
  const std::string script = Export("megatron", kMegatron).Text("train.sh");
  for (const char* name : {"DATA_PATH", "TOKENIZER_TYPE", "TOKENIZER_MODEL", "MEGATRON_PATH"})
    EXPECT_THAT(script, HasSubstr(std::string(name) + "=${" + name + ":?"));
  EXPECT_NE(Checked("env -i bash", script, ".sh"), 0);
  EXPECT_THAT(Export("fsdp", kFsdp).Text("train.py"), HasSubstr("os.environ[\"DATA_PATH\"]"));
}

TEST(ExportCommand, ANameCannotLeaveItsComment) {
  const std::string name = "name=\"a\\nrm -rf x \\\"\\\"\\\" b\"";
  const std::string script = Export("megatron", kMegatron, {name}).Text("train.sh");
  EXPECT_THAT(script, HasSubstr("# a rm -rf x"));
  const std::string python = Export("fsdp", kFsdp, {name}).Text("train.py");
  EXPECT_EQ(Checked("python3 -m py_compile", python, ".py"), 0) << python;
}

TEST(ExportCommand, TextIsTheFileAndAFolderGetsThemAll) {
  const std::string file = std::string(SHARDLAB_SOURCE_DIR "/") + kMegatron;
  const ProgramRun text = RunProgram({"export", "megatron", file});
  EXPECT_EQ(text.out, Export("megatron", kMegatron).Text("train.sh"));
  const fs::path folder = fs::temp_directory_path() / "shardlab-export-folder";
  const ProgramRun run =
      RunProgram({"export", "deepspeed", std::string(SHARDLAB_SOURCE_DIR "/") + kDeepspeed, "-o",
                  folder.string()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  for (const char* name : {"ds_config.json", "train.py", "launch.sh"}) {
    std::ifstream in(folder / name);
    const std::string written{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(written, Export("deepspeed", kDeepspeed).Text(name)) << name;
  }
  fs::remove_all(folder);
  EXPECT_EQ(RunProgram({"export", "megatron", file, "-o", "/dev/null/x"}).status, 1);
}

TEST(ExportCommand, MistakesAreTold) {
  const std::string file = std::string(SHARDLAB_SOURCE_DIR "/") + kMegatron;
  const ProgramRun unknown = RunProgram({"export", "megatorn", file});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("no export \"megatorn\""), HasSubstr("megatron"),
                                 HasSubstr("deepspeed")));
  EXPECT_EQ(RunProgram({"export", "megatron", "nowhere.toml"}).status, 2);
  EXPECT_EQ(RunProgram({"export", "megatron"}).status, 2);
  const Exported refused = Export("megatron", kMegatron, {"strategy.tensor.degree=3"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_FALSE(refused.Errors().empty());
}

TEST(ExportCommand, DeepspeedsPipelineRefusesZero2And3) {
  for (const char* stage : {"2", "3"}) {
    const Exported exported =
        Export("deepspeed", kDeepspeed,
               {"schedule.degree=4", std::string("strategy.zero.stage=") + stage});
    EXPECT_EQ(exported.status, 2);
    EXPECT_FALSE(exported.document.contains("files"));
    EXPECT_THAT(exported.Errors(),
                ElementsAre(AllOf(HasSubstr("pipeline engine"), HasSubstr("ZeRO-"),
                                  HasSubstr("set strategy.zero.stage = 0 or 1"))));
  }
}

// Each starts in no version of the framework: Megatron-LM asserts, DeepSpeed raises.
TEST(ExportCommand, WhatAFrameworkRefusesAtItsStartIsRefusedHere) {
  const Exported megatron =
      Export("megatron", kMegatron,
             {"strategy.tensor.sequence_parallel=false", "strategy.tensor.overlap=0.5"});
  EXPECT_EQ(megatron.status, 2);
  EXPECT_THAT(megatron.Errors(),
              ElementsAre(AllOf(HasSubstr("sequence parallelism"), HasSubstr("overlap = 0"))));
  const Exported deepspeed =
      Export("deepspeed", kDeepspeed,
             {"strategy.zero.stage=0", "precision.parameters=fp16", "precision.compute=fp16",
              "precision.gradients=fp32", "precision.gradient_reduce=fp32"});
  EXPECT_EQ(deepspeed.status, 2);
  EXPECT_THAT(deepspeed.Errors(), ElementsAre(HasSubstr("in fp16 where no ZeRO stage is on")));
  const Exported experts = Export("megatron", "scenarios/qwen3-30b-a3b-32-gpus.toml",
                                  {"precision.parameters=fp16", "precision.compute=fp16"});
  EXPECT_EQ(experts.status, 2);
  EXPECT_THAT(experts.Errors(), Contains(AllOf(HasSubstr("experts"), HasSubstr("bf16"))));
}

// So do these, which a plan may well ask for.
TEST(ExportCommand, MegatronsRulesForHeadsExpertsAndRanksAreKept) {
  constexpr const char* kExperts = "scenarios/mixtral-8x7b-ep8-32-gpus.toml";
  struct Refusal {
    const char* scenario;
    std::vector<std::string> sets;
    const char* says;
  };
  const std::vector<Refusal> refusals = {
      {kMegatron,
       {"strategy.tensor.degree=16", "schedule.degree=1"},
       "8 key-value heads over the tensor ranks"},
      {kExperts, {"mesh.order=tp-cp-ep-pp-dp"}, "set mesh.order = \"tp-cp-ep-dp-pp\""},
      {kExperts,
       {"model.mlp_bias=true", "model.o_bias=true", "model.qkv_bias=true"},
       "biases beside experts"},
      {kMegatron,
       {"precision.parameters=fp32", "precision.compute=fp32", "precision.gradients=fp32",
        "precision.gradient_reduce=fp32", "precision.master=none"},
       "16 bits, not in fp32"},
      {"scenarios/qwen3-30b-a3b-32-gpus.toml",
       {"optimizer.plugin=sgd", "strategy.zero.offload=optimizer"},
       "with Adam alone"},
  };
  for (const Refusal& c : refusals) {
    SCOPED_TRACE(c.scenario + ::testing::PrintToString(c.sets));
    const Exported exported = Export("megatron", c.scenario, c.sets);
    EXPECT_EQ(exported.status, 2);
    EXPECT_THAT(exported.Errors(), ElementsAre(HasSubstr(c.says)));
  }
  // Pipeline inside of the replicas, where experts have as many replicas as the rest.
  const Exported same =
      Export("megatron", kExperts,
             {"mesh.order=tp-cp-ep-pp-dp", "strategy.expert.degree=1", "strategy.zero.stage=0"});
  EXPECT_EQ(same.status, 0) << same.document.dump(2);
  EXPECT_THAT(same.Text("train.sh"), HasSubstr("--use-tp-pp-dp-mapping"));
  // The soft-max over one chosen expert is 1: Megatron-LM asks that it comes before the choice.
  EXPECT_THAT(Export("megatron", kExperts, {"model.top_k=1"}).Text("train.sh"),
              HasSubstr("--moe-router-pre-softmax"));
}

// What a framework does in another way than is planned.
std::vector<std::string> Differences(const Exported& exported) {
  std::vector<std::string> out;
  for (const Json& d : exported.document.at("diagnostics"))
    if (d.at("code") == "export.differs") out.push_back(d.at("message"));
  return out;
}

// The correction of DeepSeek-V3's scores is learned without a gradient, where that is known to be
// what a bias of the router is; a bias in its product has no form.
TEST(ExportCommand, ACorrectionOfTheRoutersScoresIsABuffer) {
  constexpr const char* kExperts = "scenarios/qwen3-30b-a3b-32-gpus.toml";
  const Exported known = Export("megatron", kExperts, {"model.preset=moonlight-16b-a3b"});
  EXPECT_EQ(known.status, 0) << known.document.dump(2);
  EXPECT_THAT(Differences(known), ElementsAre(HasSubstr("buffer")));
  for (const char* flag :
       {"--moe-router-score-function sigmoid", "--moe-router-enable-expert-bias"})
    EXPECT_THAT(known.Text("train.sh"), HasSubstr(flag));
  EXPECT_THAT(Export("megatron", kExperts, {"model.router_bias=true"}).Errors(),
              ElementsAre(HasSubstr("bias in the router's product")));
}

// Tokens that cross to each server once are DeepEP's; 32 expert ranks are on 4 servers, the groups
// of which routing chooses some.
TEST(ExportCommand, TokensThatCrossOnceGoThroughTheFlexibleDispatcher) {
  constexpr const char* kExperts = "scenarios/qwen3-30b-a3b-32-gpus.toml";
  const std::vector<std::string> once = {
      "schedule.degree=1", "strategy.tensor.degree=1", "strategy.expert.degree=32",
      "strategy.expert.dispatch=each-server", "strategy.expert.servers_per_token=2"};
  const Exported exported = Export("megatron", kExperts, once);
  ASSERT_EQ(exported.status, 0) << exported.document.dump(2);
  for (const char* flag : {"--moe-token-dispatcher-type flex", "--moe-enable-deepep",
                           "--moe-router-num-groups 4", "--moe-router-group-topk 2"})
    EXPECT_THAT(exported.Text("train.sh"), HasSubstr(flag));
  std::vector<std::string> padded = once;
  padded.emplace_back("strategy.expert.capacity_factor=1.5");
  EXPECT_THAT(Export("megatron", kExperts, padded).Errors(),
              ElementsAre(HasSubstr("all-to-all dispatcher only")));
}

// Two experts are on two servers at most, which is what three servers a token would say; and eight
// experts of one server are too few for a token that is routed to sixteen.
TEST(ExportCommand, GroupsOfTheRouterHoldTheExpertsOfAToken) {
  const auto routed = [](const char* top_k, const char* servers) {
    return Export("megatron", "scenarios/qwen3-30b-a3b-32-gpus.toml",
                  {"strategy.expert.degree=32", "strategy.expert.dispatch=each-server",
                   "model.experts=32", top_k, servers});
  };
  const Exported free = routed("model.top_k=2", "strategy.expert.servers_per_token=3");
  ASSERT_EQ(free.status, 0) << free.document.dump(2);
  EXPECT_THAT(free.Text("train.sh"), Not(HasSubstr("--moe-router-num-groups")));
  EXPECT_THAT(free.Text("train.sh"), HasSubstr("--moe-enable-deepep"));
  EXPECT_THAT(routed("model.top_k=16", "strategy.expert.servers_per_token=1").Errors(),
              ElementsAre(HasSubstr("1 server has 8 experts, and a token is routed to 16")));
  EXPECT_EQ(routed("model.top_k=16", "strategy.expert.servers_per_token=2").status, 0);
}

// DeepSeek-V3's recipe keeps inputs of products in fp8; a flag for that there is none.
TEST(ExportCommand, WhatIsKeptInFp8IsTold) {
  const Exported exported =
      Export("megatron", kMegatron, {"accounting=operator", "precision.recipe=deepseek-fp8"});
  EXPECT_EQ(exported.status, 0);
  EXPECT_THAT(Differences(exported), Contains(AllOf(HasSubstr("fp8"), HasSubstr("backward pass"))));
  EXPECT_THAT(exported.Text("train.sh"), HasSubstr("--fp8-recipe delayed"));
  EXPECT_THAT(Differences(Export("megatron", kMegatron,
                                 {"accounting=operator", "precision.recipe=megatron-fp8"})),
              ElementsAre());
}

// Short moments are an optimizer of their own, which keeps less of the fp32 copy than is planned.
TEST(ExportCommand, AShortCopyOfTheWeightsIsTold) {
  const std::vector<std::string> moments = {"accounting=operator", "precision.recipe=megatron-bf16",
                                            "precision.moments=bf16"};
  const Exported exported = Export("megatron", kMegatron, moments);
  EXPECT_EQ(exported.status, 0);
  EXPECT_THAT(Differences(exported), ElementsAre(HasSubstr("2 fewer than planned")));
  const std::string script = exported.Text("train.sh");
  for (const char* flag : {"--use-precision-aware-optimizer", "--exp-avg-dtype bf16"})
    EXPECT_THAT(script, HasSubstr(flag));
}

TEST(ExportCommand, EverythingThatIsImpossibleIsToldAtOnce) {
  // Tensor and pipeline parallelism, a schedule, ZeRO-3 under a pipeline, an optimizer.
  const std::vector<std::string> sets = {"strategy.tensor.degree=2", "schedule.degree=4",
                                         "schedule.plugin=pipeline-zb-h1", "optimizer.plugin=muon"};
  const std::vector<std::string> deepspeed = Export("deepspeed", kDeepspeed, sets).Errors();
  EXPECT_EQ(deepspeed.size(), 4u) << ::testing::PrintToString(deepspeed);
  const std::vector<std::string> fsdp = Export("fsdp", kDeepspeed, sets).Errors();
  EXPECT_EQ(fsdp.size(), 3u) << ::testing::PrintToString(fsdp);
  const std::vector<std::string> megatron = Export("megatron", kDeepspeed, sets).Errors();
  EXPECT_THAT(megatron, AllOf(Contains(HasSubstr("no schedule pipeline-zb-h1")),
                              Contains(HasSubstr("ZeRO-3")), Contains(HasSubstr("muon"))));
}

TEST(ExportCommand, ModelsThatMegatronCannotBuildAreRefused) {
  for (const char* preset : {"gemma-2-9b", "olmo-2-7b"}) {
    const Exported exported =
        Export("megatron", kMegatron, {std::string("model.preset=") + preset, "schedule.degree=1"});
    EXPECT_EQ(exported.status, 2) << preset;
    EXPECT_THAT(exported.Errors(), Contains(HasSubstr("GPT has no"))) << preset;
  }
}

TEST(ExportCommand, NoFlagSetsDataParallelism) {
  for (const auto& [flag, value] : FlagsOf(Export("megatron", kMegatron).Text("train.sh")))
    EXPECT_THAT(flag, Not(HasSubstr("data-parallel")));
}

}  // namespace
}  // namespace shardlab::exports
