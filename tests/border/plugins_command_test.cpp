// `shardlab plugins ...`: what it prints and how it ends.
#include "app/plugins_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bad_folder.h"
#include "io/plugin_kinds.h"
#include "io/plugin_template.h"

namespace shardlab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

struct Command {
  Command(const std::vector<std::string>& args, const PluginsCommandOptions& options) {
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    status = PluginsCommand(args, options, out_stream, err_stream);
    out = out_stream.str();
    err = err_stream.str();
  }
  int status;
  std::string out;
  std::string err;
};

TEST(PluginsCommand, ListsAsText) {
  const BadFolder folder;
  folder.Take("good");
  folder.Take("unknown-kind");
  const Command run({}, {{folder.path()}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "cooling\n"
            "  unknown-kind  blows cold air\n"
            "\n"
            "strategy\n"
            "  good          does nothing, well\n");
}

TEST(PluginsCommand, ListsAsJsonWithWhatCouldNotBeUsed) {
  const BadFolder folder;
  folder.Take("api-too-new");
  folder.Take("good");
  folder.Take("throws-in-visit");
  const Command run({"list"}, {{folder.path()}, true});
  EXPECT_EQ(run.status, 0);
  const Json document = Json::parse(run.out);
  ASSERT_EQ(document["plugins"].size(), 2u);
  const Json& good = document["plugins"][0];
  EXPECT_EQ(good["name"], "good");
  EXPECT_EQ(good["kind"], "strategy");
  EXPECT_EQ(good["version"], 1);
  EXPECT_EQ(good["file"], folder.File("good.so"));
  EXPECT_EQ(good["description"], "does nothing, well");
  EXPECT_EQ(good["parameters"], Json::array());
  ASSERT_EQ(document["diagnostics"].size(), 2u);
  EXPECT_THAT(run.err, HasSubstr("needs plugin API 2"));
  EXPECT_THAT(run.err, HasSubstr("cannot list the parameters of strategy throws-in-visit"));
}

TEST(PluginsCommand, ADuplicateIsAnErrorInBothForms) {
  const BadFolder folder;
  folder.Take("good");
  folder.Take("duplicate");
  const Command run({"list"}, {{folder.path()}, true});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(Json::parse(run.out)["diagnostics"][0]["code"], "plugins.duplicate");
  EXPECT_THAT(folder.Anonymous(run.err),
              HasSubstr("two plugins are called strategy good: DIR/duplicate.so and DIR/good.so"));
}

TEST(PluginsCommand, ShowsOne) {
  const BadFolder folder;
  folder.Take("good");
  const Command run({"show", "good"}, {{folder.path()}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(folder.Anonymous(run.out),
            "good: does nothing, well\n  strategy, interface 1\n  DIR/good.so\n  no parameters\n");
  const Command wrong({"show", "goood"}, {{folder.path()}});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("there is no plugin goood"));
  EXPECT_THAT(wrong.err, HasSubstr("did you mean good?"));
}

TEST(PluginsCommand, ChecksALibrary) {
  const BadFolder folder;
  const Command good({"check", folder.Take("good")}, {});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.out, "ok: strategy good, interface 1: does nothing, well\n");
  const Command bad({"check", folder.Take("throws-while-loading")}, {});
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.out, "");
  EXPECT_EQ(folder.Anonymous(bad.err),
            "DIR/throws-while-loading.so: error: this plugin library ends the program while it is "
            "loaded: it "
            "throws an exception (static initialiser gave up)\n");
  const Command json({"check", folder.File("nowhere.so")}, {{}, true});
  EXPECT_EQ(json.status, 2);
  EXPECT_EQ(Json::parse(json.out)["diagnostics"][0]["message"],
            "this plugin library does not exist");
}

TEST(PluginsCommand, RefusesOtherWords) {
  EXPECT_THAT(Command({"lst"}, {}).err, HasSubstr("did you mean plugins list?"));
  EXPECT_EQ(Command({"lst"}, {}).status, 2);
  EXPECT_THAT(Command({"show"}, {}).err, HasSubstr("plugins show has other arguments"));
  EXPECT_EQ(Command({"new", "strategy"}, {}).status, 2);
}

class NewPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  BadFolder folder_;
  std::filesystem::path before_;
};

TEST_F(NewPlugin, WritesAFolderOfEachKind) {
  for (const std::string& kind : KindNames()) {
    SCOPED_TRACE(kind);
    const std::string name = "my-" + kind;
    const Command run({"new", kind, name}, {});
    EXPECT_EQ(run.status, 0) << run.err;
    for (const std::string& file :
         {"my_" + kind + ".h", "my_" + kind + ".cpp", std::string("CMakeLists.txt"),
          std::string("README.md"), std::string("example.toml"), std::string("test.sh")}) {
      EXPECT_THAT(run.out, HasSubstr("./" + name + "/" + file));
      const std::string text = BadFolder::Bytes(name + "/" + file);
      EXPECT_THAT(text, HasSubstr(name)) << file;
      EXPECT_EQ(text.find('@'), std::string::npos) << file << " has a place that was not filled";
      std::istringstream lines(text);
      int count = 0;
      for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(line.size(), 115u) << line;
      if (file == "CMakeLists.txt") {
        EXPECT_LE(count, 10);
      }
    }
  }
}

TEST_F(NewPlugin, RefusesWithNothingWritten) {
  EXPECT_THAT(Command({"new", "stratgy", "x"}, {}).err,
              HasSubstr("there is no kind of plugin stratgy, did you mean strategy?"));
  EXPECT_THAT(
      Command({"new", "gadget", "x"}, {}).err,
      HasSubstr("there is no kind of plugin gadget (there are model, hardware, network, strategy, "
                "schedule, optimizer and export)"));
  for (const char* name : {"", "Zero", "9lives", "../up", "a b", "-x", "a_b"}) {
    const Command run({"new", "strategy", name}, {});
    EXPECT_EQ(run.status, 2) << name;
    EXPECT_THAT(run.err, HasSubstr("cannot be a plugin's name")) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty("."));
  std::filesystem::create_directory("taken");
  EXPECT_THAT(Command({"new", "strategy", "taken"}, {}).err,
              HasSubstr("./taken exists already, nothing is written"));
  EXPECT_TRUE(std::filesystem::is_empty("taken"));
}

TEST(PluginTemplate, NamesFilesAndClasses) {
  EXPECT_EQ(PluginFileStem("my-zero-2"), "my_zero_2");
  EXPECT_EQ(PluginClassName("my-zero-2"), "MyZero2");
  EXPECT_THAT(PluginClassName("x"), StartsWith("X"));
}

}  // namespace
}  // namespace shardlab
