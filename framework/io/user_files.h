#pragma once
// Files that the user names in a plugin's parameters. A plugin knows them by the user's name alone;
// in its diagnostics that name becomes the path from here.
//
//   UserFiles files("scenarios");             // the folder that names are relative to
//   files.PathOf("order.csv");                // "scenarios/order.csv"
//   files.PutPaths(before, &diagnostics);     // in places of diagnostics from the before-th on

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "base/diagnostic.h"

namespace shardlab {

class UserFiles {
 public:
  explicit UserFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Remembers the name.
  std::string PathOf(const std::string& name);
  void PutPaths(std::size_t before, Diagnostics* diagnostics) const;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> paths_;
};

}  // namespace shardlab
