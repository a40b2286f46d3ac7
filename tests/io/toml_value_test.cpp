#include "io/toml_value.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "io/read_file.h"
#include "io/toml_limits.h"

namespace shardlab {
namespace {

Value Parse(const std::string& text) {
  Diagnostics diagnostics;
  Value value = ParseToml(text, "f.toml", diagnostics);
  for (const Diagnostic& d : diagnostics.all()) ADD_FAILURE() << d.message << " in " << text;
  return value;
}

// The only diagnostic of a text that must be refused.
Diagnostic Refusal(const std::string& text) {
  Diagnostics diagnostics;
  const Value value = ParseToml(text, "f.toml", diagnostics);
  EXPECT_EQ(value.kind, Value::kNone) << text.substr(0, 100);
  EXPECT_EQ(diagnostics.all().size(), 1u) << text.substr(0, 100);
  return diagnostics.empty() ? Diagnostic() : diagnostics.all().front();
}

void ExpectAt(const Diagnostic& d, const std::string& code, int line, int column) {
  EXPECT_EQ(d.code, code) << d.message;
  EXPECT_EQ(d.place.file, "f.toml");
  EXPECT_EQ(d.place.line, line) << d.message;
  EXPECT_EQ(d.place.column, column) << d.message;
  EXPECT_FALSE(d.message.empty());
}

void ExpectPlace(const Place& place, int line, int column, const std::string& key) {
  EXPECT_EQ(place, (Place{"f.toml", line, column, key}));
}

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(TomlValue, EveryKind) {
  const Value root = Parse(
      "t = true\nf = false\ni = -12\nhex = 0x1F\nn = 1.5\ns = 'raw\\n'\nm = \"\"\"\na\nb\"\"\"\n"
      "l = [1, \"two\", [3.0]]\ninline = {a = 1, b.c = 2}\n");
  EXPECT_TRUE(root.Find("t")->boolean);
  EXPECT_EQ(root.Find("t")->kind, Value::kBoolean);
  EXPECT_FALSE(root.Find("f")->boolean);
  EXPECT_EQ(root.Find("i")->integer, -12);
  EXPECT_EQ(root.Find("i")->number, -12.0);
  EXPECT_EQ(root.Find("hex")->integer, 31);
  EXPECT_EQ(root.Find("n")->kind, Value::kNumber);
  EXPECT_EQ(root.Find("n")->number, 1.5);
  EXPECT_EQ(root.Find("s")->text, "raw\\n");
  EXPECT_EQ(root.Find("m")->text, "a\nb");
  ASSERT_EQ(root.Find("l")->array.size(), 3u);
  EXPECT_EQ(root.Find("l")->array[1].text, "two");
  EXPECT_EQ(root.Find("l")->array[2].array[0].number, 3.0);
  EXPECT_EQ(root.FindPath("inline.b.c")->integer, 2);
}

TEST(TomlValue, PlacesOfKeysAndValues) {
  const Value root =
      Parse("name = \"x\"\r\n\r\n[strategy.tensor]\r\n\tdegree  =  8\r\nlayers = [1,\n  2]\n");
  EXPECT_EQ(root.place, (Place{"f.toml", 1, 1, ""}));
  ExpectPlace(root.Find("name")->key_place, 1, 1, "name");
  ExpectPlace(root.Find("name")->place, 1, 8, "name");
  ExpectPlace(root.Find("strategy")->key_place, 3, 2, "strategy");
  ExpectPlace(root.FindPath("strategy.tensor")->key_place, 3, 11, "strategy.tensor");
  ExpectPlace(root.FindPath("strategy.tensor")->place, 3, 1, "strategy.tensor");
  ExpectPlace(root.FindPath("strategy.tensor.degree")->key_place, 4, 2, "strategy.tensor.degree");
  ExpectPlace(root.FindPath("strategy.tensor.degree")->place, 4, 13, "strategy.tensor.degree");
  const Value* layers = root.FindPath("strategy.tensor.layers");
  ExpectPlace(layers->array[1].place, 6, 3, "strategy.tensor.layers[1]");
}

TEST(TomlValue, ColumnsCountCharactersNotBytes) {
  const Value root =
      Parse("\"\xD0\xB6\xD0\xB6\" = 1\n");  // two letters of two bytes in quotes, then " = "
  ExpectPlace(root.table[0].second.place, 1, 8, "\"\xD0\xB6\xD0\xB6\"");
  EXPECT_EQ(root.table[0].first, "\xD0\xB6\xD0\xB6");
}

TEST(TomlValue, KeysThatNeedQuotesHaveThem) {
  const Value root = Parse("[sweep]\n\"strategy.tensor.degree\" = [1, 2]\n'' = 0\n'a\"b' = 0\n");
  const Value* sweep = root.Find("sweep");
  EXPECT_EQ(sweep->table[0].first, "strategy.tensor.degree");
  EXPECT_EQ(sweep->table[0].second.place.key, "sweep.\"strategy.tensor.degree\"");
  EXPECT_EQ(sweep->table[0].second.array[1].place.key, "sweep.\"strategy.tensor.degree\"[1]");
  EXPECT_EQ(sweep->table[1].second.place.key, "sweep.\"\"");
  EXPECT_EQ(sweep->table[2].second.place.key, "sweep.\"a\\\"b\"");
}

TEST(TomlValue, OrderOfTheFile) {
  const Value root = Parse("z = 1\na = 2\n[m.y]\n[b]\n[m.a]\n[[k]]\nq = 1\nc = 2\n[[k]]\n");
  std::string order;
  for (const auto& [name, value] : root.table) order += name;
  EXPECT_EQ(order, "zambk");
  EXPECT_EQ(root.Find("m")->table[0].first, "y");
  EXPECT_EQ(root.Find("m")->table[1].first, "a");
  EXPECT_EQ(root.Find("k")->array.size(), 2u);
  EXPECT_EQ(root.Find("k")->array[0].table[0].first, "q");
  EXPECT_EQ(root.Find("k")->array[1].place.line, 9);
}

TEST(TomlValue, AByteOrderMarkDoesNotShiftColumns) {
  const Value root = Parse(
      "\xEF\xBB\xBF"
      "a = 1\n");
  ExpectPlace(root.Find("a")->place, 1, 5, "a");
  ExpectAt(Refusal("\xEF\xBB\xBF"
                   "a = x\n"),
           "toml.syntax", 1, 5);
}

TEST(TomlValue, NotFiniteNumbersAreRead) {
  const Value root = Parse("a = inf\nb = -inf\nc = nan\n");
  EXPECT_GT(root.Find("a")->number, 1e308);
  EXPECT_LT(root.Find("b")->number, -1e308);
  EXPECT_NE(root.Find("c")->number, root.Find("c")->number);
}

TEST(TomlValue, EmptyFiles) {
  EXPECT_EQ(Refusal("").message, "is empty");
  EXPECT_EQ(Refusal(" \n\t\r\n").code, "file.empty");
  EXPECT_EQ(Refusal("\xEF\xBB\xBF").code, "file.empty");
  EXPECT_EQ(Refusal("# nothing\n").message, "holds no keys (only blank lines and comments)");
}

TEST(TomlValue, BytesThatAreNotText) {
  ExpectAt(Refusal("a = 1\nb = \"\xC3\xA9\xFF\"\n"), "toml.utf8", 2, 7);
  EXPECT_EQ(Refusal("a = \xC3(").message, "not UTF-8 text (byte 0xC3 here)");
  EXPECT_EQ(Refusal("# latin-1: \xE9\n").code, "toml.utf8");  // in a comment too
  EXPECT_EQ(Refusal(std::string("\xFF\xFE"
                                "a\0=\0",
                                6))
                .hint,
            "the file looks like UTF-16: save it as UTF-8");
  ExpectAt(Refusal(std::string("a = 1\nb = \"\0\"", 13)), "toml.nul", 2, 6);
  ExpectAt(Refusal(std::string("\0", 1)), "toml.nul", 1, 1);
  EXPECT_EQ(Refusal("a = \"\x01\"").code, "toml.syntax");
}

TEST(TomlValue, SizeIsCheckedFirst) {
  const Diagnostic d = Refusal(std::string(17'000'000, '#'));
  EXPECT_EQ(d.code, "file.too_large");
  EXPECT_EQ(d.place.line, 0);
}

TEST(TomlValue, ATooManyValuedFileIsRefusedQuickly) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Refusal("a = [" + Repeat("1,", 2'000'000) + "]").code, "toml.too_many_values");
  EXPECT_EQ(Refusal(Repeat("[[a]]\n", 2'000'000)).code, "toml.too_many_values");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(TomlValue, DeepNesting) {
  for (const int depth : {101, 1000, 100'000}) {
    EXPECT_EQ(Refusal("a = " + std::string(depth, '[')).code, "toml.nesting");
    EXPECT_EQ(Refusal("a = " + std::string(depth, '[') + std::string(depth, ']')).code,
              "toml.nesting");
    EXPECT_EQ(Refusal("a = " + Repeat("{a = ", depth) + "1" + std::string(depth, '}')).code,
              "toml.nesting");
    EXPECT_EQ(Refusal("a" + Repeat(".a", depth) + " = 1").code, "toml.nesting");
    EXPECT_EQ(Refusal("[a" + Repeat(".a", depth) + "]").code, "toml.nesting");
    EXPECT_EQ(Refusal("[[a" + Repeat(".a", depth) + "]]").code, "toml.nesting");
    EXPECT_EQ(Refusal("a" + Repeat(".'a.b'", depth) + " = 1").code, "toml.nesting");
  }
  // Each part alone would pass; the levels add up.
  EXPECT_EQ(Refusal("[a" + Repeat(".a", 60) + "]\na" + Repeat(".a", 60) + " = 1").code,
            "toml.nesting");
  EXPECT_EQ(Refusal("a" + Repeat(".a", 60) + " = {" + "a" + Repeat(".a", 60) + " = 1}").code,
            "toml.nesting");
  // The place is where the limit is passed: "a = " and the 101st bracket, less the level of the key
  // itself.
  ExpectAt(Refusal("b = 1\na = " + std::string(200, '[')), "toml.nesting", 2, 105);
}

TEST(TomlValue, WhatOnlyLooksDeepIsFine) {
  const std::string deep(500, '[');
  Parse("a = \"" + deep + "\"");
  Parse("a = '" + deep + "'");
  Parse("a = \"\"\"\n" + deep + "\n\"\"" + deep + "\"\"\"\"\"\nb = [1]");
  Parse("a = '''\n" + deep + "\n'''\nb = '" + deep + "'");
  Parse("a = \"\\\"" + deep + "\"");
  Parse("# " + deep + "\na = 1");
  Parse("a = [\n" + Repeat("[1.5, 2.5], # [\n", 500) + "]\n");
  Parse("a = '" + Repeat("a.", 500) + "'");
  Parse("[x]\na.b.c = 1.5\n[y]\na.b.c = 1.5\n");
  std::string many;
  for (int i = 0; i < 500; ++i) many += "[t" + std::to_string(i) + ".a.b]\nc.d = 1.5\n";
  Parse(many);
  Parse("a = " + std::string(90, '[') + std::string(90, ']'));
}

TEST(TomlValue, SyntaxErrorsSayWhereAndWhatToWrite) {
  Diagnostic d = Refusal("plugin = llama\n");
  ExpectAt(d, "toml.syntax", 1, 10);
  EXPECT_EQ(d.message,
            "not valid TOML: this is no string, number, true or false, list or table (while "
            "reading a value)");
  EXPECT_EQ(d.hint, "a string is written in quotes: plugin = \"llama\"");

  d = Refusal("[hardware]\nmemory = 80 GB  # of HBM\n");
  ExpectAt(d, "toml.syntax", 2, 13);
  EXPECT_EQ(d.hint, "a quantity is written as a string with its unit: memory = \"80 GB\"");

  EXPECT_EQ(Refusal("tied = True\n").hint, "write tied = true");
  EXPECT_EQ(Refusal("tied = no\n").hint, "write tied = false");

  d = Refusal("a = \"abc\nb = 1\n");
  ExpectAt(d, "toml.syntax", 1, 9);
  EXPECT_NE(d.message.find("the string is not closed on its line"), std::string::npos);

  d = Refusal("a = \n");
  EXPECT_NE(d.message.find("saw the end of the line"), std::string::npos);
  d = Refusal("a = [1, 2");
  EXPECT_NE(d.message.find("the file ends here"), std::string::npos);

  ExpectAt(Refusal("a = 1\nb = 2 c = 3\n"), "toml.syntax", 2, 7);
  ExpectAt(Refusal("\xD0\xB6 = 1\n"), "toml.syntax", 1, 1);
  ExpectAt(Refusal("a = 1\n[b\n"), "toml.syntax", 2, 3);
  for (const char* bad :
       {"= 1", "a", "a = 0x", "a = 1__0", "a = 01", "a = '''x", "a = {b = 1,}", "a = [1,,2]", "[]",
        "a = \"\\q\"", "a = \"\\ud800\"", "a = 1e999", "a\r= 1", "a = 1\rb = 2", "\x1b\x01"}) {
    EXPECT_EQ(Refusal(bad).code, "toml.syntax") << bad;
  }
}

TEST(TomlValue, DuplicatesNameBothPlaces) {
  Diagnostic d = Refusal("[x]\na = 1\n[y]\na = 0\nb = 1\na = 2\n");
  ExpectAt(d, "toml.duplicate", 6, 5);
  ASSERT_EQ(d.other_places.size(), 1u);
  ExpectPlace(d.other_places[0], 4, 1, "y.a");

  d = Refusal("[t.u]\na = 1\n\n[t.u]\nb = 2\n");
  EXPECT_EQ(d.code, "toml.duplicate");
  EXPECT_EQ(d.place.line, 4);
  ASSERT_EQ(d.other_places.size(), 1u);
  EXPECT_EQ(d.other_places[0].line, 1);
  EXPECT_EQ(d.other_places[0].key, "t.u");

  d = Refusal("a.b = 1\na = 2\n");
  ExpectAt(d, "toml.duplicate", 2, 5);
  ASSERT_EQ(d.other_places.size(), 1u);
  ExpectPlace(d.other_places[0], 1, 1, "a");

  EXPECT_EQ(Refusal("a = 1\n[a.b]\nc = 1\n").code, "toml.duplicate");
  EXPECT_EQ(Refusal("a = {b = 1, b = 2}\n").code,
            "toml.duplicate");  // in one line: no other place to show
}

TEST(TomlValue, IntegersThatDoNotFit) {
  const Diagnostic d = Refusal("a = 9223372036854775808\n");
  EXPECT_EQ(d.code, "toml.integer");
  EXPECT_EQ(d.message,
            "whole number 9223372036854775808 is too large (it does not fit in 64 bits)");
  EXPECT_EQ(Refusal("a = 0xFFFFFFFFFFFFFFFFF\n").code, "toml.integer");
  EXPECT_EQ(Parse("a = 9223372036854775807\n").Find("a")->integer, 9223372036854775807LL);
}

TEST(TomlValue, DatesAreNamedOneByOne) {
  Diagnostics diagnostics;
  const Value root =
      ParseToml("a = 2020-01-01\nb.c = 12:30:00\nd = [1, 1979-05-27T07:32:00Z]\ne = 1\n", "f.toml",
                diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 3u);
  ExpectAt(diagnostics.all()[0], "toml.date", 1, 5);
  EXPECT_EQ(diagnostics.all()[0].message, "a is a date or time, which nothing here understands");
  EXPECT_EQ(diagnostics.all()[1].place.key, "b.c");
  EXPECT_EQ(diagnostics.all()[2].place.key, "d[1]");
  EXPECT_EQ(root.Find("a")->kind, Value::kNone);
  EXPECT_EQ(root.Find("e")->integer, 1);  // the rest is read
}

TEST(TomlValue, LongKeysAreRefusedBeforeTheyAddUp) {
  Diagnostics diagnostics;
  const std::string name(2000, 'k');
  const Value root = ParseToml("[" + name + "]\na = 1\n[b]\nc = 1\n", "f.toml", diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 1u);
  ExpectAt(diagnostics.all()[0], "toml.key_length", 1, 2);
  EXPECT_EQ(root.FindPath("b.c")->integer, 1);
}

TEST(TomlValue, ReadsFiles) {
  const auto path = std::filesystem::temp_directory_path() / "shardlab_toml_value_test.toml";
  std::ofstream(path) << "a = 1\n";
  Diagnostics diagnostics;
  const Value root = ReadTomlFile(path.string(), diagnostics);
  std::filesystem::remove(path);
  EXPECT_EQ(root.Find("a")->place, (Place{path.string(), 1, 5, "a"}));
  EXPECT_EQ(ReadTomlFile(path.string(), diagnostics).kind, Value::kNone);
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].code, "file.missing");
}

TEST(TomlValue, SingleValues) {
  const auto parse = [](std::string_view text) {
    Diagnostics diagnostics;
    const auto value = ParseTomlValue(text, "--set", "k", diagnostics);
    EXPECT_TRUE(diagnostics.empty());
    return value;
  };
  EXPECT_EQ(parse("8")->integer, 8);
  EXPECT_EQ(parse(" true ")->boolean, true);
  EXPECT_EQ(parse("\"a b\"")->text, "a b");
  EXPECT_EQ(parse("[1, {x = 2}]")->array[1].Find("x")->place, (Place{"--set", 0, 0, "k[1].x"}));
  for (const char* bad :
       {"", "llama", "80 GB", "1\nother = 2", "1\n[t]", "[1, 2", "01", "\"a", "\n5"}) {
    EXPECT_FALSE(parse(bad).has_value()) << bad;
  }
  EXPECT_FALSE(parse(std::string(300, '[') + std::string(300, ']')).has_value());
}

TEST(TomlValue, SingleKeys) {
  using Path = std::vector<std::string>;
  EXPECT_EQ(ParseTomlKey("a"), Path({"a"}));
  EXPECT_EQ(ParseTomlKey("a.b-c.d_1"), Path({"a", "b-c", "d_1"}));
  EXPECT_EQ(ParseTomlKey(" a . 'b.c' . \"d\\\"e\" "), Path({"a", "b.c", "d\"e"}));
  EXPECT_EQ(ParseTomlKey("1.2"), Path({"1", "2"}));
  for (const char* bad : {"", " ", ".", "a.", ".a", "a..b", "a b", "#a", "[a]", "a = 1 #", "\"a",
                          "\xD0\xB6", "a\nb", "a = {b", "a, b", "x=[1,2]\n"}) {
    EXPECT_FALSE(ParseTomlKey(bad).has_value()) << bad;
  }
  EXPECT_FALSE(ParseTomlKey("a" + Repeat(".a", 5000)).has_value());
}

// --- a round trip through random values
// -----------------------------------------------------------------

class Maker final {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Value Make(int depth) {
    const int kind = Below(depth > 0 ? 6 : 4);
    Value value;
    switch (kind) {
      case 0:
        return Value::Boolean(Below(2) == 0);
      case 1:
        return Value::Integer(static_cast<std::int64_t>(random_()));
      case 2:
        return Value::Number(std::ldexp(static_cast<double>(random_()), Below(600) - 300));
      case 3:
        return Value::Text(Text());
      case 4:
        value.kind = Value::kArray;
        for (int i = Below(4); i > 0; --i) value.array.push_back(Make(depth - 1));
        return value;
      default:
        value.kind = Value::kTable;
        for (int i = Below(4); i > 0; --i) {
          std::string name = Text();
          if (value.Find(name) == nullptr)
            value.table.emplace_back(std::move(name), Make(depth - 1));
        }
        return value;
    }
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  std::string Text() {
    static const std::vector<std::string> kPieces = {"a",
                                                     "Z",
                                                     "0",
                                                     "-",
                                                     "_",
                                                     ".",
                                                     " ",
                                                     "\"",
                                                     "'",
                                                     "\\",
                                                     "\n",
                                                     "\t",
                                                     "#",
                                                     "=",
                                                     "[",
                                                     "\x01",
                                                     "\x7f",
                                                     "\xD0\xB6",
                                                     "\xF0\x9F\x98\x80"};
    std::string text;
    for (int i = Below(8); i > 0; --i)
      text += kPieces[static_cast<std::size_t>(Below(static_cast<int>(kPieces.size())))];
    return text;
  }

  std::mt19937_64 random_;
};

// Equal but for places; tables in any order, since all places of a one-line value are the same.
bool Same(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.boolean != b.boolean || a.integer != b.integer ||
      a.number != b.number || a.text != b.text || a.array.size() != b.array.size() ||
      a.table.size() != b.table.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.array.size(); ++i) {
    if (!Same(a.array[i], b.array[i])) return false;
  }
  for (const auto& [name, value] : a.table) {
    const Value* other = b.Find(name);
    if (other == nullptr || !Same(value, *other)) return false;
  }
  return true;
}

TEST(TomlValue, WhatIsWrittenReadsBackTheSame) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const Value value = Maker(seed).Make(4);
    const std::string text = ToToml(value);
    Diagnostics diagnostics;
    const auto back = ParseTomlValue(text, "--set", "k", diagnostics);
    ASSERT_TRUE(back.has_value()) << seed << ": " << text;
    ASSERT_TRUE(Same(value, *back)) << seed << ": " << text << " became " << ToToml(*back);
  }
}

TEST(TomlValue, WritesWholeNumbersThatAreNotIntegersWithAPoint) {
  EXPECT_EQ(ToToml(Value::Number(5)), "5.0");
  EXPECT_EQ(ToToml(Value::Number(-0.0)), "-0.0");
  EXPECT_EQ(ToToml(Value::Number(0.1)), "0.1");
  EXPECT_EQ(ToToml(Value::Number(1e300)), "1e+300");
  EXPECT_EQ(ToToml(Value::Integer(5)), "5");
  EXPECT_EQ(ToToml(Value::Text("a\"\n")), "\"a\\\"\\n\"");
  Value table;
  table.kind = Value::kTable;
  EXPECT_EQ(ToToml(table), "{}");
  table.table.emplace_back("a.b", Value::Boolean(true));
  EXPECT_EQ(ToToml(table), "{ \"a.b\" = true }");
}

TEST(TomlValue, JoinsKeys) {
  EXPECT_EQ(JoinTomlKey("", "a"), "a");
  EXPECT_EQ(JoinTomlKey("a", "b"), "a.b");
  EXPECT_EQ(JoinTomlKey("a", "b c"), "a.\"b c\"");
  EXPECT_EQ(JoinTomlKey("", ""), "\"\"");
}

}  // namespace
}  // namespace shardlab
