#include "io/render_diagnostics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace shardlab {
namespace {

Diagnostics One(Diagnostic d) {
  Diagnostics diagnostics;
  diagnostics.Add(std::move(d));
  return diagnostics;
}

std::string Render(const std::string& text, int line, int column) {
  return RenderDiagnostics(One({Severity::kError, "c", "m", {"f", line, column, "k"}, "", {}}),
                           {{"f", text}});
}

// The source line and the caret's line of a rendering of one plain diagnostic.
std::pair<std::string, std::string> Excerpt(const std::string& text, int line, int column) {
  const std::string out = Render(text, line, column);
  const std::size_t first = out.find('\n') + 1;
  const std::size_t second = out.find('\n', first) + 1;
  return {out.substr(first, second - first - 1), out.substr(second, out.size() - second - 1)};
}

TEST(RenderDiagnostics, Whole) {
  const Diagnostics diagnostics =
      One({Severity::kError,
           "value.kind",
           "degree must be a whole number, not the string",
           {"70b.toml", 2, 10, "strategy.tensor.degree"},
           "write degree = 8",
           {{"70b.toml", 1, 1, "strategy.tensor"}, {"--set", 0, 0, "a.b"}}});
  EXPECT_EQ(RenderDiagnostics(diagnostics, {{"70b.toml", "[strategy.tensor]\ndegree = \"8\"\n"}}),
            "70b.toml:2:10: error: degree must be a whole number, not the string\n"
            "    degree = \"8\"\n"
            "             ^\n"
            "  hint: write degree = 8\n"
            "70b.toml:1:1: note: the other place: strategy.tensor\n"
            "    [strategy.tensor]\n"
            "    ^\n"
            "--set a.b: note: the other place: a.b\n");
}

TEST(RenderDiagnostics, WithoutLineOrFile) {
  EXPECT_EQ(RenderDiagnostics(
                One({Severity::kWarning, "c", "no such thing", {"f.toml", 0, 0, ""}, "", {}}), {}),
            "f.toml: warning: no such thing\n");
  EXPECT_EQ(
      RenderDiagnostics(One({Severity::kError, "c", "bad", {"--set", 0, 0, "a.b"}, "", {}}), {}),
      "--set a.b: error: bad\n");
  EXPECT_EQ(RenderDiagnostics(One({Severity::kNote, "c", "hello", {}, "", {}}), {}),
            "note: hello\n");
  EXPECT_EQ(RenderDiagnostics(Diagnostics(), {}), "");
}

TEST(RenderDiagnostics, AFileThatIsNotKnownOrShorter) {
  EXPECT_EQ(
      RenderDiagnostics(One({Severity::kError, "c", "m", {"g", 3, 1, ""}, "", {}}), {{"f", "x"}}),
      "g:3:1: error: m\n");
  EXPECT_EQ(Render("one line", 7, 1), "f:7:1: error: m\n");
  EXPECT_EQ(Render("", 1, 1), "f:1:1: error: m\n\n    ^\n");
  EXPECT_EQ(Render("a\n", 2, 1), "f:2:1: error: m\n\n    ^\n");  // the end of the file
}

TEST(RenderDiagnostics, CaretBeyondTheLineStandsAtItsEnd) {
  EXPECT_EQ(Excerpt("abc\n", 1, 99).second, "       ^");
  EXPECT_EQ(Render("abc", 1, 0), "f:1: error: m\n    abc\n");  // no column, no caret
}

TEST(RenderDiagnostics, TabsAreSpacesUpToTheNextFourth) {
  EXPECT_EQ(Excerpt("\ta = x", 1, 6).first, "        a = x");
  EXPECT_EQ(Excerpt("\ta = x", 1, 6).second, "            ^");  // 4 + 4 + "a = "
  EXPECT_EQ(Excerpt("ab\tc", 1, 4).first, "    ab  c");
  EXPECT_EQ(Excerpt("ab\tc", 1, 4).second, "        ^");
}

TEST(RenderDiagnostics, WindowsLineEndsAndByteOrderMark) {
  EXPECT_EQ(Excerpt("\xEF\xBB\xBF"
                    "a = x\r\nb = y\r\n",
                    1, 5),
            std::make_pair(std::string("    a = x"), std::string("        ^")));
  EXPECT_EQ(Excerpt("a = x\r\nb = y\r\n", 2, 5).first, "    b = y");
}

TEST(RenderDiagnostics, CharactersOfOtherWidths) {
  // Two wide characters before the caret take four columns; a combining accent takes none.
  EXPECT_EQ(Excerpt("\xE4\xB8\xAD\xE6\x96\x87x", 1, 3).second, std::string(4 + 4, ' ') + "^");
  EXPECT_EQ(Excerpt("e\xCC\x81x", 1, 3).second, std::string(4 + 1, ' ') + "^");
  EXPECT_EQ(Excerpt("\xD0\xB6x", 1, 2).second, std::string(4 + 1, ' ') + "^");
}

TEST(RenderDiagnostics, BytesThatATerminalWouldObeyAreShownAsReplacement) {
  EXPECT_EQ(Excerpt("a\x1b[31m\xFF", 1, 2).first, "    a\xEF\xBF\xBD[31m\xEF\xBF\xBD");
  EXPECT_EQ(RenderDiagnostics(
                One({Severity::kError, "c", "a\nb\x1b", {"x\ny", 0, 0, "k\t"}, "h\x07", {}}), {}),
            "x\\ny k\\t: error: a\\nb\\x1b\n  hint: h\\x07\n");
}

TEST(RenderDiagnostics, LongLinesAreCutAroundTheCaret) {
  const std::string line = std::string(300, 'a') + "X" + std::string(300, 'b');
  auto [source, caret] = Excerpt(line, 1, 301);
  EXPECT_EQ(source, "    ..." + std::string(50, 'a') + "X" + std::string(49, 'b') + "...");
  EXPECT_EQ(caret, std::string(4 + 3 + 50, ' ') + "^");

  std::tie(source, caret) = Excerpt(line, 1, 1);
  EXPECT_EQ(source, "    " + std::string(100, 'a') + "...");
  EXPECT_EQ(caret, "    ^");

  std::tie(source, caret) = Excerpt(line, 1, 602);  // past the last character
  EXPECT_EQ(source, "    ..." + std::string(100, 'b'));
  EXPECT_EQ(caret, std::string(4 + 3 + 100, ' ') + "^");

  std::tie(source, caret) = Excerpt(std::string(100, 'a'), 1, 100);  // just fits
  EXPECT_EQ(source, "    " + std::string(100, 'a'));
}

TEST(RenderDiagnostics, TheCaretIsUnderItsCharacterWhereverItIs) {
  std::string line;
  for (int i = 0; i < 400; ++i) line += static_cast<char>(i % 7 == 0 ? '\t' : 'a' + i % 26);
  for (int column = 1; column <= 400; ++column) {
    const char expected = line[static_cast<std::size_t>(column - 1)];
    const auto [source, caret] = Excerpt(line, 1, column);
    ASSERT_LE(source.size(), 4u + 3 + 100 + 3);
    ASSERT_EQ(caret.back(), '^');
    const std::size_t at = caret.size() - 1;
    ASSERT_LT(at, source.size() + (expected == '\t' ? 1 : 0)) << column;
    ASSERT_EQ(at < source.size() ? source[at] : ' ', expected == '\t' ? ' ' : expected) << column;
  }
}

TEST(RenderDiagnostics, ManyPlacesInOneLongLineAreQuick) {
  std::string line = "a = [";
  Diagnostics diagnostics;
  for (int i = 0; i < 100000; ++i) {
    line += "x,";
    diagnostics.Error("c", {"f", 1, 6 + 2 * i, ""}, "m");
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string out = RenderDiagnostics(diagnostics, {{"f", line}});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_GT(out.size(), 100000u);
}

TEST(RenderDiagnostics, FarBeyondALongLineShowsItsEnd) {
  const auto [source, caret] = Excerpt(std::string(500, 'a') + "Z", 1, 5000);
  EXPECT_EQ(source, "    ..." + std::string(99, 'a') + "Z");
  EXPECT_EQ(caret, std::string(4 + 3 + 100, ' ') + "^");
}

TEST(RenderDiagnostics, ColorOnlyWhenAsked) {
  const Diagnostics diagnostics = One({Severity::kError, "c", "m", {"f", 1, 1, ""}, "h", {}});
  EXPECT_EQ(RenderDiagnostics(diagnostics, {{"f", "x"}}).find('\x1b'), std::string::npos);
  EXPECT_EQ(RenderDiagnostics(diagnostics, {{"f", "x"}}, true),
            "\x1b[1mf:1:1: \x1b[0m\x1b[1;31merror:\x1b[0m \x1b[1mm\x1b[0m\n    x\n    "
            "\x1b[1;32m^\x1b[0m\n"
            "  \x1b[1;36mhint:\x1b[0m h\n");
}

TEST(RenderDiagnostics, Json) {
  const Diagnostics diagnostics = One({Severity::kWarning,
                                       "key.unknown",
                                       "m",
                                       {"f", 3, 4, "a.b"},
                                       "h",
                                       {{"g", 1, 2, "c"}, {"--set", 0, 0, "d"}}});
  EXPECT_EQ(DiagnosticsToJson(diagnostics).dump(),
            "{\"schema\":\"shardlab.diagnostics/"
            "1\",\"diagnostics\":[{\"severity\":\"warning\",\"code\":\"key.unknown\","
            "\"message\":\"m\",\"file\":\"f\",\"line\":3,\"column\":4,\"key\":\"a.b\",\"hint\":"
            "\"h\",\"other_"
            "places\":"
            "[{\"file\":\"g\",\"line\":1,\"column\":2,\"key\":\"c\"},{\"file\":\"--set\",\"line\":"
            "0,\"column\":0,"
            "\"key\":\"d\"}]}]}");
  EXPECT_EQ(DiagnosticsToJson(Diagnostics()).dump(),
            "{\"schema\":\"shardlab.diagnostics/1\",\"diagnostics\":[]}");
}

TEST(RenderDiagnostics, JsonOfBadBytesCanBeDumped) {
  const auto json = DiagnosticToJson(
      {Severity::kError, "c", "\xFF", {"\xC3", 1, 1, "\x80"}, "\xE2\x82", {{"\xFF", 0, 0, ""}}});
  EXPECT_NO_THROW(json.dump());
  EXPECT_EQ(json["message"], "\xEF\xBF\xBD");
}

TEST(RenderDiagnostics, LoadsTheSourcesThatAreMissing) {
  const auto path = (std::filesystem::temp_directory_path() / "shardlab_render_test.toml").string();
  std::ofstream(path) << "a = x\n";
  const Diagnostics diagnostics =
      One({Severity::kError, "c", "m", {path, 1, 5, ""}, "", {{"gone.toml", 1, 1, ""}}});
  Sources sources = {{"kept", "k"}};
  LoadSources(diagnostics, &sources);
  std::filesystem::remove(path);
  EXPECT_EQ(sources.at(path), "a = x\n");
  EXPECT_EQ(sources.at("kept"), "k");
  EXPECT_NE(RenderDiagnostics(diagnostics, sources).find("    a = x\n        ^\n"),
            std::string::npos);
}

}  // namespace
}  // namespace shardlab
