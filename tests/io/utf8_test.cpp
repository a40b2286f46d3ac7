#include "io/utf8.h"

#include <gtest/gtest.h>

namespace shardlab {
namespace {

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(code, &text);
    const Utf8Character back = DecodeUtf8(text, 0);
    ASSERT_TRUE(back.valid) << static_cast<unsigned>(code);
    ASSERT_EQ(back.code, code);
    ASSERT_EQ(back.bytes, text.size());
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_FALSE(FirstInvalidUtf8("").has_value());
  EXPECT_FALSE(FirstInvalidUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80").has_value());
  EXPECT_EQ(FirstInvalidUtf8("ab\xFFz"), 2u);
  EXPECT_EQ(FirstInvalidUtf8("\x80"), 0u);                  // a continuation alone
  EXPECT_EQ(FirstInvalidUtf8("a\xC3"), 1u);                 // cut short
  EXPECT_EQ(FirstInvalidUtf8("\xC0\xAF"), 0u);              // overlong in two bytes
  EXPECT_EQ(FirstInvalidUtf8("\xE0\x80\xAF"), 0u);          // in three
  EXPECT_EQ(FirstInvalidUtf8("\xF0\x80\x80\xAF"), 0u);      // in four
  EXPECT_EQ(FirstInvalidUtf8("\xED\xA0\x80"), 0u);          // a surrogate
  EXPECT_EQ(FirstInvalidUtf8("\xF4\x90\x80\x80"), 0u);      // above U+10FFFF
  EXPECT_EQ(FirstInvalidUtf8("\xF8\x88\x80\x80\x80"), 0u);  // five bytes
}

TEST(Utf8, ReplacesEachBadByte) {
  EXPECT_EQ(ToValidUtf8("a\xFF\xFE"
                        "b"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(ToValidUtf8("\xC3\xA9"), "\xC3\xA9");
}

TEST(Utf8, StripsOneByteOrderMark) {
  EXPECT_EQ(WithoutByteOrderMark("\xEF\xBB\xBF"
                                 "a"),
            "a");
  EXPECT_EQ(WithoutByteOrderMark("a"), "a");
  EXPECT_EQ(WithoutByteOrderMark("\xEF\xBB"), "\xEF\xBB");
}

TEST(Utf8, ColumnsCountCharacters) {
  const std::string text = "a\n\xC3\xA9\xC3\xA9=\r\nz";
  EXPECT_EQ(LineColumnOf(text, 0).line, 1);
  EXPECT_EQ(LineColumnOf(text, 6).line, 2);  // the '=' after two characters of two bytes
  EXPECT_EQ(LineColumnOf(text, 6).column, 3);
  EXPECT_EQ(LineColumnOf(text, 9).line, 3);
  EXPECT_EQ(LineColumnOf(text, 9).column, 1);
  EXPECT_EQ(LineColumnOf(text, 1000).column, 2);  // past the end: after the last character
}

TEST(Utf8, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("a\tb\nc\r"), "a\\tb\\nc\\r");
  EXPECT_EQ(Printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\xE2\x80\xAE"), "\\u202e");  // right-to-left override
  EXPECT_EQ(Printable("\xC2\x9B"), "\\x9b");        // the one-character escape sequence introducer
  EXPECT_EQ(Printable("\xD0\xB6"), "\xD0\xB6");
}

TEST(Utf8, ShortensByCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc...");
  EXPECT_EQ(Shortened("\xD0\xB6\xD0\xB6\xD0\xB6", 2), "\xD0\xB6\xD0\xB6...");
}

TEST(Utf8, KnowsWidths) {
  EXPECT_EQ(DisplayWidth(U'a'), 1);
  EXPECT_EQ(DisplayWidth(0x0436), 1);   // Cyrillic
  EXPECT_EQ(DisplayWidth(0x4E2D), 2);   // a Chinese character
  EXPECT_EQ(DisplayWidth(0x1F600), 2);  // an emoji
  EXPECT_EQ(DisplayWidth(0x0301), 0);   // a combining accent
}

}  // namespace
}  // namespace shardlab
