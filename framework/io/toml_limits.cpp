#include "io/toml_limits.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "io/read_file.h"
#include "io/utf8.h"

namespace shardlab {
namespace {

// Just past the string that opens at text[at], or at the line break that leaves it unclosed.
std::size_t SkipString(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool escapes = quote == '"';
  const std::string triple(3, quote);
  const bool multi_line = text.substr(at, 3) == triple;
  at += multi_line ? 3 : 1;
  while (at < text.size()) {
    if (!multi_line && text[at] == '\n') return at;
    if (escapes && text[at] == '\\') {
      at += at + 1 < text.size() && text[at + 1] == '\n' && !multi_line ? 1 : 2;
    } else if (multi_line && text.substr(at, 3) == triple) {
      at += 3;
      // Up to two more quotes belong to the text: """a""""" is a"".
      for (int extra = 0; extra < 2 && at < text.size() && text[at] == quote; ++extra) ++at;
      return at;
    } else if (!multi_line && text[at] == quote) {
      return at + 1;
    } else {
      ++at;
    }
  }
  return text.size();
}

// Follows how deep a TOML text nests. It may be wrong about text that is not TOML, never too low
// for text that is.
class Shape final {
 public:
  void Read(char c) {
    switch (c) {
      case '\n':
        EndLine();
        break;
      case '.':
        ++dots_;
        break;
      case ',':
        dots_ = 0;
        ++values_;
        break;
      case '=':
        ++values_;
        break;
      case '[':
      case '{':
        Open(c);
        break;
      case ']':
      case '}':
        Close();
        break;
      default:
        break;
    }
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') line_start_ = false;
  }

  int depth() const { return header_ + inside_ + dots_; }
  std::size_t values() const { return values_; }

 private:
  void Open(char c) {
    if (in_header_) return;
    if (c == '[' && line_start_ && open_.empty()) {
      in_header_ = true;
      header_ = 0;
      dots_ = 0;
      ++values_;
      return;
    }
    open_.push_back(dots_ + 1);
    inside_ += dots_ + 1;
    dots_ = 0;
  }

  void Close() {
    if (in_header_ || open_.empty()) return;
    inside_ -= open_.back();
    open_.pop_back();
    dots_ = 0;
  }

  void EndLine() {
    if (in_header_) header_ = dots_ + 1;
    in_header_ = false;
    dots_ = 0;
    line_start_ = open_.empty();
  }

  int header_ = 0;  // segments of the last [a.b.c]
  int inside_ = 0;  // levels of the brackets that are open, with the dotted keys before them
  int dots_ = 0;    // of the key or number being read
  bool in_header_ = false;
  bool line_start_ = true;
  std::vector<int> open_;
  std::size_t values_ = 0;
};

}  // namespace

bool CheckTomlLimits(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* code, std::optional<std::size_t> offset, std::string message,
                          std::string hint) {
    Place place{file, 0, 0, ""};
    if (offset) {
      const LineColumn at = LineColumnOf(text, *offset);
      place.line = at.line;
      place.column = at.column;
    }
    diagnostics.Error(code, std::move(place), std::move(message), std::move(hint));
    return false;
  };

  if (text.size() > kMaximumTextBytes) {
    return refuse("file.too_large", std::nullopt,
                  "is larger than " + std::to_string(kMaximumTextBytes / 1'000'000) + " MB",
                  "a scenario is a few kilobytes of text");
  }
  const std::size_t nul = std::min(text.find('\0'), text.size());
  const std::size_t invalid = FirstInvalidUtf8(text).value_or(text.size());
  if (invalid < text.size() && invalid <= nul) {
    const auto byte = static_cast<unsigned char>(text[invalid]);
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, "0x%02X", byte);
    const bool utf16 = invalid == 0 && (byte == 0xFF || byte == 0xFE);
    return refuse(
        "toml.utf8", invalid, std::string("not UTF-8 text (byte ") + spelled + " here)",
        utf16 ? "the file looks like UTF-16: save it as UTF-8" : "save the file as UTF-8");
  }
  if (nul < text.size()) {
    return refuse("toml.nul", nul, "a NUL byte (this is not a text file)",
                  "TOML is plain UTF-8 text");
  }

  Shape shape;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    shape.Read(c);
    if (shape.depth() > kMaximumTomlDepth) {
      return refuse("toml.nesting", at,
                    "nested too deep (more than " + std::to_string(kMaximumTomlDepth) +
                        " tables and lists inside one another)",
                    "");
    }
    if (shape.values() > kMaximumTomlValues) {
      return refuse(
          "toml.too_many_values", at,
          "too many values (more than " + std::to_string(kMaximumTomlValues) + " in one file)", "");
    }
    at = c == '"' || c == '\'' ? SkipString(text, at) : at + 1;
  }
  return true;
}

}  // namespace shardlab
