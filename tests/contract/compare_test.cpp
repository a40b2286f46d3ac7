// `shardlab compare`: its document, its text, its statuses; and what a whole run comes to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

constexpr const char kScenario[] =
    "name = \"good\"\n[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = "
    "\"h100-dgx\"\nnodes = 1\n[training]\nsequence_length = 4096\nglobal_batch_size = 128\n"
    "[strategy.tensor]\ndegree = 2\nsequence_parallel = true\n[strategy.zero]\nstage = 1\n";

class Compare : public ::testing::Test {
 protected:
  Compare() : inside_(folder_.path()) {
    WriteFile("good.toml", kScenario);
    WriteFile("bad.toml", "accounting = \"textbok\"\n");
    WriteFile("worse.toml", std::string(kScenario) + "[optimizer]\nplugin = \"adma\"\n");
  }

  static Json Run(std::vector<std::string> args) {
    args.insert(args.end(), {"--format", "json"});
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    return Json::parse(run.out, nullptr, false);
  }

  static const Json& Row(const Json& rows, const char* key, const std::string& name) {
    for (const Json& row : rows) {
      if (row[key] == name) return row;
    }
    ADD_FAILURE() << "no " << name << " in " << rows;
    static const Json none;
    return none;
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(Compare, TheDocumentIsTheTwoPlansAndTheirDifference) {
  const Json c = Run({"compare", "good.toml", "good.toml", "--set-a", "training.micro_batch_size=2",
                      "--set-b", "strategy.zero.stage=3"});
  const Json a = Run({"plan", "good.toml", "--set", "training.micro_batch_size=2"}),
             b = Run({"plan", "good.toml", "--set", "strategy.zero.stage=3"});
  EXPECT_EQ(c["schema"], "shardlab.compare/1");
  EXPECT_EQ(c["a"]["peak_bytes"], a["memory"]["peak_bytes"]);
  EXPECT_EQ(c["b"]["step_seconds"], b["time"]["step_seconds"]);
  EXPECT_EQ(c["a"]["verdict"], a["memory"]["verdict"]);

  EXPECT_EQ(c["settings"].size(), 2u) << c["settings"];
  const Json& stage = Row(c["settings"], "key", "strategy.zero.stage");
  EXPECT_EQ(stage["a"], 1);
  EXPECT_EQ(stage["b"], 3);

  for (const Json& row : c["memory"]) {
    const std::string key = row["account"].get<std::string>() + "_bytes";
    EXPECT_EQ(row["a_bytes"], a["memory"]["ranks"][0][key]) << key;
    EXPECT_EQ(row["b_bytes"], b["memory"]["ranks"][0][key]) << key;
    EXPECT_EQ(row["difference_bytes"].get<long long>(),
              row["b_bytes"].get<long long>() - row["a_bytes"].get<long long>());
  }
  EXPECT_EQ(Row(c["memory"], "account", "total")["b_bytes"], b["memory"]["peak_bytes"]);

  double parts_a = 0;
  for (const Json& row : c["time"]) {
    if (row["part"] != "step") parts_a += row["a_seconds"].get<double>();
  }
  const double step_a = a["time"]["step_seconds"];
  EXPECT_NEAR(parts_a, step_a, 1e-9 * step_a) << "the parts make the step";
  EXPECT_EQ(Row(c["throughput"], "name", "mfu")["b"], b["throughput"]["mfu"]);

  long long sent = 0;
  for (const Json& row : b["communication"]) {
    if (row["axis"] == "data") sent += row["bytes"].get<long long>();
  }
  EXPECT_EQ(Row(c["traffic"], "axis", "data")["b_bytes"], sent);
  EXPECT_TRUE(c["diagnostics"].is_array());
}

TEST_F(Compare, RowsThatDifferAddUpToTheDifferenceOfTheirAccount) {
  const Json c = Run({"compare", "good.toml", "good.toml", "--set-b", "strategy.zero.stage=3"});
  ASSERT_FALSE(c["memory_rows"].empty());
  double difference = 0, last = INFINITY;
  for (const Json& row : c["memory_rows"]) {
    if (row["account"] == "parameters") difference += row["difference_bytes"].get<double>();
    const double size = std::abs(row["difference_bytes"].get<double>());
    EXPECT_LE(size, last) << "the largest first";
    last = size;
    for (const char* side : {"a", "b"}) {
      const Json& bytes = row[absl::StrCat(side, "_bytes")];
      EXPECT_EQ(bytes.is_null(), row[absl::StrCat(side, "_formula")].is_null());
    }
  }
  const double account =
      Row(c["memory"], "account", "parameters")["difference_bytes"].get<double>();
  EXPECT_NEAR(difference, account, 100);
  EXPECT_LT(account, 0);
}

TEST_F(Compare, APlanAndItselfDoNotDiffer) {
  const Json c = Run({"compare", "good.toml", "good.toml"});
  for (const char* rows : {"settings", "memory_rows", "time_rows"}) EXPECT_TRUE(c[rows].empty());
  for (const Json& row : c["memory"]) EXPECT_EQ(row["difference_bytes"], 0);
  const ProgramRun text = RunProgram({"compare", "good.toml", "good.toml"});
  EXPECT_THAT(text.out, HasSubstr("both are set alike"));
}

TEST_F(Compare, TheTextFitsTheTerminal) {
  for (const int width : {80, 100}) {
    std::ostringstream out, err;
    Terminal terminal;
    terminal.width = width;
    EXPECT_EQ(RunShardlab({"compare", "good.toml", "good.toml", "--set-b", "strategy.zero.stage=3",
                           "--set-b", "optimizer.plugin=\"sgd\""},
                          out, err, terminal),
              0)
        << err.str();
    for (const char* word : {"set differently", "memory", "time", "throughput", "B - A"})
      EXPECT_THAT(out.str(), HasSubstr(word));
    const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
    for (const std::string& line : lines)
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
    EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
  }
}

TEST_F(Compare, MistakesOfBothFilesAreTold) {
  const ProgramRun run = RunProgram({"compare", "bad.toml", "worse.toml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("bad.toml:1"));
  EXPECT_THAT(run.err, HasSubstr("worse.toml:17"));
  EXPECT_EQ(RunProgram({"compare", "good.toml"}).status, 2);
  EXPECT_EQ(RunProgram({"compare", "good.toml", "none.toml"}).status, 2);
  const ProgramRun json = RunProgram({"compare", "bad.toml", "good.toml", "--format", "json"});
  EXPECT_EQ(json.status, 2);
  EXPECT_EQ(Json::parse(json.out)["schema"], "shardlab.diagnostics/1");
}

// --- whole runs
// -----------------------------------------------------------------------------------------------

TEST_F(Compare, TotalsOfARun) {
  EXPECT_FALSE(Run({"plan", "good.toml"}).contains("totals"));
  const std::vector<std::string> set = {"--set", "training.total_tokens=15e12"};
  const Json plan = Run({"plan", "good.toml", set[0], set[1]});
  const Json& totals = plan["totals"];
  const double steps = std::ceil(15e12 / (128 * 4096)), step = plan["time"]["step_seconds"];
  EXPECT_EQ(totals["steps"], static_cast<long long>(steps));
  EXPECT_DOUBLE_EQ(totals["days"], steps * step / 86400);
  EXPECT_DOUBLE_EQ(totals["device_hours"], steps * step / 3600 * 8);
  EXPECT_FALSE(totals.contains("cost")) << "nobody said a price";
  const Json priced =
      Run({"plan", "good.toml", set[0], set[1], "--set", "hardware.price_per_device_hour=2.5"});
  EXPECT_DOUBLE_EQ(priced["totals"]["cost"], 2.5 * priced["totals"]["device_hours"].get<double>());
  const ProgramRun text = RunProgram({"plan", "good.toml", set[0], set[1]});
  EXPECT_THAT(text.out, HasSubstr("15.00 trillion tokens"));
  EXPECT_THAT(text.out, HasSubstr("device-hours"));
  EXPECT_EQ(RunProgram({"plan", "good.toml", "--set", "training.total_tokens=0"}).status, 2);
}

TEST_F(Compare, APlanThatDoesNotFitSaysWhatDecides) {
  EXPECT_THAT(RunProgram({"plan", "good.toml"}).out, ::testing::Not(HasSubstr("decides")));
  const ProgramRun run = RunProgram({"plan", "good.toml", "--set", "strategy.zero.stage=0", "--set",
                                     "hardware.memory=\"40 GB\""});
  EXPECT_THAT(run.out, HasSubstr("DOES NOT FIT"));
  EXPECT_THAT(run.out, HasSubstr("decides   optimizer: 48.18"));
}

// --- optimizers
// -----------------------------------------------------------------------------------------------

// ZeRO knows no optimizer: it shards over its group whatever state there is.
TEST_F(Compare, ZeroShardsTheStateOfAnyOptimizer) {
  for (const char* optimizer : {"plugin = \"adam\"", "plugin = \"sgd\"\nmomentum = 0.9",
                                "plugin = \"sgd\"", "plugin = \"adam8bit\"", "plugin = \"muon\""}) {
    SCOPED_TRACE(optimizer);
    WriteFile("optimizer.toml", absl::StrCat("accounting = \"textbook\"\n", kScenario,
                                             "[optimizer]\n", optimizer, "\n"));
    const Json sharded = Run({"plan", "optimizer.toml"});
    const Json whole = Run({"plan", "optimizer.toml", "--set", "strategy.zero.stage=0"});
    const double bytes = whole["memory"]["ranks"][0]["optimizer_bytes"];
    EXPECT_GT(bytes, 0);
    EXPECT_NEAR(sharded["memory"]["ranks"][0]["optimizer_bytes"].get<double>(), bytes / 4, 1);
  }
}

TEST_F(Compare, AStepWithoutStateTakesTimeAllTheSame) {
  for (const char* recipe : {"fsdp-mixed", "megatron-bf16"}) {
    const auto seconds = [&](const char* optimizer) {
      return Run({"plan", "good.toml", "--set", absl::StrCat("optimizer.plugin=", optimizer),
                  "--set", absl::StrCat("precision.recipe=", recipe)})["time"]["optimizer_seconds"]
          .get<double>();
    };
    EXPECT_GT(seconds("sgd"), 0) << recipe;
    EXPECT_LT(seconds("sgd"), seconds("adam")) << recipe;
    // Less state than Adam, but products of whole matrices.
    EXPECT_LT(seconds("adam"), seconds("muon")) << recipe;
  }
}

// A machine as data prices as the machine in code does.
TEST_F(Compare, TheSameMachineAsDataAndAsCode) {
  const Json c = Run({"compare", "good.toml", "good.toml", "--set-b",
                      "hardware.plugin=\"accelerator\"", "--set-b", "hardware.preset=h100-sxm"});
  EXPECT_EQ(c["a"]["peak_bytes"], c["b"]["peak_bytes"]);
  EXPECT_DOUBLE_EQ(c["a"]["step_seconds"].get<double>(), c["b"]["step_seconds"].get<double>());
  EXPECT_TRUE(c["memory_rows"].empty());
  EXPECT_TRUE(c["time_rows"].empty());
}

// [hardware] file = "machine.toml" needs no plugin, and mistakes have places in that file.
TEST_F(Compare, AMachineFileBesideTheScenario) {
  std::string scenario = kScenario;
  const std::string code = "plugin = \"h100-dgx\"\nnodes = 1";
  scenario.replace(scenario.find(code), code.size(), "file = \"own/machine.toml\"\ndevices = 8");
  std::filesystem::create_directories("folder/own");
  WriteFile("folder/scenario.toml", scenario);
  const std::string machine =
      "machine = \"mine\"\nmemory = \"200 GB\"\nmemory_bandwidth = \"1 TB/s\"\npeak_bf16 = "
      "\"160 TFLOP/s\"\n[[tiers]]\nname = \"pcie\"\ndevices = 4\nbandwidth = \"32 GB/s\"\n"
      "[[tiers]]\nname = \"ethernet\"\nbandwidth = \"12.5 GB/s\"\n";
  WriteFile("folder/own/machine.toml", machine);
  const Json plan = Run({"plan", "folder/scenario.toml"});
  EXPECT_EQ(plan["hardware"]["name"], "mine");
  EXPECT_EQ(plan["hardware"]["memory_bytes"], 200'000'000'000);
  EXPECT_EQ(plan["hardware"]["tiers"][0]["devices"], 4);
  WriteFile("folder/own/machine.toml", machine + "lunch = 1\n");
  const ProgramRun run = RunProgram({"plan", "folder/scenario.toml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("folder/own/machine.toml:12:1: error: unknown key \"lunch\""));
  EXPECT_THAT(run.err, HasSubstr("    lunch = 1"));
}

TEST_F(Compare, HardwareListsPresetsWithTheSourceOfEachNumber) {
  const Json list = Run({"hardware"})["hardware"];
  const Json& presets = Row(list, "plugin", "accelerator")["presets"];
  EXPECT_EQ(presets.size(), 7u);
  for (const Json& preset : presets)
    EXPECT_EQ(preset["sources"].size() + 5, preset.size())
        << "but name, machine, tiers, source, sources";
  const ProgramRun text = RunProgram({"hardware"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("  gb200-nvl72\n"));
  EXPECT_THAT(text.out, HasSubstr("    memory 186 GB\n      ml-engineering book"));
}

}  // namespace
}  // namespace shardlab
