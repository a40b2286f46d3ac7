#include "io/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;

// "did you mean ...?" for a name that is nearly that of a file beside it.
std::string NearestFile(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  constexpr std::size_t kEnough = 2000;  // a folder of checkpoints is not worth reading whole
  for (fs::directory_iterator it(folder, error), end; !error && it != end && names.size() < kEnough;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // the order of a folder is not the same everywhere
  const std::string nearest = Nearest(path.filename().string(), names);
  if (nearest.empty()) return "";
  return "did you mean " +
         (path.has_parent_path() ? (path.parent_path() / nearest).string() : nearest) + "?";
}

}  // namespace

std::optional<std::string> ReadTextFile(const std::string& path, Diagnostics& diagnostics,
                                        std::size_t most_bytes) {
  const Place place{path, 0, 0, ""};
  const auto refuse = [&](const char* code, std::string message, std::string hint = "") {
    diagnostics.Error(code, place, std::move(message), std::move(hint));
    return std::nullopt;
  };
  if (path.empty() || path.find('\0') != std::string::npos) {
    return refuse("file.missing", "no file of this name (the name is empty or holds a NUL byte)");
  }

  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const bool missing = status.type() == fs::file_type::not_found;
    return refuse(missing ? "file.missing" : "file.unreadable",
                  missing ? "no such file" : "cannot be read (" + error.message() + ")",
                  !missing      ? ""
                  : path == "-" ? "standard input is the file /dev/stdin"
                                : NearestFile(path));
  }
  if (fs::is_directory(status)) {
    return refuse("file.directory", "is a directory, not a file", "name the file inside it");
  }
  const char* const remedy = most_bytes == kMaximumTextBytes
                                 ? "a scenario is a few kilobytes of text"
                                 : "no order of work is as large: see whether this is the file";
  const std::string limit = std::to_string(most_bytes / 1'000'000) + " MB";
  if (fs::is_regular_file(status)) {
    const auto size = fs::file_size(path, error);
    if (!error && size > most_bytes) {
      return refuse("file.too_large",
                    "is larger than " + limit + " (" + std::to_string(size) + " bytes)", remedy);
    }
  }

  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return refuse("file.unreadable", std::string("cannot be read (") + std::strerror(errno) + ")");
  // The limit once more: a pipe or device has no size, and a file may grow while it is read.
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (text.size() <= most_bytes && stream) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return refuse("file.unreadable", "cannot be read to its end");
  if (text.size() > most_bytes) {
    return refuse("file.too_large", "is larger than " + limit, remedy);
  }
  if (text.empty()) return refuse("file.empty", "is empty");
  return text;
}

}  // namespace shardlab
