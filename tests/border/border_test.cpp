// Every bad plugin ends in exactly one clear line, word for word, and never in a crash of the
// program.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/strategy.h"
#include "bad_folder.h"
#include "base/text.h"
#include "io/elf_check.h"
#include "io/guarded.h"
#include "io/parameter_io.h"
#include "io/plugin_probe.h"
#include "io/plugin_registry.h"

namespace shardlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(StdSv(status.message())); }

// The messages of one run over the folder, without its path.
std::vector<std::string> Lines(const BadFolder& folder, const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : diagnostics.all()) {
    lines.push_back(
        folder.Anonymous(absl::StrCat(d.place.file, ": ", Name(d.severity), ": ", d.message)));
  }
  return lines;
}

struct Case {
  std::string name;
  std::string line;  // what follows "this plugin library "
};

// --- libraries that load and are refused
// ------------------------------------------------------------------

class Refused : public ::testing::TestWithParam<Case> {};

TEST_P(Refused, IsOneWarningWithTheReason) {
  const BadFolder folder;
  folder.Take(GetParam().name);
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_THAT(Lines(folder, diagnostics),
              ElementsAre(absl::StrCat("DIR/", GetParam().name,
                                       ".so: warning: this plugin library ", GetParam().line)));
  EXPECT_THAT(registry.List(), IsEmpty());
}

TEST_P(Refused, SaysWhyWhenItIsAskedFor) {
  const BadFolder folder;
  folder.Take(GetParam().name);
  Diagnostics diagnostics;
  const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_EQ(folder.Anonymous(Message(registry.Make("strategy", GetParam().name).status())),
            absl::StrCat("there is no strategy ", GetParam().name, ": plugin library DIR/",
                         GetParam().name, ".so ", GetParam().line));
}

TEST_P(Refused, ProbeSaysTheSame) {
  const BadFolder folder;
  EXPECT_EQ(Message(ProbeInChild(folder.Take(GetParam().name)).status()), GetParam().line);
}

INSTANTIATE_TEST_SUITE_P(
    Border, Refused,
    ::testing::Values(
        Case{"api-too-old", "was built for plugin API 0, this shardlab has 1: rebuild it"},
        Case{"api-too-new", "needs plugin API 2, this shardlab has 1: it is for a newer shardlab"},
        Case{"wrong-size", "has an entry of 16 bytes, this shardlab reads 32: rebuild it"},
        Case{"other-build",
             "was built as libstdc++-0/debug-stl/plain/absl-other, this shardlab "
             "as " SHARDLAB_BUILD_TAG ": C++ objects cannot cross between the two"},
        Case{"no-fields", "has an entry without a name or a register function"},
        Case{"null-entry", "has an entry function that returns nothing"},
        Case{"no-entry", "is not a shardlab plugin (it has no shardlab_plugin_entry)"},
        Case{"registers-nothing", "registers no plugin"},
        Case{"registers-rubbish", "registers a plugin without a proper kind and name"},
        Case{"no-factory", "registers strategy no-factory without a way to make one"},
        Case{"interface-too-new",
             "has strategy interface-too-new with interface 2, this shardlab has "
             "strategy interface 1"},
        Case{"throws-in-register",
             "cannot register its plugins: it throws an exception (no licence found)"},
        Case{"undefined-symbol", "cannot be loaded: undefined symbol: shardlab_no_such_function"}),
    [](const auto& param) {
      std::string name = param.param.name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

// --- files that never reach the dynamic linker
// -------------------------------------------------------------

std::string Patched(std::string bytes, std::size_t at, char value) {
  bytes.at(at) = value;
  return bytes;
}

struct FileCase {
  const char* name;
  std::function<std::string(const std::string& good)> change;
  const char* line;
};

const std::vector<FileCase>& FileCases() {
  static const auto* const cases = new std::vector<FileCase> {
    {"empty", [](const std::string&) { return ""; }, "is an empty file"},
        {"text", [](const std::string&) { return "plugin = \"llama\"\n"; },
         "is not a shared library (it does not begin as an ELF file does)"},
        {"three-bytes", [](const std::string& good) { return good.substr(0, 3); },
         "is not a shared library (it does not begin as an ELF file does)"},
        {"header-alone", [](const std::string& good) { return good.substr(0, 40); },
         "is cut short: its header lies outside its 40 bytes"},
        {"no-segments", [](const std::string& good) { return good.substr(0, 100); },
         "is cut short: its table of segments lies outside its 100 bytes"},
        {"truncated", [](const std::string& good) { return good.substr(0, 4096); },
         "is cut short: a segment lies outside its 4096 bytes"},
        {"truncated-late", [](const std::string& good) { return good.substr(0, good.size() - 1); },
         "is cut short: its table of sections lies outside its SIZE bytes"},
        {"class-32", [](const std::string& good) { return Patched(good, EI_CLASS, ELFCLASS32); },
         "is a 32-bit library, this host needs 64 bits"},
        {"big-endian", [](const std::string& good) { return Patched(good, EI_DATA, ELFDATA2MSB); },
         "is for a big-endian CPU, this host is little-endian"},
        {"elf-version", [](const std::string& good) { return Patched(good, EI_VERSION, 9); },
         "has an ELF version that does not exist"},
#if defined(__x86_64__)
        {"wrong-cpu",
         [](const std::string& good) {
           return Patched(good, offsetof(Elf64_Ehdr, e_machine), static_cast<char>(EM_AARCH64));
         },
         "is for another CPU (aarch64), this host is x86-64"},
#endif
        {"object-file",
         [](const std::string& good) {
           return Patched(good, offsetof(Elf64_Ehdr, e_type), ET_REL);
         },
         "is an ELF file, but not a shared library"},
        {"no-headers",
         [](const std::string& good) { return Patched(good, offsetof(Elf64_Ehdr, e_phnum), 0); },
         "has no program headers that can be read, so there is nothing to load"},
        // 2^64 - 16: offset + size wraps around to a small number.
        {"overflow",
         [](const std::string& good) {
           std::string bytes =
               Patched(good, offsetof(Elf64_Ehdr, e_phoff), static_cast<char>(0xf0));
           for (std::size_t i = 1; i < 8; ++i)
             bytes.at(offsetof(Elf64_Ehdr, e_phoff) + i) = static_cast<char>(0xff);
           return bytes;
         },
         "is cut short: its table of segments lies outside its SIZE bytes"},
  };
  return *cases;
}

TEST(Files, EachIsOneWarningAndTheSameFromTheProbe) {
  const std::string good = BadFolder::Bytes(BadFolder::Built("good"));
  for (const FileCase& c : FileCases()) {
    SCOPED_TRACE(c.name);
    const BadFolder folder;
    const std::string bytes = c.change(good);
    const std::string path = folder.Write(absl::StrCat(c.name, ".so"), bytes);
    std::string expected = c.line;
    if (const auto at = expected.find("SIZE"); at != std::string::npos) {
      expected.replace(at, 4, std::to_string(bytes.size()));
    }
    Diagnostics diagnostics;
    const PluginRegistry registry = PluginRegistry::Load({folder.path()}, diagnostics);
    EXPECT_THAT(
        Lines(folder, diagnostics),
        ElementsAre(absl::StrCat("DIR/", c.name, ".so: warning: this plugin library ", expected)));
    EXPECT_EQ(Message(ProbeInChild(path).status()), expected);
  }
}

TEST(Files, ADirectoryCalledLikeALibrary) {
  const BadFolder folder;
  std::filesystem::create_directory(folder.File("x.so"));
  Diagnostics diagnostics;
  PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_THAT(
      Lines(folder, diagnostics),
      ElementsAre("DIR/x.so: warning: this plugin library is a directory, not a shared library"));
}

TEST(Files, ALinkToNowhereAndAPipe) {
  const BadFolder folder;
  std::filesystem::create_symlink("nowhere", folder.File("link.so"));
  ASSERT_EQ(mkfifo(folder.File("pipe.so").c_str(), 0600), 0);
  Diagnostics diagnostics;
  PluginRegistry::Load({folder.path()}, diagnostics);
  EXPECT_THAT(Lines(folder, diagnostics),
              ElementsAre("DIR/link.so: warning: this plugin library does not exist",
                          "DIR/pipe.so: warning: this plugin library is not a regular file"));
}

TEST(Files, EveryTruncationIsNoticed) {
  const std::string good = BadFolder::Bytes(BadFolder::Built("good"));
  const BadFolder folder;
  ASSERT_TRUE(CheckElf(folder.Write("whole.so", good)).ok());
  // The table of sections stands last, so a library with one cannot lose a byte unnoticed.
  for (std::size_t size = 0; size < good.size(); size += 97) {
    EXPECT_FALSE(CheckElf(folder.Write("cut.so", good.substr(0, size))).ok()) << size;
  }
}

// --- plugins that break when they are used
// -----------------------------------------------------------------

struct Loaded {
  explicit Loaded(const std::string& name) {
    folder.Take(name);
    registry = PluginRegistry::Load({folder.path()}, diagnostics);
  }
  std::string MakeMessage(const std::string& kind, const std::string& name) const {
    return folder.Anonymous(Message(registry.Make(kind, name).status()));
  }
  BadFolder folder;
  Diagnostics diagnostics;
  PluginRegistry registry;
};

TEST(Calls, AFactoryThatThrows) {
  const Loaded loaded("throws-in-factory");
  EXPECT_TRUE(loaded.diagnostics.empty());
  EXPECT_EQ(loaded.MakeMessage("strategy", "throws-in-factory"),
            "plugin library DIR/throws-in-factory.so cannot make strategy throws-in-factory: it "
            "throws the "
            "number 42");
  EXPECT_EQ(Message(ProbeInChild(loaded.folder.File("throws-in-factory.so")).status()),
            "cannot make strategy throws-in-factory: it throws the number 42");
}

TEST(Calls, AFactoryThatMakesNothing) {
  const Loaded loaded("null-factory");
  EXPECT_EQ(loaded.MakeMessage("strategy", "null-factory"),
            "plugin library DIR/null-factory.so cannot make strategy null-factory: its factory "
            "returns nothing");
}

TEST(Calls, AFactoryOfAnotherClass) {
  const Loaded loaded("wrong-class");
  EXPECT_EQ(loaded.MakeMessage("schedule", "wrong-class"),
            "plugin library DIR/wrong-class.so cannot make schedule wrong-class: its factory "
            "returns something "
            "else");
}

TEST(Calls, VisitThatThrows) {
  const Loaded loaded("throws-in-visit");
  auto made = loaded.registry.Make<Strategy>("throws-in-visit");
  ASSERT_TRUE(made.ok()) << made.status();
  ParameterDocumenter documenter;
  EXPECT_EQ(Message(Guarded("strategy throws-in-visit", [&] { (*made)->Visit(documenter); })),
            "strategy throws-in-visit: it throws something that is not a std::exception");
  EXPECT_EQ(
      Message(ProbeInChild(loaded.folder.File("throws-in-visit.so")).status()),
      "cannot list the parameters of strategy throws-in-visit: it throws something that is not a "
      "std::exception");
}

TEST(Calls, InitThatThrows) {
  const Loaded loaded("throws-in-init");
  auto made = loaded.registry.Make<Strategy>("throws-in-init");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Message(Guarded("strategy throws-in-init", [&] { (*made)->Init(InitContext()); })),
            "strategy throws-in-init: it throws an exception (the table of constants is missing)");
}

TEST(Calls, AGoodOne) {
  const Loaded loaded("good");
  EXPECT_TRUE(loaded.diagnostics.empty());
  EXPECT_TRUE(loaded.registry.Make<Strategy>("good").ok());
  auto found = ProbeInChild(loaded.folder.File("good.so"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().kind, "strategy");
  EXPECT_EQ(found->front().name, "good");
  EXPECT_EQ(found->front().description, "does nothing, well");
}

TEST(Calls, GuardedPassesAStatusOn) {
  EXPECT_TRUE(Guarded("a", [] {}).ok());
  EXPECT_TRUE(Guarded("a", [] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(Message(Guarded("a", [] { return absl::NotFoundError("b"); })), "b");
  EXPECT_EQ(Message(Guarded("a", [] { throw std::string("text"); })), "a: it throws a text (text)");
  EXPECT_EQ(Message(Guarded("a", [] { throw "text"; })), "a: it throws a text (text)");
}

// --- libraries that end the program while they are loaded
// --------------------------------------------------

TEST(Loading, TheProbeSurvives) {
  const BadFolder folder;
  EXPECT_EQ(
      Message(ProbeInChild(folder.Take("throws-while-loading")).status()),
      "ends the program while it is loaded: it throws an exception (static initialiser gave up)");
  EXPECT_EQ(Message(ProbeInChild(folder.Take("crashes-while-loading")).status()),
            "crashes while it is loaded: a segmentation fault (signal 11)");
  EXPECT_EQ(Message(ProbeInChild(folder.Take("exits-while-loading")).status()),
            "ends the program while it is loaded (exit status 7)");
  EXPECT_EQ(Message(ProbeInChild(folder.Take("hangs-while-loading"), 0.5).status()),
            "does not come back within 0.5 s while it is loaded");
}

TEST(LoadingDeathTest, TheProgramEndsWithOneLine) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const BadFolder folder;
  const std::string throws = folder.Take("throws-while-loading");
  const std::string crashes = folder.Take("crashes-while-loading");
  EXPECT_EXIT(static_cast<void>(PluginLibrary::Load(throws)), ::testing::ExitedWithCode(1),
              "^shardlab: plugin library .*/throws-while-loading.so ends the program while it is "
              "loaded: it "
              "throws an exception \\(static initialiser gave up\\); look closer with: shardlab "
              "plugins check "
              ".*/throws-while-loading.so\n$");
  EXPECT_EXIT(static_cast<void>(PluginLibrary::Load(crashes)), ::testing::ExitedWithCode(1),
              "^shardlab: plugin library .*/crashes-while-loading.so ends the program while it is "
              "loaded: a "
              "segmentation fault; look closer with: shardlab plugins check "
              ".*/crashes-while-loading.so\n$");
}

TEST(Loading, RandomDamageNeverEndsTheParent) {
  const std::string good = BadFolder::Bytes(BadFolder::Built("good"));
  const BadFolder folder;
  std::mt19937 random(20240607);
  int survived = 0;
  int refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::string bytes = good;
    const std::size_t reach = std::min<std::size_t>(bytes.size(), 16384);
    for (int i = 0; i < 20; ++i) bytes[random() % reach] = static_cast<char>(random() % 256);
    if (trial % 4 == 0) bytes.resize(random() % bytes.size());
    auto found = ProbeInChild(folder.Write("damaged.so", bytes), 5);
    if (found.ok()) {
      ++survived;
    } else {
      ++refused;
      EXPECT_THAT(Message(found.status()), ::testing::Not(HasSubstr("\n"))) << trial;
      EXPECT_FALSE(found.status().message().empty()) << trial;
    }
  }
  EXPECT_EQ(survived + refused, 200);
  EXPECT_GT(refused, 50);  // else nothing was tested
}

}  // namespace
}  // namespace shardlab
