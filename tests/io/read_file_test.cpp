#include "io/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace shardlab {
namespace {

namespace fs = std::filesystem;

class ReadFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("shardlab_read_file_" + std::to_string(getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  // The only diagnostic of reading a path that must be refused.
  static Diagnostic Refusal(const std::string& path) {
    Diagnostics diagnostics;
    EXPECT_FALSE(ReadTextFile(path, diagnostics).has_value());
    EXPECT_EQ(diagnostics.all().size(), 1u);
    return diagnostics.empty() ? Diagnostic() : diagnostics.all().front();
  }

  fs::path folder_;
};

TEST_F(ReadFile, ReadsEveryByte) {
  const std::string text("a\r\n\0\xFF", 5);
  Diagnostics diagnostics;
  EXPECT_EQ(ReadTextFile(Write("a.toml", text), diagnostics), text);
  EXPECT_TRUE(diagnostics.empty());
}

TEST_F(ReadFile, NamesTheNearestFile) {
  Write("llama.toml", "a = 1");
  const Diagnostic d = Refusal((folder_ / "lama.toml").string());
  EXPECT_EQ(d.code, "file.missing");
  EXPECT_EQ(d.message, "no such file");
  EXPECT_EQ(d.hint, "did you mean " + (folder_ / "llama.toml").string() + "?");
  EXPECT_EQ(d.place.file, (folder_ / "lama.toml").string());
  EXPECT_EQ(d.place.line, 0);
}

TEST_F(ReadFile, RefusesWhatIsNoFile) {
  EXPECT_EQ(Refusal("").code, "file.missing");
  EXPECT_EQ(Refusal(std::string("a\0b", 3)).code, "file.missing");
  EXPECT_EQ(Refusal(folder_.string()).code, "file.directory");
  EXPECT_EQ(Refusal((folder_ / "no" / "such" / "folder.toml").string()).code, "file.missing");
  EXPECT_EQ(Refusal(Write("plain", "x") + "/below").code, "file.missing");
  EXPECT_EQ(Refusal(folder_.string() + "/" + std::string(5000, 'x')).code, "file.unreadable");
  EXPECT_EQ(Refusal(Write("empty.toml", "")).code, "file.empty");
}

TEST_F(ReadFile, RefusesALargeFileUnread) {
  const std::string path = Write("large.toml", "");
  fs::resize_file(path, 17'000'000);
  const Diagnostic d = Refusal(path);
  EXPECT_EQ(d.code, "file.too_large");
  EXPECT_EQ(d.message, "is larger than 16 MB (17000000 bytes)");
  fs::resize_file(path, kMaximumTextBytes);
  Diagnostics diagnostics;
  EXPECT_EQ(ReadTextFile(path, diagnostics)->size(), kMaximumTextBytes);
}

TEST_F(ReadFile, StopsInAnEndlessDevice) { EXPECT_EQ(Refusal("/dev/zero").code, "file.too_large"); }

TEST_F(ReadFile, RefusesWhatMayNotBeRead) {
  const std::string path = Write("secret.toml", "a = 1");
  chmod(path.c_str(), 0);
  if (access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read everything";
  EXPECT_EQ(Refusal(path).code, "file.unreadable");
}

}  // namespace
}  // namespace shardlab
