#pragma once
// The fenced blocks and links of a Markdown document: what the documents' tests run and follow.
//
//   for (const Block& block : BlocksOf(text)) if (block.info == "sh") ...

#include <string>
#include <vector>

namespace shardlab::scenarios {

struct Block {
  std::string info;   // what stands behind the opening fence: "sh", "sh no-run", "text"
  std::string text;   // with its last newline
  int line = 0;       // of the opening fence
  int previous = -1;  // index of the block before it, if only blank lines stand between them
};

// Fences of three backquotes at the beginning of a line.
std::vector<Block> BlocksOf(const std::string& text);

// Targets of [text](target) outside of blocks that are files: no address, no anchor alone; without
// a #part.
std::vector<std::string> FileLinksOf(const std::string& text);

}  // namespace shardlab::scenarios
