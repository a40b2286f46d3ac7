// What the registry finds, in which order, and what it says about names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/strategy.h"
#include "bad_folder.h"
#include "base/text.h"
#include "io/plugin_directories.h"
#include "io/plugin_registry.h"

namespace shardlab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(StdSv(status.message())); }

std::unique_ptr<Plugin> Nothing() { return nullptr; }

TEST(Registry, FindsLibrariesBesideAndBelow) {
  const BadFolder folder;
  folder.Take("good");
  std::filesystem::create_directory(folder.File("unknown-kind"));
  std::filesystem::copy_file(BadFolder::Built("unknown-kind"),
                             folder.File("unknown-kind/unknown-kind.so"));
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(registry.List().size(), 2u);
  const PluginInfo cooling = registry.List()[0];
  EXPECT_EQ(cooling.kind, "cooling");
  EXPECT_EQ(cooling.version, 7);
  EXPECT_EQ(cooling.file, folder.File("unknown-kind/unknown-kind.so"));
  EXPECT_EQ(registry.Find("strategy", "good")->description, "does nothing, well");
  EXPECT_EQ(folder.Anonymous(Message(registry.Make("cooling", "unknown-kind").status())),
            "plugin library DIR/unknown-kind/unknown-kind.so has cooling unknown-kind, a kind that "
            "this shardlab "
            "does not know");
}

TEST(Registry, ADuplicateNamesBothFiles) {
  const BadFolder folder;
  folder.Take("duplicate");
  folder.Take("good");
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 1u);
  const Diagnostic& d = diagnostics.all()[0];
  EXPECT_EQ(d.severity, Severity::kError);
  EXPECT_EQ(folder.Anonymous(d.message),
            "two plugins are called strategy good: DIR/duplicate.so and DIR/good.so");
  EXPECT_EQ(d.place.file, folder.File("good.so"));
  ASSERT_EQ(d.other_places.size(), 1u);
  EXPECT_EQ(d.other_places[0].file, folder.File("duplicate.so"));
  EXPECT_EQ(registry.List().size(), 1u);
}

TEST(Registry, TheSameDirectoryTwiceCountsOnce) {
  const BadFolder folder;
  std::filesystem::create_directory(folder.File("plugins"));
  std::filesystem::copy_file(BadFolder::Built("good"), folder.File("plugins/good.so"));
  std::filesystem::create_symlink("plugins", folder.File("link"));
  Diagnostics diagnostics;
  const PluginRegistry registry =
      PluginRegistry::Load({folder.File("plugins"), folder.File("link"),
                            folder.File("plugins/../plugins/"), folder.path()},
                           diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(registry.List().size(), 1u);
}

TEST(Registry, ADirectoryThatIsNone) {
  const BadFolder folder;
  folder.Write("file", "");
  Diagnostics diagnostics;
  PluginRegistry::Load({folder.File("nowhere"), folder.File("file")}, diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 2u);
  EXPECT_EQ(diagnostics.all()[0].message, "this plugin directory does not exist");
  EXPECT_EQ(diagnostics.all()[0].place.file, folder.File("nowhere"));
  EXPECT_EQ(diagnostics.all()[1].message, "this plugin directory is a file");
  EXPECT_TRUE(diagnostics.HasErrors());
}

TEST(Registry, ListsFoldersOfData) {
  const BadFolder folder;
  for (const char* name : {"megatron", "empty", "code", "only-example"}) {
    std::filesystem::create_directory(folder.File(name));
  }
  folder.Write("megatron/software.toml", "a = 1\n");
  folder.Write("megatron/example.toml", "a = 1\n");
  folder.Write("only-example/example.toml", "a = 1\n");
  folder.Write("code/code.toml", "a = 1\n");
  std::filesystem::copy_file(BadFolder::Built("good"), folder.File("code/good.so"));
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  ASSERT_EQ(registry.DataFolders().size(), 1u);
  EXPECT_EQ(registry.DataFolders()[0].kind, "software");
  EXPECT_EQ(registry.DataFolders()[0].name, "megatron");
  EXPECT_EQ(registry.DataFolders()[0].directory, folder.File("megatron"));
  EXPECT_EQ(registry.FindData("software", "megatron"), &registry.DataFolders()[0]);
  EXPECT_EQ(registry.FindData("accounting", "megatron"), nullptr);
  EXPECT_THAT(registry.DataNames("software"), ElementsAre("megatron"));
}

TEST(Registry, ExplainsANameThatIsNotThere) {
  PluginRegistry registry;
  EXPECT_EQ(Message(registry.Make("strategy", "zero").status()), "there is no strategy zero");
  registry.Add({"strategy", 1, "tensor", "", &Nothing}, "(built in)");
  registry.Add({"strategy", 1, "zero", "", &Nothing}, "(built in)");
  registry.Add({"network", 1, "flat", "", &Nothing}, "(built in)");
  EXPECT_THAT(registry.Names("strategy"), ElementsAre("tensor", "zero"));
  EXPECT_THAT(registry.Names("model"), IsEmpty());
  EXPECT_EQ(registry.Nearest("strategy", "tensr"), "tensor");
  EXPECT_EQ(Message(registry.Make("strategy", "tensr").status()),
            "there is no strategy tensr, did you mean tensor?");
  EXPECT_EQ(Message(registry.Make("strategy", "experts-elsewhere").status()),
            "there is no strategy experts-elsewhere (there are tensor and zero)");
  EXPECT_EQ(Message(registry.Make("network", "rail-of-mine").status()),
            "there is no network rail-of-mine (there is flat)");
  EXPECT_EQ(Message(registry.Make("strategy", "flat").status()),
            "there is no strategy flat, but a network of that name");
}

TEST(PluginDirectories, CommandLineThenEnvironmentThenOwn) {
  setenv("SHARDLAB_PLUGIN_PATH", "/from/environment::/second", 1);
  std::vector<std::string> directories = PluginDirectories({"/from/command/line"}, nullptr);
  ASSERT_GE(directories.size(), 3u);
  directories.resize(3);
  EXPECT_THAT(directories, ElementsAre("/from/command/line", "/from/environment", "/second"));
  unsetenv("SHARDLAB_PLUGIN_PATH");
  for (const std::string& own : PluginDirectories({}, nullptr)) {
    EXPECT_TRUE(std::filesystem::is_directory(own)) << own;
  }
}

}  // namespace
}  // namespace shardlab
