#pragma once
// How text is laid out for a person: the width of the terminal and whether it takes colour.
//
//   TextStyle style{.width = 80, .color = false};
//   out << style.Bold("FITS");

#include <string>

namespace shardlab {

struct TextStyle {
  int width = 100;
  bool color = false;

  std::string Paint(const char* code, const std::string& text) const {
    return color ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
  }
  std::string Bold(const std::string& text) const { return Paint("1", text); }
  std::string Red(const std::string& text) const { return Paint("1;31", text); }
  std::string Green(const std::string& text) const { return Paint("1;32", text); }
  std::string Yellow(const std::string& text) const { return Paint("1;33", text); }
  std::string Dim(const std::string& text) const { return Paint("2", text); }
};

}  // namespace shardlab
