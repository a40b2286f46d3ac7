// Every scenario of scenarios/ and every plugin's example.toml is planned, and what its [expect]
// says holds. The files are found when the test runs: a new one needs no list.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.h"
#include "io/toml_value.h"

namespace shardlab::scenarios {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHARDLAB_SOURCE_DIR;
constexpr int kHolds = 0, kMissed = 4;

std::vector<fs::path> Scenarios() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kRoot / "scenarios")) {
    if (entry.path().extension() == ".toml") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> Examples() {
  std::vector<fs::path> found;
  for (const auto& kind : fs::directory_iterator(kRoot / "plugins")) {
    if (!kind.is_directory()) continue;
    for (const auto& folder : fs::directory_iterator(kind.path())) {
      if (fs::exists(folder.path() / "example.toml"))
        found.push_back(folder.path() / "example.toml");
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> All() {
  std::vector<fs::path> all = Scenarios();
  for (const fs::path& example : Examples()) all.push_back(example);
  return all;
}

std::string Shown(const fs::path& file) { return fs::relative(file, kRoot).string(); }

int Plan(const fs::path& file, std::string* said) {
  // A test that is not started by ctest.
  if (std::getenv("SHARDLAB_PLUGIN_PATH") == nullptr)
    setenv("SHARDLAB_PLUGIN_PATH", SHARDLAB_BINARY_DIR "/plugins", 0);
  std::ostringstream out, err;
  const int status = RunShardlab({"plan", file.string(), "--format", "json"}, out, err);
  *said = err.str();
  return status;
}

TEST(Scenarios, DoesWhatEachOneExpectsHold) {
  for (const fs::path& file : All()) {
    std::string said;
    EXPECT_EQ(Plan(file, &said), kHolds) << Shown(file) << "\n" << said;
  }
}

TEST(Scenarios, DoesEachOneSayWhatToExpect) {
  for (const fs::path& file : All()) {
    Diagnostics said;
    const Value root = ReadTomlFile(file.string(), said);
    const Value* expect = root.Find("expect");
    ASSERT_NE(expect, nullptr) << Shown(file) << " has no [expect]";
    EXPECT_EQ(expect->kind, Value::kTable) << Shown(file);
    EXPECT_FALSE(expect->table.empty()) << Shown(file) << " expects nothing";
    EXPECT_NE(expect->Find("memory.fits"), nullptr)
        << Shown(file) << " does not say whether it fits";
    EXPECT_NE(root.Find("name"), nullptr) << Shown(file) << " has no name";
  }
}

TEST(Scenarios, AreThereBothKinds) {
  EXPECT_FALSE(Scenarios().empty());
  EXPECT_FALSE(Examples().empty());
}

TEST(Scenarios, DoesTheTableNameEachOnce) {
  std::ifstream in(kRoot / "scenarios" / "README.md");
  std::stringstream table;
  table << in.rdbuf();
  const std::string text = table.str();
  for (const fs::path& file : Scenarios()) {
    const std::string link =
        "| [" + file.stem().string() + "](" + file.filename().string() + ") | ";
    const std::size_t at = text.find(link);
    EXPECT_NE(at, std::string::npos) << "scenarios/README.md has no row for " << file.filename();
    EXPECT_EQ(at == std::string::npos ? at : text.find(link, at + 1), std::string::npos)
        << file.filename();
  }
}

// What would be a green light if nobody looked.
TEST(Scenarios, IsAMissNoticed) {
  const fs::path folder =
      fs::temp_directory_path() / ("shardlab-scenarios-" + std::to_string(getpid()));
  fs::create_directories(folder);
  std::ifstream in(Scenarios().front());
  std::stringstream text;
  text << in.rdbuf();
  const fs::path file = folder / "missed.toml";
  std::ofstream(file) << text.str().substr(0, text.str().find("[expect]"))
                      << "[expect]\n\"memory.peak_bytes\" = 12345\n";
  std::string said;
  EXPECT_EQ(Plan(file, &said), kMissed);
  EXPECT_NE(said.find("12345"), std::string::npos) << said;
  fs::remove_all(folder);
}

}  // namespace
}  // namespace shardlab::scenarios
