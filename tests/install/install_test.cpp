// Promise 1 of the house from outside: a plugin that was built against the installed package, with
// a CMakeLists.txt of at most ten lines and nothing of this repository, is found, listed, checked
// and planned with by the installed program. The plugins are what `plugins new` writes, one of each
// kind.
//
// SHARDLAB_OUT_OF_TREE_CXX: the compiler of the outside plugins; default g++, or the build's own
// compiler where a sanitizer's runtime must be the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

struct Ran {
  int status = -1;
  std::string out;  // standard output alone
  std::string err;
};

class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shardlab-install-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = fs::canonical(pattern);
    prefix_ = folder_ / "prefix";
    // The plugins of the build must not help.
    unsetenv("SHARDLAB_PLUGIN_PATH");
    Expect0(absl::StrCat(Quote(SHARDLAB_CMAKE), " --install ", Quote(SHARDLAB_BINARY_DIR),
                         " --prefix ", Quote(prefix_)));
    setenv("CMAKE_PREFIX_PATH", prefix_.c_str(), 1);
    const char* compiler = std::getenv("SHARDLAB_OUT_OF_TREE_CXX");
    const std::string sanitize = SHARDLAB_SANITIZE;
    setenv("CXX", compiler != nullptr ? compiler : (sanitize.empty() ? "g++" : SHARDLAB_CXX), 1);
    setenv("CXXFLAGS",
           sanitize.empty() ? "-Wall -Wextra -Werror" : ("-fsanitize=" + sanitize).c_str(), 1);
    setenv("CMAKE_BUILD_TYPE", "Debug", 1);  // quick; the ABI is the same
  }

  void TearDown() override {
    std::error_code ignored;
    if (!HasFailure()) fs::remove_all(folder_, ignored);
  }

  Ran Run(const std::string& command) const {
    Ran ran;
    const fs::path err = folder_ / "stderr.txt";
    const std::string line =
        absl::StrCat("cd ", Quote(folder_), " && { ", command, " ; } 2> ", Quote(err));
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return ran;
    char buffer[4096];
    for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) ran.out.append(buffer, n);
    const int status = pclose(pipe);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ran.err = ReadFile(err);
    return ran;
  }

  Ran Expect0(const std::string& command) const {
    Ran ran = Run(command);
    EXPECT_EQ(ran.status, 0) << command << "\n" << ran.out << ran.err;
    return ran;
  }

  std::string Program() const { return Quote(prefix_ / "bin/shardlab"); }
  std::string Shardlab(const std::string& args) const { return absl::StrCat(Program(), " ", args); }

  void New(const std::string& kind, const std::string& name) const {
    Expect0(Shardlab(absl::StrCat("plugins new ", kind, " ", name)));
  }

  // All of what a user does: new, build, check, plan with the [expect] of the example.
  void NewAndTest(const std::string& kind) const {
    const std::string name = "my-" + kind;
    New(kind, name);
    const Ran test = Expect0(absl::StrCat("SHARDLAB=", Program(), " ", name, "/test.sh"));
    EXPECT_THAT(test.out, HasSubstr(absl::StrCat("ok: ", kind, " ", name)));
    EXPECT_THAT(test.out, HasSubstr(absl::StrCat(name, ": ok")));
  }

  // Data parallelism alone, with one strategy's table.
  void WritePlainScenario(const std::string& file, const std::string& strategy) const {
    std::ofstream(folder_ / file) << R"(accounting = "textbook"
[model]
plugin = "llama"
preset = "llama3.1-8b"
[hardware]
plugin = "h100-dgx"
nodes = 1
[training]
sequence_length = 4096
micro_batch_size = 1
global_batch_size = 8
[strategy.)" << strategy << "]\n";
  }

  fs::path folder_;
  fs::path prefix_;
};

TEST_F(Install, AStrategyFromOutsideIsListedAndPlannedWith) {
  New("strategy", "my-zero");
  const std::string lists = ReadFile(folder_ / "my-zero/CMakeLists.txt");
  EXPECT_LE(std::count(lists.begin(), lists.end(), '\n'), 10);
  Expect0("cmake -S my-zero -B my-zero/build && cmake --build my-zero/build");

  const Ran list = Expect0(Shardlab("plugins list --format json --plugins my-zero/build/plugins"));
  const Json document = Json::parse(list.out);
  const Json* mine = nullptr;
  bool llama = false;
  for (const Json& plugin : document.at("plugins")) {
    if (plugin.at("name") == "my-zero") mine = &plugin;
    if (plugin.at("name") == "llama") llama = true;
  }
  EXPECT_TRUE(llama) << "the installed plugins are missing";
  ASSERT_NE(mine, nullptr) << list.out;
  EXPECT_EQ(mine->at("kind"), "strategy");
  EXPECT_EQ(mine->at("version"), 1);
  EXPECT_THAT(mine->at("file"), HasSubstr("my-zero/build/plugins/my-zero/my-zero.so"));
  ASSERT_EQ(mine->at("parameters").size(), 1u);
  EXPECT_EQ(mine->at("parameters")[0].at("name"), "gradients");
  EXPECT_EQ(mine->at("parameters")[0].at("type"), "boolean");
  EXPECT_EQ(mine->at("parameters")[0].at("default"), false);

  const std::string plan =
      "plan my-zero/example.toml --format json --plugins my-zero/build/plugins";
  const Json with = Json::parse(Expect0(Shardlab(plan)).out);
  const Json more =
      Json::parse(Expect0(Shardlab(plan + " --set strategy.my-zero.gradients=true")).out);
  const double state = with.at("memory").at("ranks")[0].at("optimizer_bytes");
  EXPECT_NEAR(state, 12.0 * 8030261248 / 8, 1);
  const double gradients = with.at("memory").at("ranks")[0].at("gradients_bytes");
  EXPECT_NEAR(more.at("memory").at("ranks")[0].at("gradients_bytes"), gradients / 8, 1);
}

TEST_F(Install, ItCanBeInstalledBesideTheOthers) {
  New("schedule", "my-order");
  Expect0(absl::StrCat(
      "cmake -S my-order -B my-order/build && cmake --build my-order/build && cmake --install ",
      "my-order/build --prefix ", Quote(prefix_)));
  EXPECT_THAT(Expect0(Shardlab("plugins show my-order")).out, HasSubstr("schedule, interface 1"));
  // And the whole tree may move.
  fs::rename(prefix_, folder_ / "elsewhere");
  EXPECT_THAT(Expect0(Quote(folder_ / "elsewhere/bin/shardlab") + " plugins show my-order").out,
              HasSubstr("schedule, interface 1"));
}

TEST_F(Install, TheSamePluginInTwoPlacesIsAnErrorThatNamesBoth) {
  fs::create_directory(folder_ / "copy");
  fs::copy(prefix_ / "lib/shardlab/plugins/zero", folder_ / "copy/zero",
           fs::copy_options::recursive);
  const Ran ran = Run(Shardlab("plugins list --plugins copy"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("two plugins are called strategy zero"));
  WritePlainScenario("plain.toml", "zero");
  const Ran plan = Run(Shardlab("plan plain.toml --plugins copy"));
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, HasSubstr("two plugins are called strategy zero"));
  EXPECT_THAT(ran.err, HasSubstr("copy/zero/zero.so"));
  EXPECT_THAT(ran.err, HasSubstr((prefix_ / "lib/shardlab/plugins/zero/zero.so").string()));
}

TEST_F(Install, ABadPluginDoesNotBlockAPlanThatDoesNotNeedIt) {
  fs::create_directories(folder_ / "bad/broken");
  std::ofstream(folder_ / "bad/broken/broken.so") << "not a library";
  WritePlainScenario("plain.toml", "zero");
  const Ran ran = Expect0(Shardlab("plan plain.toml --plugins bad"));
  EXPECT_THAT(ran.err,
              HasSubstr("broken.so: warning: this plugin library is not a shared library"));
  WritePlainScenario("needs.toml", "broken");
  const Ran needs = Run(Shardlab("plan needs.toml --plugins bad"));
  EXPECT_EQ(needs.status, 2);
  EXPECT_THAT(needs.err, HasSubstr("broken.so is not a shared library"));
}

TEST_F(Install, ANewStrategyWorks) { NewAndTest("strategy"); }
TEST_F(Install, ANewScheduleWorks) { NewAndTest("schedule"); }
TEST_F(Install, ANewModelWorks) { NewAndTest("model"); }
TEST_F(Install, ANewHardwareWorks) { NewAndTest("hardware"); }
TEST_F(Install, ANewNetworkWorks) { NewAndTest("network"); }
TEST_F(Install, ANewOptimizerWorks) { NewAndTest("optimizer"); }
TEST_F(Install, ANewExportWorks) { NewAndTest("export"); }

}  // namespace
}  // namespace shardlab
