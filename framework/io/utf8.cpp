#include "io/utf8.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace shardlab {
namespace {

struct Range {
  char32_t first, last;
};

bool In(const Range* begin, const Range* end, char32_t code) {
  return std::any_of(begin, end, [code](Range r) { return code >= r.first && code <= r.last; });
}

// The large blocks of Unicode's EastAsianWidth.txt (W and F) and of general category Mn: good
// enough to put a caret in its column.
constexpr Range kWide[] = {
    {0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},  {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr Range kCombining[] = {{0x0300, 0x036F}, {0x0483, 0x0487}, {0x0591, 0x05BD},
                                {0x0610, 0x061A}, {0x064B, 0x065F}, {0x1AB0, 0x1AFF},
                                {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x20D0, 0x20F0},
                                {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
constexpr Range kUnprintable[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x200E, 0x200F},
                                  {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF},
                                  {0xFFF9, 0xFFFB}};

}  // namespace

Utf8Character DecodeUtf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t bytes = 0;
  char32_t code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    bytes = 2;
    code = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    bytes = 3;
    code = lead & 0x0Fu;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    bytes = 4;
    code = lead & 0x07u;
  }
  if (bytes == 0 || text.size() - at < bytes) return {};
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0u) != 0x80u) return {};
    code = (code << 6) | (byte(at + i) & 0x3Fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {code, bytes, true};
}

void AppendUtf8(char32_t code, std::string* out) {
  const auto add = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3F));
    add(0x80 | ((code >> 6) & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

std::optional<std::size_t> FirstInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    if (!character.valid) return at;
    at += character.bytes;
  }
  return std::nullopt;
}

std::string ToValidUtf8(std::string_view text) {
  if (!FirstInvalidUtf8(text)) return std::string(text);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    AppendUtf8(character.code, &out);
    at += character.bytes;
  }
  return out;
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  return text;
}

int DisplayWidth(char32_t code) {
  if (code < 0x300) return 1;
  if (In(std::begin(kCombining), std::end(kCombining), code)) return 0;
  return In(std::begin(kWide), std::end(kWide), code) ? 2 : 1;
}

bool IsUnprintable(char32_t code) {
  return In(std::begin(kUnprintable), std::end(kUnprintable), code);
}

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = DecodeUtf8(text, at);
    at += character.bytes;
    if (!IsUnprintable(character.code)) {
      AppendUtf8(character.code, &out);
    } else if (character.code == '\n') {
      out += "\\n";
    } else if (character.code == '\r') {
      out += "\\r";
    } else if (character.code == '\t') {
      out += "\\t";
    } else {
      char buffer[16];
      std::snprintf(buffer, sizeof buffer, character.code < 0x100 ? "\\x%02x" : "\\u%04x",
                    static_cast<unsigned>(character.code));
      out += buffer;
    }
  }
  return out;
}

std::string Shortened(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < characters && at < text.size(); ++i) at += DecodeUtf8(text, at).bytes;
  return Printable(text.substr(0, at)) + (at < text.size() ? "..." : "");
}

LineColumn LineColumnOf(std::string_view text, std::size_t offset) {
  LineColumn place;
  for (std::size_t at = 0; at < offset && at < text.size();) {
    if (text[at] == '\n') {
      ++place.line;
      place.column = 1;
      ++at;
    } else {
      ++place.column;
      at += DecodeUtf8(text, at).bytes;
    }
  }
  return place;
}

}  // namespace shardlab
