// What users and scripts rely on: exit statuses, --set, formats, help.

#include "contract/contract_fixture.h"

namespace shardlab {
namespace {

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
