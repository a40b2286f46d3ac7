#pragma once
// A folder of the test's own with the libraries that it picks from <build>/bad-plugins, as they are
// or made worse; removed at the end.
//
//   BadFolder folder;
//   const std::string path = folder.Take("good");
//   folder.Write("cut.so", BadFolder::Bytes(path).substr(0, 4096));

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace shardlab {

class BadFolder final {
 public:
  BadFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "shardlab-border-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = std::filesystem::canonical(pattern).string();
  }
  ~BadFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BadFolder(const BadFolder&) = delete;
  BadFolder& operator=(const BadFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

  static std::string Built(const std::string& name) {
    return std::string(SHARDLAB_BINARY_DIR "/bad-plugins/") + name + "/" + name + ".so";
  }
  static std::string Bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path << " is not built";
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary) << bytes;
    return File(name);
  }
  std::string Take(const std::string& name) const {
    return Write(name + ".so", Bytes(Built(name)));
  }

  // The text with this folder's path replaced by DIR.
  std::string Anonymous(std::string text) const {
    for (std::size_t at = text.find(path_); at != std::string::npos; at = text.find(path_)) {
      text.replace(at, path_.size(), "DIR");
    }
    return text;
  }

 private:
  std::string path_;
};

}  // namespace shardlab
