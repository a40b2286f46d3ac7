// What users and scripts rely on: the keys and types of JSON, exit statuses, --set, formats, help.
// Keys may be added; none of those below may go or change its type.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/plan_text.h"
#include "io/toml_value.h"
#include "support/plugins.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char kModelAndMachine[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = "
    "\"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 128\n";

// Both accountings, one pipeline rank and two, with and without what fills every part of the
// document.
const std::vector<std::pair<std::string, std::string>>& Scenarios() {
  static const auto* const all = [] {
    auto* list = new std::vector<std::pair<std::string, std::string>>;
    for (const char* accounting : {"textbook", "operator"}) {
      const std::string head =
          absl::StrCat("accounting = \"", accounting, "\"\n", kModelAndMachine);
      list->emplace_back(absl::StrCat(accounting, "-plain"), head);
      list->emplace_back(
          absl::StrCat(accounting, "-full"),
          head +
              "[strategy.tensor]\ndegree = 4\nsequence_parallel = true\n[strategy.zero]\nstage = "
              "2\n"
              "[strategy.checkpointing]\nmode = \"full\"\nsegment = 2\n[schedule]\ndegree = 2\n"
              "layers = [15, 17]\n");
      list->emplace_back(absl::StrCat(accounting, "-zero3"), head + "[strategy.zero]\nstage = 3\n");
    }
    return list;
  }();
  return *all;
}

std::vector<std::string> SplitAt(const std::string& text, char at) {
  return absl::StrSplit(text, at);
}

// A folder with the scenarios, and the current directory there.
class Contract : public ::testing::Test {
 protected:
  Contract() : inside_(folder_.path()) {
    for (const auto& [name, text] : Scenarios()) WriteFile(name + ".toml", text);
    WriteFile("good.toml", kModelAndMachine);
    WriteFile("bad.toml", "accounting = \"textbok\"\n");
  }

  static Json Plan(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"plan", file, "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = Json::parse(run.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << run.out;
    return document;
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

// --- the document of plan
// -------------------------------------------------------------------------------

// "path type": s string, b boolean, i integer, d a number (a double where it is none of bytes or
// counts), o object, a array, ? anything; a path through [] holds for each element.
constexpr const char* kPlanKeys[] = {
    "schema s",
    "scenario s",
    "accounting s",
    "resolved o",
    "model o",
    "hardware o",
    "plan o",
    "memory o",
    "time o",
    "throughput o",
    "communication a",
    "diagnostics a",
    "provenance a",
    "model.name s",
    "model.parameters i",
    "model.active_parameters i",
    "model.layers i",
    "hardware.name s",
    "hardware.devices i",
    "hardware.memory_bytes i",
    "hardware.tiers a",
    "hardware.tiers[].name s",
    "hardware.tiers[].devices i",
    "hardware.tiers[].bandwidth_bytes_per_second d",
    "hardware.tiers[].latency_seconds d",
    "hardware.tiers[].ports i",
    "plan.tensor i",
    "plan.sequence_parallel b",
    "plan.context i",
    "plan.pipeline i",
    "plan.chunks i",
    "plan.data i",
    "plan.expert i",
    "plan.expert_tensor i",
    "plan.expert_data i",
    "plan.zero_stage i",
    "plan.fsdp_shard i",
    "plan.replicate i",
    "plan.mesh_order s",
    "plan.micro_batch_size i",
    "plan.micro_batches i",
    "plan.global_batch_size i",
    "plan.sequence_length i",
    "plan.schedule s",
    "plan.layers a",
    "plan.layers[] i",
    "plan.recompute o",
    "plan.recompute.mode s",
    "plan.recompute.segment i",
    "plan.recompute.stride i",
    "plan.recompute.layers ?",
    "plan.recompute.modules a",
    "plan.precision o",
    "plan.precision.recipe s",
    "plan.precision.parameters s",
    "plan.precision.compute s",
    "plan.precision.gradients s",
    "plan.precision.gradient_reduce s",
    "plan.precision.master s",
    "plan.precision.moments s",
    "plan.optimizer s",
    "plan.software s",
    "memory.fits b",
    "memory.verdict s",
    "memory.capacity_bytes i",
    "memory.peak_bytes i",
    "memory.headroom_bytes i",
    "memory.worst_rank i",
    "memory.host o",
    "memory.host.capacity_bytes i",
    "memory.host.peak_bytes i",
    "memory.host.fits b",
    "memory.ranks a",
    "memory.ranks[].pipeline_rank i",
    "memory.ranks[].stages a",
    "memory.ranks[].stages[] i",
    "memory.ranks[].parameters_bytes i",
    "memory.ranks[].gradients_bytes i",
    "memory.ranks[].optimizer_bytes i",
    "memory.ranks[].activations_bytes i",
    "memory.ranks[].gathered_bytes i",
    "memory.ranks[].transient_bytes i",
    "memory.ranks[].allocated_bytes i",
    "memory.ranks[].fragmentation_bytes i",
    "memory.ranks[].outside_allocator_bytes i",
    "memory.ranks[].total_bytes i",
    "memory.ranks[].initialisation_peak_bytes i",
    "memory.ranks[].first_step_peak_bytes i",
    "memory.ranks[].in_flight_micro_batches d",
    "time.step_seconds d",
    "time.rank i",
    "time.forward_seconds d",
    "time.backward_seconds d",
    "time.recompute_seconds d",
    "time.optimizer_seconds d",
    "time.bubble_seconds d",
    "time.bubble_fraction d",
    "time.own_bubble_seconds d",
    "time.exposed o",
    "time.exposed.tensor_seconds d",
    "time.exposed.context_seconds d",
    "time.exposed.expert_seconds d",
    "time.exposed.pipeline_seconds d",
    "time.exposed.data_seconds d",
    "time.hidden o",
    "time.hidden.tensor_seconds d",
    "time.hidden.context_seconds d",
    "time.hidden.expert_seconds d",
    "time.hidden.pipeline_seconds d",
    "time.hidden.data_seconds d",
    "time.approximate b",
    "throughput.tokens_per_second d",
    "throughput.tokens_per_second_per_device d",
    "throughput.model_flops_per_token d",
    "throughput.model_flops_per_second_per_device d",
    "throughput.mfu d",
    "throughput.mfu_convention s",
    "throughput.hfu d",
    "communication[].axis s",
    "communication[].collective s",
    "communication[].tensor s",
    "communication[].phase s",
    "communication[].author s",
    "communication[].count d",
    "communication[].bytes_per_call i",
    "communication[].bytes i",
    "communication[].group_size i",
    "communication[].spans a",
    "communication[].spans[] i",
    "communication[].tier s",
    "communication[].algorithm s",
    "communication[].declared b",
    "communication[].seconds d",
    "communication[].exposed_seconds d",
    "provenance[].name s",
    "provenance[].value ?",
    "provenance[].source s",
};

constexpr const char* kDiagnosticKeys[] = {"[].severity s", "[].code s", "[].message s",
                                           "[].file s",     "[].line i", "[].column i",
                                           "[].hint s"};

bool IsOf(const Json& value, char type) {
  switch (type) {
    case 's':
      return value.is_string();
    case 'b':
      return value.is_boolean();
    case 'i':
      return value.is_number_integer();
    case 'd':
      return value.is_number();
    case 'o':
      return value.is_object();
    case 'a':
      return value.is_array();
    default:
      return true;
  }
}

void CheckKey(const Json& at, const std::string& rest, char type, const std::string& whole) {
  if (rest.empty()) {
    EXPECT_TRUE(IsOf(at, type)) << whole << " is " << at.dump();
    return;
  }
  if (rest.rfind("[]", 0) == 0) {
    ASSERT_TRUE(at.is_array()) << whole;
    for (const Json& item : at)
      CheckKey(item, rest.substr(rest.size() > 2 && rest[2] == '.' ? 3 : 2), type, whole);
    return;
  }
  const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
  const std::string key = rest.substr(0, end);
  ASSERT_TRUE(at.is_object() && at.contains(key)) << whole << " is missing";
  CheckKey(at[key], rest.substr(end < rest.size() && rest[end] == '.' ? end + 1 : end), type,
           whole);
}

template <std::size_t N>
void CheckKeys(const Json& document, const char* const (&keys)[N]) {
  for (const std::string key : keys)
    CheckKey(document, key.substr(0, key.size() - 2), key.back(), key);
}

// Keys say their unit: bytes are whole numbers (rates are not bytes), seconds and rates are
// doubles.
void CheckUnits(const Json& json, const std::string& path) {
  if (json.is_array()) {
    for (const Json& item : json) CheckUnits(item, path + "[]");
  }
  if (!json.is_object()) return;
  const auto ends = [](const std::string& key, const std::string& tail) {
    return key.size() >= tail.size() &&
           key.compare(key.size() - tail.size(), tail.size(), tail) == 0;
  };
  for (const auto& [key, value] : json.items()) {
    const std::string at = absl::StrCat(path, ".", key);
    if (ends(key, "_bytes") || key == "bytes" || key == "bytes_per_call") {
      EXPECT_TRUE(value.is_number_integer()) << at << " is " << value;
    }
    if (ends(key, "_seconds") || ends(key, "_per_second") || ends(key, "_per_device")) {
      EXPECT_TRUE(value.is_number_float()) << at << " is " << value;
    }
    CheckUnits(value, at);
  }
}

TEST_F(Contract, PlanHasEveryKeyWithItsType) {
  for (const auto& [name, text] : Scenarios()) {
    SCOPED_TRACE(name);
    const Json document = Plan(name + ".toml");
    CheckKeys(document, kPlanKeys);
    CheckKeys(document["diagnostics"], kDiagnosticKeys);
    for (const char* part :
         {"model", "hardware", "plan", "memory", "time", "throughput", "communication"})
      CheckUnits(document[part], part);
    EXPECT_EQ(document["schema"], "shardlab.plan/1");
    EXPECT_EQ(document["scenario"], name) << "a scenario without a name has that of its file";
    EXPECT_TRUE(std::set<std::string>({"fits", "tight", "does_not_fit"})
                    .count(document["memory"]["verdict"]));
    EXPECT_EQ(document["memory"]["fits"], document["memory"]["verdict"] != "does_not_fit");
    EXPECT_TRUE(std::set<std::string>({"causal", "full", "6p"})
                    .count(document["throughput"]["mfu_convention"]));
    EXPECT_EQ(document["memory"]["ranks"].size(), document["plan"]["pipeline"]);
    EXPECT_EQ(document["plan"]["layers"].size(), document["plan"]["pipeline"].get<std::size_t>() *
                                                     document["plan"]["chunks"].get<std::size_t>());
    EXPECT_FALSE(document["provenance"].empty());
    for (const Json& row : document["communication"])
      EXPECT_EQ(row["spans"].size(), document["hardware"]["tiers"].size());
    EXPECT_EQ(RunProgram({"plan", name + ".toml", "--format", "json"}).out, document.dump(2) + "\n")
        << "and nothing else";
  }
}

TEST_F(Contract, TextbookLeavesOutWhatItSaysItLeavesOut) {
  for (const char* name : {"textbook-plain", "textbook-full", "textbook-zero3"}) {
    const Json document = Plan(absl::StrCat(name, ".toml"));
    for (const Json& rank : document["memory"]["ranks"]) {
      for (const char* account : {"gathered_bytes", "transient_bytes", "fragmentation_bytes",
                                  "outside_allocator_bytes"}) {
        EXPECT_EQ(rank[account], 0) << account;
      }
    }
    EXPECT_EQ(document["time"]["optimizer_seconds"], 0);
    EXPECT_EQ(document["throughput"]["mfu_convention"], "6p");
  }
}

// --- resolved
// -------------------------------------------------------------------------------------------

std::string ToScenario(const Json& value) {
  if (value.is_object()) {
    std::string out;
    for (const auto& [key, item] : value.items()) {
      if (item.is_null()) continue;  // left out: what it stands for is found again
      absl::StrAppend(&out, out.empty() ? "" : ", ", "\"", key, "\" = ", ToScenario(item));
    }
    return "{ " + out + " }";
  }
  if (value.is_array()) {
    std::string out;
    for (const Json& item : value) absl::StrAppend(&out, out.empty() ? "" : ", ", ToScenario(item));
    return "[" + out + "]";
  }
  return value.dump();
}

TEST_F(Contract, ResolvedWrittenBackIsTheSameScenario) {
  for (const auto& [name, text] : Scenarios()) {
    SCOPED_TRACE(name);
    const Json document = Plan(name + ".toml");
    std::string again;
    for (const auto& [key, value] : document["resolved"].items())
      absl::StrAppend(&again, key, " = ", ToScenario(value), "\n");
    WriteFile("again.toml", again);
    const ProgramRun run = RunProgram({"plan", "again.toml", "--format", "json"});
    ASSERT_EQ(run.status, 0) << run.err << again;
    Json other = Json::parse(run.out), before = document;
    // Places differ, and a default that is written out may be told to be of no use.
    before.erase("diagnostics");
    other.erase("diagnostics");
    EXPECT_TRUE(before.dump() == other.dump())
        << again << Json::diff(before, other).dump(1).substr(0, 2000);
  }
}

TEST_F(Contract, ResolvedHasTheDefaultsThatScriptsReadThere) {
  const Json textbook = Plan("textbook-full.toml")["resolved"],
             op = Plan("operator-full.toml")["resolved"];
  EXPECT_EQ(textbook["hardware"]["memory"], "80 GB");
  EXPECT_EQ(op["hardware"]["memory"], "81559 MiB");
  EXPECT_EQ(textbook["precision"]["recipe"], "textbook");
  EXPECT_EQ(op["precision"]["recipe"], "megatron-bf16");
  EXPECT_EQ(textbook["hardware"]["network"]["plugin"], "rail");
  EXPECT_EQ(op["hardware"]["network"]["plugin"], "nccl");
  EXPECT_EQ(textbook["strategy"]["data"]["overlap"], "none");
  EXPECT_EQ(op["strategy"]["data"]["overlap"], "full");
  EXPECT_EQ(textbook["schedule"]["transfers"], "ignore");
  EXPECT_EQ(op["schedule"]["transfers"], "exposed");
  for (const Json& resolved : {textbook, op}) {
    EXPECT_EQ(resolved["schedule"]["plugin"], "pipeline-1f1b");
    EXPECT_EQ(resolved["optimizer"]["plugin"], "adam");
    EXPECT_EQ(resolved["software"]["preset"], "generic");
    EXPECT_EQ(resolved["mesh"]["order"], "tp-cp-ep-dp-pp");
    EXPECT_EQ(resolved["hardware"]["efficiency"], 0.5);
    EXPECT_EQ(resolved["training"]["micro_batch_size"], 1);
    EXPECT_EQ(resolved["strategy"]["zero"]["reduce"], "micro_batch");
    EXPECT_EQ(resolved["strategy"]["tensor"]["overlap"], 0.0);
  }
  EXPECT_EQ(Plan("operator-plain.toml")["plan"]["zero_stage"], 0) << "0 without the table";
  WriteFile("zero.toml", std::string(kModelAndMachine) + "[strategy.zero]\n");
  EXPECT_EQ(Plan("zero.toml")["plan"]["zero_stage"], 1) << "1 with it";
}

// --- exit statuses
// --------------------------------------------------------------------------------------

TEST_F(Contract, ExitStatuses) {
  WriteFile("misses.toml", std::string(kModelAndMachine) + "[expect]\n\"plan.tensor\" = 8\n");
  WriteFile("holds.toml",
            std::string(kModelAndMachine) +
                "[expect]\n\"plan.tensor\" = 1\n\"plan.data\" = { min = 1, max = 64 }\n");
  EXPECT_EQ(RunProgram({"plan", "good.toml"}).status, 0);
  EXPECT_EQ(RunProgram({"plan", "holds.toml"}).status, 0);
  EXPECT_EQ(RunProgram({"plan", "bad.toml"}).status, 2);
  EXPECT_EQ(RunProgram({"plan", "none.toml"}).status, 2);
  EXPECT_EQ(RunProgram({"plan"}).status, 2);
  EXPECT_EQ(RunProgram({}).status, 2);
  // A plan that does not fit is a result; with --require-fit it is a status.
  const std::vector<std::string> small = {"plan", "good.toml", "--set", "hardware.memory=\"1 GB\""};
  std::vector<std::string> required = small;
  required.push_back("--require-fit");
  EXPECT_EQ(RunProgram(small).status, 0);
  const ProgramRun unfit = RunProgram(required);
  EXPECT_EQ(unfit.status, 3);
  EXPECT_FALSE(unfit.out.empty()) << "the plan is shown all the same";
  EXPECT_EQ(RunProgram({"plan", "textbook-full.toml", "--require-fit"}).status, 0);
  // [expect] is checked without --set alone.
  EXPECT_EQ(RunProgram({"plan", "misses.toml"}).status, 4);
  EXPECT_EQ(RunProgram({"plan", "misses.toml", "--set", "training.micro_batch_size=1"}).status, 0);
  // What the command line itself expects is checked, and it alone.
  const ProgramRun own = RunProgram({"plan", "misses.toml", "--set", "expect.plan.pipeline=7"});
  EXPECT_EQ(own.status, 4);
  EXPECT_NE(own.err.find("plan.pipeline"), std::string::npos) << own.err;
  EXPECT_EQ(own.err.find("plan.tensor"), std::string::npos) << own.err;
  EXPECT_EQ(RunProgram({"plan", "misses.toml", "--set", "expect.plan.pipeline=1"}).status, 0);
  EXPECT_EQ(RunProgram({"plan", "misses.toml", "--format", "csv"}).status, 4);
}

TEST_F(Contract, WithJsonErrorsAreADocumentToo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"plan", "bad.toml"},
                                             {"plan", "none.toml"},
                                             {"plan", "good.toml", "--set", "x"},
                                             {"explain", "bad.toml"},
                                             {"explain", "good.toml", "energy"},
                                             {"plan"},
                                             {"plan", "good.toml", "--sett", "a=1"},
                                             {"models", "llama"},
                                             {"plugins", "show", "none"},
                                             {"plugins", "sho"},
                                             {"nothing"}}) {
    std::vector<std::string> with = args;
    with.insert(with.end(), {"--format", "json"});
    SCOPED_TRACE(with[0] + " " + (with.size() > 1 ? with[1] : ""));
    const ProgramRun text = RunProgram(args), json = RunProgram(with);
    EXPECT_EQ(text.status, 2);
    EXPECT_EQ(json.status, 2);
    EXPECT_EQ(text.out, "");
    EXPECT_EQ(text.err, json.err);
    const Json document = Json::parse(json.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << json.out;
    EXPECT_EQ(document["schema"], "shardlab.diagnostics/1");
    ASSERT_FALSE(document["diagnostics"].empty());
    CheckKeys(document["diagnostics"], kDiagnosticKeys);
    for (const Json& d : document["diagnostics"])
      EXPECT_THAT(json.err, HasSubstr(d["message"].get<std::string>()));
  }
}

// --- formats
// --------------------------------------------------------------------------------------------

// A line of CSV.
std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

TEST_F(Contract, CsvIsOneRowOfAllScalarsOfTheDocument) {
  WriteFile("comma.toml", "name = \"a, \\\"b\\\"\"\n" + std::string(kModelAndMachine));
  const Json document = Plan("comma.toml");
  const ProgramRun run = RunProgram({"plan", "comma.toml", "--format", "csv"});
  EXPECT_EQ(run.status, 0);
  const std::vector<std::string> lines = absl::StrSplit(run.out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[2], "");
  const std::vector<std::string> header = Cells(lines[0]), row = Cells(lines[1]);
  ASSERT_EQ(header.size(), row.size());
  EXPECT_EQ(std::set<std::string>(header.begin(), header.end()).size(), header.size());
  for (std::size_t i = 0; i < header.size(); ++i) {
    const Json* at = &document;
    for (const std::string& part : SplitAt(header[i], '.')) at = &at->at(part);
    EXPECT_EQ(at->is_string() ? at->get<std::string>() : at->dump(), row[i]) << header[i];
  }
  for (const char* key :
       {"scenario", "plan.tensor", "memory.peak_bytes", "time.step_seconds", "throughput.mfu"}) {
    EXPECT_NE(std::find(header.begin(), header.end(), key), header.end()) << key;
  }
}

TEST_F(Contract, TextHasTheVerdictFirstAndNoColourByItself) {
  const ProgramRun run = RunProgram({"plan", "textbook-full.toml"});
  EXPECT_THAT(run.out, HasSubstr("FITS"));
  EXPECT_THAT(run.out, HasSubstr("step"));
  EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
  // Only a terminal has colour; main() asks for it unless NO_COLOR is set.
  std::ostringstream out, err;
  Terminal terminal;
  terminal.color_out = terminal.color_err = true;
  EXPECT_EQ(RunShardlab({"plan", "textbook-full.toml"}, out, err, terminal), 0);
  EXPECT_NE(out.str().find('\x1b'), std::string::npos);
  std::string plain;
  for (std::size_t at = 0; at < out.str().size(); ++at) {
    if (out.str()[at] == '\x1b') at = out.str().find('m', at) + 1;
    if (at < out.str().size() && out.str()[at] != '\x1b')
      plain += out.str()[at];
    else
      --at;
  }
  EXPECT_EQ(plain, run.out) << "colour adds nothing but colour";
  std::ostringstream json, json_err;
  EXPECT_EQ(
      RunShardlab({"plan", "textbook-full.toml", "--format", "json"}, json, json_err, terminal), 0);
  EXPECT_EQ(json.str().find('\x1b'), std::string::npos);
  for (const int width : {40, 60, 80, 200}) {
    std::ostringstream narrow, ignored;
    Terminal small;
    small.width = width;
    EXPECT_EQ(RunShardlab({"plan", "textbook-full.toml"}, narrow, ignored, small), 0);
    for (const std::string& line : SplitAt(narrow.str(), '\n')) {
      if (width >= 80) {
        EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

// The program itself: NO_COLOR and pipes are its own affair. Skipped where only the tests are
// built.
TEST_F(Contract, TheProgramWritesNoColourIntoAPipe) {
  const std::string program = SHARDLAB_BINARY_DIR "/shardlab";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "build the target shardlab_app too";
  RunProgram({"--version"});  // sets the plugins' path
  for (const char* prefix : {"", "NO_COLOR=1 "}) {
    const std::string command =
        absl::StrCat(prefix, program, " plan bad.toml > out.txt 2> err.txt");
    EXPECT_EQ(std::system(command.c_str()) >> 8, 2);
    EXPECT_EQ(ReadFile("err.txt"), RunProgram({"plan", "bad.toml"}).err);
    EXPECT_EQ(ReadFile("out.txt"), "");
  }
  // In a terminal of its own: colour without NO_COLOR, none with it.
  if (std::system("script --version > /dev/null 2>&1") != 0) return;
  const auto in_terminal = [&](const std::string& environment) {
    const std::string command = absl::StrCat(environment, " script -qec '", program,
                                             " plan good.toml' /dev/null > tty.txt < /dev/null");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadFile("tty.txt");
  };
  EXPECT_NE(in_terminal("env -u NO_COLOR").find('\x1b'), std::string::npos);
  EXPECT_EQ(in_terminal("env NO_COLOR=1").find('\x1b'), std::string::npos);
}

// --- --set
// ----------------------------------------------------------------------------------------------

TEST_F(Contract, SetTakesTheFilesOwnKeysAndToml) {
  EXPECT_EQ(Plan("good.toml", {"--set", "training.micro_batch_size=2"})["plan"]["micro_batch_size"],
            2);
  EXPECT_EQ(
      Plan("good.toml", {"--set", " training . micro_batch_size = 2 "})["plan"]["micro_batch_size"],
      2);
  // The last of two wins.
  EXPECT_EQ(Plan("good.toml", {"--set", "strategy.tensor.degree=2", "--set",
                               "strategy.tensor.degree=4"})["plan"]["tensor"],
            4);
  EXPECT_EQ(Plan("good.toml", {"--set=strategy.tensor.degree=8"})["plan"]["tensor"], 8);
  // A table that the file lacks; a whole table; a list.
  EXPECT_EQ(Plan("good.toml", {"--set", "strategy.zero={stage = 3}"})["plan"]["zero_stage"], 3);
  EXPECT_EQ(Plan("good.toml", {"--set", "schedule.degree=2", "--set",
                               "schedule.layers=[10, 22]"})["plan"]["layers"],
            Json::parse("[10,22]"));
  // What is no TOML is a string, and so is what is quoted.
  EXPECT_EQ(Plan("good.toml", {"--set", "name=my plan"})["scenario"], "my plan");
  EXPECT_EQ(Plan("good.toml", {"--set", "name=\"my plan\""})["scenario"], "my plan");
  EXPECT_EQ(Plan("good.toml", {"--set", "name=a=b"})["scenario"], "a=b");
  EXPECT_EQ(Plan("good.toml", {"--set", "accounting=textbook"})["accounting"], "textbook");
  EXPECT_EQ(Plan("good.toml", {"--set", "hardware.memory=40 GB"})["memory"]["capacity_bytes"],
            40'000'000'000);
  EXPECT_EQ(Plan("good.toml", {"--set", "hardware.memory=\"40 GiB\""})["memory"]["capacity_bytes"],
            42'949'672'960);
  EXPECT_EQ(
      Plan("good.toml", {"--set", "strategy.tensor.degree=8", "--set",
                         "strategy.tensor.sequence_parallel=true"})["plan"]["sequence_parallel"],
      true);
  // What is set is what the file would have said.
  WriteFile("written.toml", std::string(kModelAndMachine) + "[strategy.tensor]\ndegree = 4\n");
  Json set = Plan("good.toml", {"--set", "strategy.tensor.degree=4", "--set", "name=written"}),
       written = Plan("written.toml");
  EXPECT_TRUE(set == written) << Json::diff(set, written).dump(1).substr(0, 2000);
}

// --- explain
// --------------------------------------------------------------------------------------------

TEST_F(Contract, ExplainShowsEveryAccountAndItsRowsAddUp) {
  const Json plan = Plan("operator-full.toml");
  for (const std::string& account : ExplainableAccounts()) {
    SCOPED_TRACE(account);
    const ProgramRun text = RunProgram({"explain", "operator-full.toml", account});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_FALSE(text.out.empty());
    const ProgramRun run =
        RunProgram({"explain", "operator-full.toml", account, "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = Json::parse(run.out);
    EXPECT_EQ(document["schema"], "shardlab.explanation/1");
    for (const Json& rank : document["ranks"]) {
      double sum = 0;
      for (const Json& entry : rank["entries"]) {
        EXPECT_EQ(entry["account"], account);
        for (const char* key : {"author", "row", "formula", "source"})
          EXPECT_TRUE(entry[key].is_string()) << key;
        sum += entry["bytes"].get<double>();
      }
      if (account == "time" || account == "communication") continue;
      const double bytes =
          plan["memory"]["ranks"][rank["pipeline_rank"].get<std::size_t>()][account + "_bytes"];
      EXPECT_NEAR(sum, bytes, 0.5 + 1e-9 * bytes);
    }
    EXPECT_EQ(document.contains("time"), account == "time");
    EXPECT_EQ(document.contains("communication"), account == "communication");
  }
  // The name in the JSON of plan does too, and without one all are shown.
  EXPECT_EQ(RunProgram({"explain", "operator-full.toml", "optimizer_bytes"}).out,
            RunProgram({"explain", "operator-full.toml", "optimizer"}).out);
  const ProgramRun all = RunProgram({"explain", "operator-full.toml"});
  EXPECT_EQ(all.status, 0);
  for (const char* word : {"parameters", "gradients", "optimizer", "activations"})
    EXPECT_THAT(all.out, HasSubstr(word));
}

// --- the lists
// ------------------------------------------------------------------------------------------

TEST_F(Contract, PluginsListAndShow) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"plugins", "list", "--format", "json"}, {"plugins", "--format", "json"}}) {
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = Json::parse(run.out);
    ASSERT_TRUE(document["plugins"].is_array());
    std::set<std::string> kinds;
    for (const Json& plugin : document["plugins"]) {
      for (const char* key : {"name", "kind", "file", "description"})
        EXPECT_TRUE(plugin[key].is_string()) << key;
      EXPECT_TRUE(plugin["version"].is_number_integer());
      ASSERT_TRUE(plugin["parameters"].is_array());
      kinds.insert(plugin["kind"]);
      for (const Json& parameter : plugin["parameters"]) {
        for (const char* key : {"name", "type", "unit", "description"})
          EXPECT_TRUE(parameter[key].is_string()) << key;
        EXPECT_TRUE(parameter.contains("default"));
      }
    }
    EXPECT_EQ(kinds, std::set<std::string>({"export", "hardware", "model", "network", "optimizer",
                                            "schedule", "strategy"}));
  }
  for (const std::string& name : BuiltPlugins().Names("strategy")) {
    const ProgramRun run = RunProgram({"plugins", "show", name, "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.err;
    bool found = false;
    const Json document = Json::parse(run.out);
    for (const Json& plugin : document["plugins"]) {
      EXPECT_EQ(plugin["name"], name);
      found |= plugin["kind"] == "strategy";
    }
    EXPECT_TRUE(found);
    const ProgramRun text = RunProgram({"plugins", "show", name});
    EXPECT_THAT(text.out, HasSubstr(name));
  }
}

TEST_F(Contract, ModelsAndHardwareHaveSources) {
  for (const char* command : {"models", "hardware"}) {
    EXPECT_EQ(RunProgram({command}).status, 0);
    const ProgramRun run = RunProgram({command, "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = Json::parse(run.out);
    EXPECT_EQ(document["schema"], absl::StrCat("shardlab.", command, "/1"));
    ASSERT_FALSE(document[command].empty());
    for (const Json& plugin : document[command]) {
      EXPECT_TRUE(plugin["plugin"].is_string());
      EXPECT_TRUE(plugin["description"].is_string());
      for (const Json& preset : plugin["presets"]) {
        EXPECT_FALSE(preset["name"].get<std::string>().empty());
        EXPECT_FALSE(preset["source"].get<std::string>().empty()) << preset["name"];
        EXPECT_THAT(RunProgram({command}).out, HasSubstr(preset["name"].get<std::string>()));
      }
    }
  }
  // Every preset that the models list can be planned with.
  const Json models = Json::parse(RunProgram({"models", "--format", "json"}).out)["models"];
  for (const Json& plugin : models) {
    for (const Json& preset : plugin["presets"]) {
      Plan("good.toml", {"--set", absl::StrCat("model={ plugin = ", plugin["plugin"].dump(),
                                               ", preset = ", preset["name"].dump(), " }")});
    }
  }
}

// --- help
// -----------------------------------------------------------------------------------------------

TEST_F(Contract, HelpAndVersionAtEveryLevel) {
  const ProgramRun version = RunProgram({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, StartsWith("shardlab "));
  EXPECT_EQ(version.out, "shardlab " SHARDLAB_VERSION "\n");
  for (const char* help : {"--help", "-h"}) {
    const ProgramRun run = RunProgram({help});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.err, "");
    EXPECT_THAT(run.out, StartsWith("usage: shardlab "));
    for (const char* command : {"plan", "explain", "validate", "plugins", "models", "hardware"})
      EXPECT_THAT(run.out, HasSubstr(command));
  }
  for (const char* command : {"plan", "explain", "validate", "plugins", "models", "hardware"}) {
    for (const char* help : {"--help", "-h"}) {
      const ProgramRun run = RunProgram({command, help});
      EXPECT_EQ(run.status, 0) << command;
      EXPECT_EQ(run.err, "");
      EXPECT_THAT(run.out, StartsWith(absl::StrCat("usage: shardlab ", command)));
      EXPECT_THAT(run.out, HasSubstr("--format"));
      EXPECT_THAT(run.out, HasSubstr("--plugins"));
      for (const std::string& line : SplitAt(run.out, '\n')) EXPECT_LE(line.size(), 100u) << line;
    }
    // Asked for after good arguments too.
    EXPECT_EQ(RunProgram({command, "--help", "more"}).status, 0);
    const ProgramRun version_there = RunProgram({command, "--version"});
    EXPECT_EQ(version_there.status, 0)
        << command << " --version: --help, --version and --format are on every level";
    EXPECT_EQ(version_there.out, version.out) << command;
  }
}

// --- sameness
// -------------------------------------------------------------------------------------------

TEST_F(Contract, TwoRunsGiveTheSameBytes) {
  for (const auto& [name, text] : Scenarios()) {
    for (const char* format : {"text", "json", "csv"}) {
      const std::vector<std::string> args = {"plan", name + ".toml", "--format", format};
      EXPECT_EQ(RunProgram(args).out, RunProgram(args).out) << name << " " << format;
    }
  }
}

}  // namespace
}  // namespace shardlab
