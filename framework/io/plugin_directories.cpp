#include "io/plugin_directories.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_split.h"

namespace shardlab {
namespace {

std::filesystem::path FolderOfExecutable(const char* argv0) {
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed && argv0 != nullptr) program = std::filesystem::absolute(argv0, failed);
  return program.parent_path();
}

}  // namespace

std::vector<std::string> PluginDirectories(const std::vector<std::string>& from_command_line,
                                           const char* argv0) {
  std::vector<std::string> directories = from_command_line;
  if (const char* path = std::getenv("SHARDLAB_PLUGIN_PATH"); path != nullptr) {
    for (const absl::string_view part : absl::StrSplit(path, ':', absl::SkipEmpty())) {
      directories.emplace_back(part);
    }
  }
  const std::filesystem::path folder = FolderOfExecutable(argv0);
  for (const std::filesystem::path& own :
       {folder.parent_path() / "lib/shardlab/plugins", folder / "plugins"}) {
    std::error_code ignored;
    if (std::filesystem::is_directory(own, ignored)) directories.push_back(own.string());
  }
  return directories;
}

}  // namespace shardlab
