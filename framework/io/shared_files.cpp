#include "io/shared_files.h"

#include <filesystem>
#include <system_error>

namespace shardlab {

std::string SharedFile(const std::string& name, const char* argv0) {
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (failed && argv0 != nullptr) program = std::filesystem::absolute(argv0, failed);
  const std::filesystem::path folder = program.parent_path();
  for (const std::filesystem::path& share :
       {folder.parent_path() / "share/shardlab", folder / "share/shardlab"}) {
    std::error_code ignored;
    if (std::filesystem::exists(share / name, ignored)) return (share / name).string();
  }
  return "";
}

}  // namespace shardlab
