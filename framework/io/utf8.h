#pragma once
// UTF-8 by hand, for places and carets: where the first bad byte is, which column a byte is in, how
// wide a character is in a terminal. Columns count characters (code points) from 1, as toml++ does.
//
//   if (auto bad = FirstInvalidUtf8(text)) Report(LineColumnOf(text, *bad));
//   std::string safe = Printable("a\x1b[31m");   // "a\x1b[31m" with the escape spelled out

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shardlab {

struct Utf8Character {
  char32_t code = 0xFFFD;  // the replacement character for a bad byte
  std::size_t bytes = 1;   // a bad byte is a character of its own
  bool valid = false;
};

// The character that begins at text[at]; at < text.size(). Overlong forms and surrogates are bad
// bytes.
Utf8Character DecodeUtf8(std::string_view text, std::size_t at);
void AppendUtf8(char32_t code, std::string* out);

std::optional<std::size_t> FirstInvalidUtf8(std::string_view text);
// The same text with U+FFFD for each bad byte: what JSON may hold.
std::string ToValidUtf8(std::string_view text);
std::string_view WithoutByteOrderMark(std::string_view text);

// Columns that a terminal gives the character: 0 for combining marks, 2 for East Asian wide,
// else 1.
int DisplayWidth(char32_t code);
// Control characters, line separators and the marks that reorder text: never printed as they are,
// because a file could otherwise paint the terminal or show a line that it does not contain.
bool IsUnprintable(char32_t code);
// Valid UTF-8 on one line: unprintable characters are spelled \n, \t, \x1b, \u202e.
std::string Printable(std::string_view text);
// The same, cut after `characters` characters with "..." for the rest: what a message quotes of a
// user's text.
std::string Shortened(std::string_view text, std::size_t characters = 60);

struct LineColumn {
  int line = 1;
  int column = 1;
};
LineColumn LineColumnOf(std::string_view text, std::size_t offset);

}  // namespace shardlab
