// Bad input and what it is answered with: see README.md.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/catalog.h"
#include "io/explain_text.h"
#include "io/parameter_io.h"
#include "support/plugins.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path kFolder = SHARDLAB_SOURCE_DIR "/tests/refusals";

// --- the texts
// ------------------------------------------------------------------------------------------

std::vector<ParameterDoc> ParametersOf(const std::string& kind, const std::string& name) {
  auto made = BuiltPlugins().Make(kind, name);
  ParameterDocumenter documenter;
  if (made.ok()) (*made)->Visit(documenter);
  return documenter.docs();
}

// The commands that `shardlab --help` lists.
std::vector<std::string> Commands() {
  std::vector<std::string> names;
  std::istringstream help(RunProgram({"--help"}).out);
  for (std::string line; std::getline(help, line);) {
    if (line.size() < 3 || line.compare(0, 2, "  ") != 0 || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (name != "shardlab") names.push_back(name);
  }
  return names;
}

std::string Filled(const std::string& what) {
  std::vector<std::string> words = absl::StrSplit(what, ' ');
  const bool there = words[0] == "there";
  if (there) words.erase(words.begin());
  std::vector<std::string> names;
  if (words[0] == "plugins") names = BuiltPlugins().Names(words.at(1));
  if (words[0] == "data") names = CatalogNames(BuiltPlugins(), words.at(1));
  if (words[0] == "presets") names = PresetsOf(words.at(2));
  if (words[0] == "commands") names = Commands();
  if (words[0] == "accounts") names = ExplainableAccounts();
  if (words[0] == "parameters") {
    for (const ParameterDoc& doc : ParametersOf(words.at(1), words.at(2)))
      names.push_back(doc.name);
  }
  if (words[0] == "choices") {
    for (const ParameterDoc& doc : ParametersOf(words.at(1), words.at(2))) {
      if (doc.name != words.at(3)) continue;
      for (const std::string& choice : doc.choices) names.push_back("\"" + choice + "\"");
    }
    return Enumerate(names, "or");
  }
  EXPECT_FALSE(names.empty()) << "nothing is meant by ${" << what << "}";
  return (there ? names.size() == 1 ? "there is " : "there are " : "") + Enumerate(names);
}

std::string Expand(std::string text) {
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at)) {
    const std::size_t end = text.find('}', at);
    text.replace(at, end + 1 - at, Filled(text.substr(at + 2, end - at - 2)));
  }
  return text;
}

// --- what holds for every diagnostic, whatever it says
// --------------------------------------------------

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(absl::StrReplaceAll(text, {{"\r\n", "\n"}}), '\n');
}

std::size_t Characters(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void CheckPlace(const Json& place, const std::string& file, const std::vector<std::string>& lines) {
  const int line = place.at("line"), column = place.at("column");
  EXPECT_FALSE(place.at("file").get<std::string>().empty() && !file.empty());
  if (line == 0) return;
  const std::string named = place.at("file");
  if (named != file) {  // one that the scenario names
    EXPECT_THAT(ReadFile(file), ::testing::HasSubstr(named));
    return CheckPlace(place, named, LinesOf(ReadFile(named)));
  }
  ASSERT_LE(static_cast<std::size_t>(line), lines.size());
  EXPECT_GE(column, 1);
  // One past the end is a place too: where something is missing.
  EXPECT_LE(static_cast<std::size_t>(column),
            Characters(lines[static_cast<std::size_t>(line) - 1]) + 1);
}

void CheckDiagnostic(const Json& diagnostic, const std::string& file,
                     const std::vector<std::string>& lines) {
  const std::string code = diagnostic.at("code"), message = diagnostic.at("message"),
                    hint = diagnostic.at("hint");
  SCOPED_TRACE(code + ": " + message);
  EXPECT_THAT(code, ::testing::MatchesRegex("[a-z_]+(\\.[a-z_0-9]+)+"));
  EXPECT_GE(message.size(), 8u);
  for (const std::string& text : {message, hint}) {
    if (text.empty()) continue;
    EXPECT_NE(text.back(), '.') << "no full stop at the end of a line";
    EXPECT_NE(text.back(), ' ');
    EXPECT_EQ(text.find("  "), std::string::npos);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.find("0 to 0"), std::string::npos);
    for (const char* empty : {": ;", ":,", "(), ", "there are and"})
      EXPECT_EQ(text.find(empty), std::string::npos) << text;
  }
  CheckPlace(diagnostic, file, lines);
  for (const Json& other : diagnostic.at("other_places")) CheckPlace(other, file, lines);
}

// With --format json: the same text on standard error, and the document on standard output.
void CheckJson(std::vector<std::string> args, const std::string& err, const std::string& file,
               const std::string& text) {
  args.insert(args.end(), {"--format", "json"});
  const ProgramRun run = RunProgram(args);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, err);
  const Json document = Json::parse(run.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(document.is_object()) << run.out;
  EXPECT_EQ(document.at("schema"), "shardlab.diagnostics/1");
  EXPECT_FALSE(document.at("diagnostics").empty());
  const std::vector<std::string> lines = LinesOf(text);
  std::map<std::string, int> line;
  for (const Json& diagnostic : document.at("diagnostics")) {
    CheckDiagnostic(diagnostic, file, lines);
    int& last = line[diagnostic.at("file")];
    EXPECT_GE(diagnostic.at("line"), last) << "top to bottom";
    last = diagnostic.at("line");
  }
}

// --- the pairs
// ------------------------------------------------------------------------------------------

std::set<std::string> Stems(const fs::path& folder, const std::string& extension) {
  std::set<std::string> stems;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == extension) stems.insert(file.path().stem().string());
  }
  return stems;
}

bool Printing() { return std::getenv("SHARDLAB_PRINT_REFUSALS") != nullptr; }

void Compare(const std::string& name, const ProgramRun& run, int status) {
  if (Printing()) {
    std::cout << "=== " << name << " (exit " << run.status << ")\n" << run.err;
    return;
  }
  EXPECT_EQ(run.status, status);
  EXPECT_EQ(run.err, Expand(ReadFile(name + ".expected")));
}

TEST(Refusals, EveryBadFileIsAnsweredWordForWord) {
  const WorkingDirectory inside(kFolder / "files");
  const std::set<std::string> names = Stems(".", ".toml");
  EXPECT_EQ(names, Stems(".", ".expected"));
  EXPECT_GT(names.size(), 100u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string file = name + ".toml";
    const ProgramRun run = RunProgram({"plan", file});
    Compare(name, run, 2);
    if (Printing()) continue;
    EXPECT_EQ(run.out, "");
    CheckJson({"plan", file}, run.err, file, ReadFile(file));
  }
}

TEST(Refusals, EveryMissedExpectationIsToldWordForWord) {
  const WorkingDirectory inside(kFolder / "expect");
  const std::set<std::string> names = Stems(".", ".toml");
  EXPECT_EQ(names, Stems(".", ".expected"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string file = name + ".toml";
    const ProgramRun run = RunProgram({"plan", file, "--format", "json"});
    Compare(name, run, 4);
    // The plan is good: its document comes all the same, with the misses in it.
    const Json document = Json::parse(run.out);
    EXPECT_EQ(document.at("schema"), "shardlab.plan/1");
    EXPECT_FALSE(document.at("diagnostics").empty());
    for (const Json& diagnostic : document.at("diagnostics"))
      CheckDiagnostic(diagnostic, file, LinesOf(ReadFile(file)));
  }
}

TEST(Refusals, EveryWarningIsToldWordForWordAndStopsNothing) {
  const WorkingDirectory inside(kFolder / "warnings");
  const std::set<std::string> names = Stems(".", ".toml");
  EXPECT_EQ(names, Stems(".", ".expected"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string file = name + ".toml";
    const ProgramRun run = RunProgram({"plan", file, "--format", "json"});
    Compare(name, run, 0);
    const Json document = Json::parse(run.out);
    for (const Json& diagnostic : document.at("diagnostics")) {
      EXPECT_EQ(diagnostic.at("severity"), "warning");
      CheckDiagnostic(diagnostic, file, LinesOf(ReadFile(file)));
    }
  }
}

TEST(Refusals, EveryBadCommandLineIsAnsweredWordForWord) {
  const WorkingDirectory inside(kFolder / "command");
  const std::set<std::string> names = Stems(".", ".args");
  EXPECT_EQ(names, Stems(".", ".expected"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    std::vector<std::string> args =
        absl::StrSplit(ReadFile(name + ".args"), '\n', absl::SkipEmpty());
    const ProgramRun run = RunProgram(args);
    Compare(name, run, 2);
    EXPECT_EQ(run.out, "");
  }
}

// --- input that is not kept
// -----------------------------------------------------------------------------

struct Made {
  const char* name;
  std::string text;
  const char* expected;
};

constexpr const char kGood[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = "
    "\"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 128\n";

std::string Repeated(const std::string& text, int times) {
  std::string all;
  all.reserve(text.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Refusals, InputThatIsNoScenarioAtAll) {
  using namespace std::string_literals;
  const std::vector<Made> all = {
      {"empty", "", "empty.toml: error: is empty\n"},
      {"blank", " \n\t\n\n  \n",
       "blank.toml: error: holds no keys (only blank lines and comments)\n"},
      {"mark_only", "\xEF\xBB\xBF", "mark_only.toml: error: is empty\n"},
      {"latin1", "name = \"Gr\xF6\xDF"s + "e\"\n",
       "latin1.toml:1:11: error: not UTF-8 text (byte 0xF6 here)\n    name = \"Gr\uFFFD\uFFFDe\"\n "
       "             ^\n"
       "  hint: save the file as UTF-8\n"},
      {"utf16", "\xFF\xFEn\0a\0m\0e\0"s,
       "utf16.toml:1:1: error: not UTF-8 text (byte 0xFF here)\n    "
       "\uFFFD\uFFFDn\uFFFDa\uFFFDm\uFFFDe\uFFFD\n    ^\n"
       "  hint: the file looks like UTF-16: save it as UTF-8\n"},
      {"nul", "name = \"a\0b\"\n"s,
       "nul.toml:1:10: error: a NUL byte (this is not a text file)\n    name = \"a\uFFFD"
       "b\"\n             ^\n  hint: TOML is plain UTF-8 text\n"},
      {"nested_lists", "a = " + Repeated("[", 1000) + Repeated("]", 1000) + "\n", nullptr},
      {"nested_tables", "a = " + Repeated("{ a = ", 1000) + "1" + Repeated(" }", 1000) + "\n",
       nullptr},
      {"nested_header", "[a" + Repeated(".a", 1000) + "]\n", nullptr},
      {"nested_unclosed", Repeated("[", 100000), nullptr},
      {"too_large", kGood + ("# " + std::string(16'000'000, 'x') + "\n"),
       "too_large.toml: error: is larger than 16 MB (16000150 bytes)\n  hint: a scenario is a few "
       "kilobytes of text\n"},
      {"too_many_values", "a = [" + Repeated("1,", 600'000) + "]\n", nullptr},
      {"long_key", std::string(5000, 'k') + " = 1\n", nullptr},
  };
  const ScratchFolder folder;
  const WorkingDirectory inside(folder.path());
  for (const Made& made : all) {
    SCOPED_TRACE(made.name);
    const std::string file = made.name + ".toml"s;
    WriteFile(file, made.text);
    const ProgramRun run = RunProgram({"plan", file});
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.out, "");
    if (made.expected != nullptr) {
      EXPECT_EQ(run.err, made.expected);
    } else {
      EXPECT_THAT(run.err, ::testing::HasSubstr("error: "));
      EXPECT_LT(run.err.size(), 2000u) << "a short answer, however long the line";
    }
  }
  EXPECT_THAT(RunProgram({"plan", "nested_lists.toml"}).err,
              ::testing::HasSubstr("nested_lists.toml:1:105: error: nested too deep (more than 100 "
                                   "tables and lists inside one another)"));
}

TEST(Refusals, AnIntegerOfAnySizeIsAnsweredAndNeverWraps) {
  const ScratchFolder folder;
  const WorkingDirectory inside(folder.path());
  WriteFile("good.toml", kGood);
  const std::vector<std::string> keys = {"strategy.tensor.degree",
                                         "strategy.data.degree",
                                         "schedule.degree",
                                         "schedule.chunks",
                                         "training.sequence_length",
                                         "training.micro_batch_size",
                                         "training.global_batch_size",
                                         "hardware.nodes",
                                         "model.layers",
                                         "model.hidden",
                                         "model.heads",
                                         "model.ffn",
                                         "model.vocabulary"};
  const std::vector<std::string> values = {"0",
                                           "-1",
                                           "2147483647",
                                           "2147483648",
                                           "4294967296",
                                           "4294967297",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1e300",
                                           "inf",
                                           "-inf",
                                           "nan"};
  for (const std::string& key : keys) {
    for (const std::string& value : values) {
      SCOPED_TRACE(key + "=" + value);
      const ProgramRun run =
          RunProgram({"plan", "good.toml", "--set", key + "=" + value, "--format", "json"});
      if (run.status != 2) {
        // A size that is legal gives a plan whose bytes are counts.
        ASSERT_EQ(run.status, 0) << run.err;
        const Json document = Json::parse(run.out);
        EXPECT_GT(document.at("model").at("parameters"), 0);
        for (const Json& rank : document.at("memory").at("ranks")) {
          for (const auto& [name, field] : rank.items()) {
            if (field.is_number()) {
              EXPECT_GE(field, 0) << name;
            }
          }
        }
        continue;
      }
      EXPECT_THAT(run.err, ::testing::HasSubstr(key));
    }
  }
}

// Any text whatever is answered: nothing is thrown, nothing dies, the status is 0, 2 or 4.
TEST(Refusals, ABadCharacterAnywhereIsAnswered) {
  const ScratchFolder folder;
  const WorkingDirectory inside(folder.path());
  const std::string good = ReadFile(SHARDLAB_SOURCE_DIR "/scenarios/llama3.1-70b-32xh100.toml");
  for (std::size_t at = 0; at < good.size(); ++at) {
    const char bad_characters[] = {'"', '[', '=', '0', '-', '\n'};
    for (const std::size_t i : {at % 6, (at / 6 + at + 3) % 6}) {
      const char c = bad_characters[i];
      std::string bad = good;
      bad[at] = c;
      WriteFile("bad.toml", bad);
      const ProgramRun run = RunProgram({"plan", "bad.toml", "--format", "csv"});
      if (run.status == 0 || run.status == 4) continue;
      ASSERT_EQ(run.status, 2) << "byte " << at << " as " << c << "\n" << run.err;
      ASSERT_THAT(run.err, ::testing::StartsWith("bad.toml")) << "byte " << at << " as " << c;
    }
  }
}

}  // namespace
}  // namespace shardlab
