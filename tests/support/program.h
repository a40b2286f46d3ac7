#pragma once
// The program run in-process, as a user runs it; for groups made by support/app_tests.cmake.
//
//   const ProgramRun run = RunProgram({"plan", "70b.toml", "--format", "json"});
//   EXPECT_EQ(run.status, 0) << run.err;

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.h"

namespace shardlab {

struct ProgramRun {
  int status = 0;
  std::string out, err;
};

inline ProgramRun RunProgram(const std::vector<std::string>& args) {
  // A test that is not started by ctest finds the plugins all the same.
  setenv("SHARDLAB_PLUGIN_PATH", SHARDLAB_BINARY_DIR "/plugins", 0);
  std::ostringstream out, err;
  ProgramRun run;
  run.status = RunShardlab(args, out, err);
  run.out = out.str();
  run.err = err.str();
  return run;
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The current directory, until the end of the scope.
class WorkingDirectory final {
 public:
  explicit WorkingDirectory(const std::filesystem::path& path)
      : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingDirectory() { std::filesystem::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  std::filesystem::path before_;
};

// An empty folder, gone at the end of the scope.
class ScratchFolder final {
 public:
  ScratchFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "shardlab-test-XXXXXX").string();
    path_ = mkdtemp(path.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace shardlab
