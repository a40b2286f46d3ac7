// `shardlab validate`: its document, its text, its statuses, and the scenario behind a row.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char kRules[] =
    "required = [\"ffn\"]\n"
    "[[rule]]\ncolumns = { tp = 1, pp = 1, hardware = \"H100\" }\n"
    "[rule.scenario]\n"
    "\"model.plugin\" = \"llama\"\n\"model.layers\" = \"= layers\"\n\"model.hidden\" = \"= "
    "hidden\"\n"
    "\"model.heads\" = \"= heads\"\n\"model.ffn\" = \"= ffn\"\n"
    "\"model.vocabulary\" = \"= 128 * tp padding vocab\"\n"
    "\"hardware.plugin\" = \"accelerator\"\n\"hardware.devices\" = \"= gpus\"\n"
    "\"training.sequence_length\" = \"= seq\"\n\"training.micro_batch_size\" = \"= micro_batch\"\n"
    "\"training.global_batch_size\" = \"= global_batch\"\n"
    "\"strategy.tensor.degree\" = \"= tp\"\n"
    "[[rule]]\nwhen = { pp = \">1\" }\nscenario = { \"schedule.degree\" = \"= pp\" }\n"
    "[[rule]]\nwhen = { notes = \"*stall*\" }\nskip_step = \"stalled\"\n"
    "[[source]]\nname = \"ours\"\ntitle = \"our runs\"\nwhen = { id = \"run-*\" }\n"
    "memory = { of = \"reserved\", rank = \"last\", unit = \"GB\" }\n";

// CRLF, a quoted comma, blank cells, a column that nobody knows, an order of its own.
constexpr const char kRows[] =
    "step_s,id,gpus,layers,hidden,heads,ffn,vocab,seq,micro_batch,global_batch,tp,pp,dp,mem_gb,"
    "tokens_per_s_per_gpu,notes,colour\r\n"
    "0.5,run-1,8,8,1024,8,4096,1000,2048,1,64,2,,4,20,,\"fine, all of it\",red\r\n"
    ",run-2,8,8,1024,8,4096,1000,2048,1,64,1,2,4,,20000,,\r\n"
    "0.5,run-3,8,7,1024,8,4096,1000,2048,1,64,1,2,4,,,layers do not divide,\r\n"
    "0.5,run-4,8,8,1024,8,,1000,2048,1,64,2,,4,,,,\r\n"
    "0.5,run-5,8,8,1024,8,4096,1000,2048,1,64,2,,8,,,,\r\n"
    "0.5,run-6,8,8,1024,8,4096,1000,2048,1,64,2,,4,20,,a stall,\r\n"
    "1e-6,run-7,8,8,1024,8,4096,1000,2048,1,64,2,,4,,,,\r\n"
    "0.7,else-1,8,8,1024,8,4096,1000,2048,1,64,2,,4,,,,\r\n";

class Validate : public ::testing::Test {
 protected:
  Validate() : inside_(folder_.path()) {
    WriteFile("rules.toml", kRules);
    WriteFile("runs.csv", kRows);
  }

  static Json Document(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"validate",   "runs.csv", "--rules",
                                     "rules.toml", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    return Json::parse(run.out, nullptr, false);
  }

  static const Json& Row(const Json& document, const std::string& id) {
    for (const Json& row : document["rows"]) {
      if (row["id"] == id) return row;
    }
    ADD_FAILURE() << "no row " << id;
    static const Json none;
    return none;
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(Validate, EveryRowIsThereWithItsPredictionOrItsReason) {
  const Json d = Document();
  EXPECT_EQ(d["schema"], "shardlab.validation/1");
  EXPECT_EQ(d["file"], "runs.csv");
  EXPECT_EQ(d["counts"], Json({{"rows", 8}, {"planned", 5}, {"skipped", 3}}));
  EXPECT_EQ(d["rows"].size(), 8u);
  const Json& one = Row(d, "run-1");
  EXPECT_EQ(one["line"], 2);
  EXPECT_EQ(one["source"], "ours");
  const double predicted = one["step"]["predicted_seconds"];
  EXPECT_GT(predicted, 0);
  EXPECT_DOUBLE_EQ(one["step"]["error"], predicted / 0.5 - 1);
  EXPECT_EQ(one["memory"]["measured_bytes"], 20e9);
  EXPECT_EQ(one["memory"]["of"], "reserved");
  EXPECT_EQ(one["memory"]["rank"], "last");
  const Json& two = Row(d, "run-2");
  EXPECT_EQ(two["step"]["derived_from"], "tokens_per_s_per_gpu");
  EXPECT_DOUBLE_EQ(two["step"]["measured_seconds"], 64.0 * 2048 / (8 * 20000));
  EXPECT_THAT(Row(d, "run-3")["skipped"], HasSubstr("7 layers do not divide"));
  EXPECT_FALSE(Row(d, "run-3")["diagnostics"].empty());
  EXPECT_EQ(Row(d, "run-4")["skipped"], "not stated: ffn");
  EXPECT_EQ(Row(d, "run-5")["skipped"], "gpus are not tp x pp x cp x dp");
  EXPECT_EQ(Row(d, "run-6")["step"]["not_judged"], "stalled");
  EXPECT_TRUE(Row(d, "run-6")["step"]["error"].is_null());
  EXPECT_FALSE(Row(d, "run-6")["memory"]["error"].is_null());
  EXPECT_THAT(Row(d, "run-7")["step"]["not_judged"], HasSubstr("faster than"));
  EXPECT_EQ(Row(d, "else-1")["source"], "else");
}

TEST_F(Validate, TheTableIsTheMeanOfItsRows) {
  const Json d = Document();
  ASSERT_EQ(d["step"]["sources"].size(), 2u);
  const Json& ours = d["step"]["sources"][0];
  EXPECT_EQ(ours["source"], "ours");
  EXPECT_EQ(ours["title"], "our runs");
  EXPECT_EQ(ours["rows"], 2);
  const double a = std::abs(Row(d, "run-1")["step"]["error"].get<double>()),
               b = std::abs(Row(d, "run-2")["step"]["error"].get<double>());
  EXPECT_DOUBLE_EQ(ours["mean_absolute_error"], (a + b) / 2);
  EXPECT_EQ(ours["half_a"]["rows"].get<int>() + ours["half_b"]["rows"].get<int>(), 2);
  for (const char* baseline : {"constant", "own_constant", "roofline"})
    EXPECT_GT(ours["baselines"][baseline], 0) << baseline;
}

TEST_F(Validate, ARowIsPlannedAsItsScenarioIs) {
  const ProgramRun shown =
      RunProgram({"validate", "runs.csv", "--rules", "rules.toml", "--show", "run-1"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("vocabulary = 1024"));  // up to 128 x 2
  WriteFile("row.toml", shown.out);
  EXPECT_EQ(Document({"--show", "run-1"})["scenario"], shown.out);
  const Json plan = Json::parse(RunProgram({"plan", "row.toml", "--format", "json"}).out);
  const Json d = Document();
  EXPECT_EQ(plan["time"]["step_seconds"], Row(d, "run-1")["step"]["predicted_seconds"]);
  const Json& rank = plan["memory"]["ranks"].back();
  EXPECT_NEAR(Row(d, "run-1")["memory"]["predicted_bytes"].get<double>(),
              rank["allocated_bytes"].get<double>() + rank["fragmentation_bytes"].get<double>(),
              16);
}

TEST_F(Validate, TextTellsWhatJsonTells) {
  const ProgramRun run = RunProgram({"validate", "runs.csv", "--rules", "rules.toml", "--rows"});
  EXPECT_EQ(run.status, 0);
  for (const char* said : {"8 rows, 5 planned, 3 skipped", "step time", "memory", "not judged",
                           "not stated: ffn", "run-3", "from tokens/s"})
    EXPECT_THAT(run.out, HasSubstr(said));
  EXPECT_THAT(run.err, HasSubstr("nothing is known of a column colour"));
  const ProgramRun one =
      RunProgram({"validate", "runs.csv", "--rules", "rules.toml", "--source", "else", "--rows"});
  EXPECT_THAT(one.out, HasSubstr("else-1"));
  EXPECT_THAT(one.out, Not(HasSubstr("run-1")));
}

TEST_F(Validate, TheRulesThatShipAreFound) {
  // Beside the program or in share/ of where it is installed; a test's program stands elsewhere.
  const std::string rules = SHARDLAB_SOURCE_DIR "/validation/sources.toml";
  const ProgramRun run = RunProgram({"validate", SHARDLAB_SOURCE_DIR "/validation/measurements.csv",
                                     "--rules", rules, "--source", "kor"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace shardlab
