#include "lessons/typed.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "app/commands.h"

namespace shardlab {

namespace fs = std::filesystem;

void LessonCommandTest::SetUp() {
  folder_ = fs::temp_directory_path() / ("shardlab-lessons-" + std::to_string(getpid()));
  fs::remove_all(folder_);
  setenv("XDG_DATA_HOME", folder_.c_str(), 1);
}

void LessonCommandTest::TearDown() { fs::remove_all(folder_); }

int LessonCommandTest::Run(std::vector<std::string> args, const std::string& input) {
  args.insert(args.begin(), "lesson");
  args.insert(args.end(), {"--plugins", SHARDLAB_BINARY_DIR "/plugins", "--lessons",
                           SHARDLAB_SOURCE_DIR "/lessons"});
  std::ostringstream out, err;
  std::istringstream in(input);
  Terminal terminal;
  terminal.width = 80;
  terminal.in = &in;
  const int status = RunShardlab(args, out, err, terminal);
  out_ = out.str();
  err_ = err.str();
  return status;
}

LessonCommandTest::Json LessonCommandTest::Ask(std::vector<std::string> args) {
  args.insert(args.end(), {"--format", "json"});
  EXPECT_EQ(Run(args), 0) << err_;
  return Json::parse(out_);
}

}  // namespace shardlab
