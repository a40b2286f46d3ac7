// What the documents tell a reader to type is typed: every ```sh block of README.md, docs/,
// lessons/, scenarios/README.md and the plugins' README files runs with `bash -e` from the
// repository root, with this build's shardlab first on the path, and ends with exit status 0. In
// the top README a ```text block right behind one is its output, to the letter. Blocks marked
// ```sh no-run are left out; only setting up may be in one.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/markdown.h"

namespace shardlab::scenarios {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHARDLAB_SOURCE_DIR;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> Documents() {
  std::vector<fs::path> found = {kRoot / "README.md", kRoot / "scenarios" / "README.md"};
  const auto below = [&](const char* folder, bool readme_only) {
    if (!fs::is_directory(kRoot / folder)) return;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".md" && (!readme_only || path.filename() == "README.md"))
        found.push_back(path);
    }
  };
  below("docs", false);
  below("lessons", false);
  below("plugins", true);
  std::sort(found.begin(), found.end());
  return found;
}

std::string Where(const fs::path& document, const Block& block) {
  return fs::relative(document, kRoot).string() + ":" + std::to_string(block.line);
}

// A folder of one's own for as long as this lives.
class Scratch final {
 public:
  Scratch()
      : path_(fs::temp_directory_path() / ("shardlab-documents-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

struct Ran {
  int status = -1;
  std::string out, err;
};

Ran RunBlock(const std::string& script) {
  const Scratch scratch;
  std::ofstream(scratch / "block.sh") << script;
  // Temporary folders that a block makes go with ours.
  const std::string command =
      "cd '" + kRoot.string() + "' && env -u COLUMNS -u SHARDLAB_PLUGIN_PATH NO_COLOR=1 TMPDIR='" +
      (scratch / "").string() + "' PATH='" SHARDLAB_BINARY_DIR "':\"$PATH\" bash -e '" +
      (scratch / "block.sh").string() + "' > '" + (scratch / "out").string() + "' 2> '" +
      (scratch / "err").string() + "' < /dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(scratch / "out"),
          ReadFile(scratch / "err")};
}

TEST(Documents, DoesWhatTheyTellToTypeWork) {
  std::size_t ran = 0;
  for (const fs::path& document : Documents()) {
    const bool top = document == kRoot / "README.md";
    const std::vector<Block> blocks = BlocksOf(ReadFile(document));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].info != "sh") continue;
      // An optional program.
      if (blocks[i].text.find("shardlab-mpi") != std::string::npos &&
          !fs::exists(SHARDLAB_BINARY_DIR "/shardlab-mpi"))
        continue;
      ++ran;
      const Ran got = RunBlock(blocks[i].text);
      EXPECT_EQ(got.status, 0) << Where(document, blocks[i]) << "\n" << blocks[i].text << got.err;
      const bool shown = i + 1 < blocks.size() && blocks[i + 1].info == "text" &&
                         blocks[i + 1].previous == static_cast<int>(i);
      if (!top || !shown) continue;
      EXPECT_EQ(got.out, blocks[i + 1].text)
          << Where(document, blocks[i + 1]) << " is not what comes out";
    }
  }
  EXPECT_GT(ran, 0u);
}

TEST(Documents, IsNothingButSettingUpLeftOut) {
  constexpr std::array<const char*, 4> kSettingUp = {"./run", "./check", "git clone ", "cd "};
  int left_out = 0;
  for (const fs::path& document : Documents()) {
    for (const Block& block : BlocksOf(ReadFile(document))) {
      if (block.info.rfind("sh ", 0) != 0) continue;
      EXPECT_EQ(block.info, "sh no-run") << Where(document, block);
      ++left_out;
      std::istringstream lines(block.text);
      for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line[0] == '#') continue;
        const bool allowed =
            std::any_of(kSettingUp.begin(), kSettingUp.end(),
                        [&](const std::string& start) { return line.rfind(start, 0) == 0; });
        EXPECT_TRUE(allowed) << Where(document, block) << ": could be run: " << line;
      }
    }
  }
  std::cout << left_out << " blocks are not run\n";
  RecordProperty("blocks_not_run", left_out);
}

TEST(Documents, IsEachLanguageKnown) {
  for (const fs::path& document : Documents()) {
    for (const Block& block : BlocksOf(ReadFile(document))) {
      EXPECT_TRUE(block.info != "bash" && block.info != "shell" && block.info != "console" &&
                  block.info != "sh,no-run")
          << Where(document, block) << ": write sh, so that it is run";
    }
  }
}

TEST(Documents, DoLinksLeadSomewhere) {
  for (const fs::path& document : Documents()) {
    for (const std::string& link : FileLinksOf(ReadFile(document))) {
      EXPECT_TRUE(fs::exists(document.parent_path() / link))
          << fs::relative(document, kRoot) << " links to " << link;
    }
  }
}

TEST(DocumentsReader, WhatIsABlock) {
  const std::vector<Block> blocks = BlocksOf(
      "a\n```sh\nls\n```\n\n```text\nx\n\ny\n```\nb\n```text\nz\n```\n```sh no-run\n./run\n```\n");
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].info, "sh");
  EXPECT_EQ(blocks[0].text, "ls\n");
  EXPECT_EQ(blocks[0].line, 2);
  EXPECT_EQ(blocks[0].previous, -1);
  EXPECT_EQ(blocks[1].text, "x\n\ny\n");
  EXPECT_EQ(blocks[1].previous, 0);
  EXPECT_EQ(blocks[2].previous, -1);  // prose stands between
  EXPECT_EQ(blocks[3].info, "sh no-run");
  EXPECT_EQ(blocks[3].previous, 2);
}

TEST(DocumentsReader, WhatIsALink) {
  EXPECT_EQ(
      FileLinksOf(
          "[a](x/y.md) [b](https://e.org) [c](z.md#part) [d](#here)\n```text\n[e](no.md)\n```\n"),
      (std::vector<std::string>{"x/y.md", "z.md"}));
}

TEST(DocumentsReader, IsAFailureNoticed) {
  EXPECT_EQ(RunBlock("false\ntrue\n").status, 1);
  EXPECT_EQ(RunBlock("echo out\necho err >&2\nexit 3\n").status, 3);
  EXPECT_EQ(RunBlock("echo out\necho err >&2\n").out, "out\n");
  EXPECT_EQ(RunBlock("pwd\n").out, kRoot.string() + "\n");
}

}  // namespace
}  // namespace shardlab::scenarios
