#pragma once
// Data files that ship with the program: <prefix>/share/shardlab of an installed one,
// <build>/share/shardlab of one that was just built.
//
//   std::string rules = SharedFile("validation/sources.toml", argv[0]);   // "" when there is none

#include <string>

namespace shardlab {

std::string SharedFile(const std::string& name, const char* argv0);

}  // namespace shardlab
