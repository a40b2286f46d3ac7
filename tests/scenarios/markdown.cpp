#include "scenarios/markdown.h"

#include <regex>
#include <sstream>

namespace shardlab::scenarios {
namespace {

bool IsFence(const std::string& line) { return line.rfind("```", 0) == 0; }

std::string Trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace

std::vector<Block> BlocksOf(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream lines(text);
  std::string line;
  bool inside = false, adjacent = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (inside) {
      if (IsFence(line)) {
        inside = false;
        adjacent = true;
      } else {
        blocks.back().text += line + "\n";
      }
    } else if (IsFence(line)) {
      const int previous = adjacent ? static_cast<int>(blocks.size()) - 1 : -1;
      blocks.push_back({Trimmed(line.substr(3)), "", number, previous});
      inside = true;
    } else if (!Trimmed(line).empty()) {
      adjacent = false;
    }
  }
  return blocks;
}

std::vector<std::string> FileLinksOf(const std::string& text) {
  static const std::regex kLink(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> links;
  std::istringstream lines(text);
  std::string line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (IsFence(line)) inside = !inside;
    if (inside) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), kLink), end; it != end; ++it) {
      std::string target = (*it)[1].str();
      if (target.find("://") != std::string::npos || target.rfind("mailto:", 0) == 0) continue;
      target = target.substr(0, target.find('#'));
      if (!target.empty()) links.push_back(target);
    }
  }
  return links;
}

}  // namespace shardlab::scenarios
