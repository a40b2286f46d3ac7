// The structure of the house, read from its source text: includes go down only, plugins see the
// public floors alone, the framework names no plugin, and a plugin folder is complete.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SHARDLAB_SOURCE_DIR;

// Lowest first; a floor includes itself and what stands before it. The first kPublicFloors of them
// are what a plugin may include.
const std::vector<std::string> kFloors = {"base", "domain", "api", "core", "io", "app", "mpi"};
constexpr std::ptrdiff_t kPublicFloors = 3;

// What the public floors may include from outside, beside the standard library: a plugin's compile
// time and binary interface are made of it.
const std::set<std::string> kPublicLibraries = {"absl"};

// Plugins that share their name with an axis or a dimension, of which the framework speaks all day.
const std::set<std::string> kFieldWords = {"context",  "data",     "expert",
                                           "pipeline", "sequence", "tensor"};

// Plugins that share their name with an ordinary word. The word is free; the framework still names
// the plugin where the word is a whole string literal ("zero").
const std::set<std::string> kOrdinaryWords = {"checkpointing", "operator", "flat", "generic",
                                              "offload",       "rail",     "zero"};

// Translators from and to other frameworks' files, and the texts of new plugins: their trade is to
// write our scenarios, which name plugins. Files or folders of framework/io whose name begins so.
const std::vector<std::string> kTranslators = {"import", "export", "templates"};

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool IsTest(const fs::path& path) { return EndsWith(path.filename().string(), "_test.cpp"); }

// All C++ files below `folder`, sorted; none if it is absent.
std::vector<fs::path> SourcesBelow(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> found;
  if (!fs::is_directory(folder)) return found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The folders plugins/<kind>/<name> that hold a file, so that one just begun does not count.
std::vector<fs::path> PluginFolders() {
  std::vector<fs::path> found;
  for (const fs::path& kind : FoldersIn(kRoot / "plugins")) {
    for (const fs::path& folder : FoldersIn(kind)) {
      if (!fs::is_empty(folder)) found.push_back(folder);
    }
  }
  return found;
}

// The text with comments blanked out; newlines stay, so that lines can still be counted. String and
// character literals are kept: a name in a string is a name.
std::string WithoutComments(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  std::size_t i = 0;
  const auto at = [&](std::size_t k) { return k < text.size() ? text[k] : '\0'; };
  while (i < text.size()) {
    if (at(i) == '/' && at(i + 1) == '/') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (at(i) == '/' && at(i + 1) == '*') {
      const std::size_t end = text.find("*/", i + 2);
      const std::size_t stop = end == std::string::npos ? text.size() : end + 2;
      out += ' ';
      for (; i < stop; ++i) {
        if (text[i] == '\n') out += '\n';
      }
    } else if (at(i) == 'R' && at(i + 1) == '"') {
      const std::size_t open = text.find('(', i);
      if (open == std::string::npos) return out + text.substr(i);
      const std::string close = ")" + text.substr(i + 2, open - i - 2) + "\"";
      const std::size_t end = text.find(close, open);
      const std::size_t stop = end == std::string::npos ? text.size() : end + close.size();
      out += text.substr(i, stop - i);
      i = stop;
    } else if (at(i) == '"' ||
               // Not the separator of 1'000'000.
               (at(i) == '\'' &&
                !(i > 0 && std::isxdigit(static_cast<unsigned char>(text[i - 1])) != 0))) {
      const char quote = text[i];
      out += text[i++];
      while (i < text.size() && text[i] != quote && text[i] != '\n') {
        if (text[i] == '\\' && i + 1 < text.size()) out += text[i++];
        out += text[i++];
      }
      if (i < text.size()) out += text[i++];
    } else {
      out += text[i++];
    }
  }
  return out;
}

struct Include {
  std::string path;
  bool quoted;
  std::size_t line;
};

std::vector<Include> IncludesOf(const fs::path& file) {
  static const std::regex kPattern("^\\s*#\\s*include\\s*([\"<])([^\">]+)[\">]");
  std::vector<Include> includes;
  std::istringstream lines(WithoutComments(ReadFile(file)));
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, kPattern)) {
      includes.push_back({match[2].str(), match[1].str() == "\"", number});
    }
  }
  return includes;
}

std::string Where(const fs::path& file, std::size_t line) {
  return fs::relative(file, kRoot).string() + ":" + std::to_string(line) + ": ";
}

std::string FirstPart(const std::string& path) { return path.substr(0, path.find('/')); }

// True for <vector> and <sys/wait.h>, which are not a library's own folder.
bool IsSystemHeader(const Include& include) {
  return !include.quoted &&
         (include.path.find('/') == std::string::npos || FirstPart(include.path) == "sys");
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The lines of `text` (lower case) on which `word` stands alone, neither part of a longer
// identifier nor, if the word has a dash, of a longer dashed name.
std::vector<std::size_t> LinesNaming(const std::string& text, const std::string& word) {
  std::vector<std::size_t> lines;
  const bool dashed = word.find('-') != std::string::npos;
  const auto joins = [&](char c) { return IsWordCharacter(c) || (dashed && c == '-'); };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at > 0 && joins(text[at - 1])) || (end < text.size() && joins(text[end]))) continue;
    lines.push_back(static_cast<std::size_t>(std::count(
                        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
                    1);
  }
  return lines;
}

// The ways in which code can spell the name of the plugin in this folder, lower case.
std::set<std::string> SpellingsOf(const std::string& name) {
  const std::string lower = Lower(name);
  if (kFieldWords.count(lower) > 0) return {};
  if (kOrdinaryWords.count(lower) > 0) return {"\"" + lower + "\""};
  std::set<std::string> spellings = {lower};
  for (const char* joint : {"-", "_", ""}) {
    std::string spelling;
    for (const char c : lower) {
      if (c == '-' || c == '_') {
        spelling += joint;
      } else {
        spelling += c;
      }
    }
    spellings.insert(spelling);
  }
  return spellings;
}

bool IsTranslator(const fs::path& file) {
  const fs::path below = fs::relative(file, kRoot / "framework" / "io");
  const std::string first = below.begin()->string();
  return std::any_of(kTranslators.begin(), kTranslators.end(),
                     [&](const std::string& prefix) { return first.rfind(prefix, 0) == 0; });
}

TEST(Floors, IncludesGoDown) {
  for (std::size_t own = 0; own < kFloors.size(); ++own) {
    for (const fs::path& file : SourcesBelow(kRoot / "framework" / kFloors[own])) {
      for (const Include& include : IncludesOf(file)) {
        const std::string first = FirstPart(include.path);
        const auto floor = std::find(kFloors.begin(), kFloors.end(), first);
        if (floor != kFloors.end()) {
          EXPECT_LE(static_cast<std::size_t>(floor - kFloors.begin()), own)
              << Where(file, include.line) << kFloors[own] << " includes " << include.path
              << ", a higher floor";
          EXPECT_TRUE(include.quoted)
              << Where(file, include.line) << "our own header in angle brackets: " << include.path;
        } else {
          EXPECT_TRUE(include.path.find('/') != std::string::npos || !include.quoted)
              << Where(file, include.line) << "write \"" << kFloors[own] << "/" << include.path
              << "\": own headers are included by their path from framework/";
        }
      }
    }
  }
}

TEST(Floors, EverythingStandsOnAFloor) {
  for (const fs::path& folder : FoldersIn(kRoot / "framework")) {
    EXPECT_EQ(std::count(kFloors.begin(), kFloors.end(), folder.filename().string()), 1)
        << folder.filename() << " is no floor";
  }
}

TEST(Floors, PublicFloorsStayLight) {
  for (std::ptrdiff_t i = 0; i < kPublicFloors; ++i) {
    const std::string& own = kFloors[static_cast<std::size_t>(i)];
    for (const fs::path& file : SourcesBelow(kRoot / "framework" / own)) {
      for (const Include& include : IncludesOf(file)) {
        const std::string first = FirstPart(include.path);
        if (IsSystemHeader(include) || kPublicLibraries.count(first) > 0) continue;
        EXPECT_EQ(std::count(kFloors.begin(), kFloors.end(), first), 1)
            << Where(file, include.line) << "a floor that plugins include uses " << include.path;
      }
    }
  }
}

TEST(Floors, PluginsIncludeOnlyPublicFloors) {
  const std::set<std::string> allowed(kFloors.begin(), kFloors.begin() + kPublicFloors);
  for (const fs::path& folder : PluginFolders()) {
    for (const fs::path& file : SourcesBelow(folder)) {
      if (IsTest(file)) continue;  // it drives the plugin through the whole framework
      for (const Include& include : IncludesOf(file)) {
        const std::string first = FirstPart(include.path);
        if (IsSystemHeader(include) || kPublicLibraries.count(first) > 0 ||
            allowed.count(first) > 0) {
          continue;
        }
        const fs::path target = (file.parent_path() / include.path).lexically_normal();
        const fs::path within = target.lexically_relative(folder);
        EXPECT_TRUE(fs::exists(target) && !within.empty() && *within.begin() != "..")
            << Where(file, include.line)
            << "a plugin includes base, domain, api and its own folder, "
            << "not " << include.path;
      }
    }
  }
}

TEST(Floors, FrameworkNamesNoPlugin) {
  std::map<fs::path, std::string> texts;
  for (const fs::path& file : SourcesBelow(kRoot / "framework")) {
    if (!IsTranslator(file)) texts[file] = Lower(WithoutComments(ReadFile(file)));
  }
  for (const fs::path& folder : PluginFolders()) {
    const std::string name = folder.filename().string();
    for (const std::string& spelling : SpellingsOf(name)) {
      for (const auto& [file, text] : texts) {
        for (const std::size_t line : LinesNaming(text, spelling)) {
          ADD_FAILURE() << Where(file, line) << "names the plugin " << name << " (as " << spelling
                        << "): the framework knows no plugin";
        }
      }
    }
  }
}

TEST(Floors, EveryPluginFolderIsComplete) {
  std::map<std::string, fs::path> seen;
  for (const fs::path& folder : PluginFolders()) {
    const std::string name = folder.filename().string();
    const std::string shown = fs::relative(folder, kRoot).string();
    const auto [first, fresh] = seen.emplace(name, folder);
    EXPECT_TRUE(fresh) << shown << ": the name is taken by " << fs::relative(first->second, kRoot);

    bool code = false;
    bool test = false;
    bool table = false;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const fs::path& path = entry.path();
      code = code || (path.extension() == ".cpp" && !IsTest(path));
      test = test || IsTest(path);
      table = table || (path.extension() == ".toml" && path.filename() != "example.toml");
    }
    EXPECT_TRUE(fs::exists(folder / "README.md")) << shown << " has no README.md";
    EXPECT_TRUE(fs::exists(folder / "example.toml")) << shown << " has no example.toml";
    if (!code) {
      EXPECT_TRUE(table) << shown << " has neither code nor data";
      continue;
    }
    std::string stem = name;
    std::replace(stem.begin(), stem.end(), '-', '_');
    EXPECT_TRUE(fs::exists(folder / (stem + ".cpp"))) << shown << " has no " << stem << ".cpp";
    EXPECT_TRUE(test) << shown << " has no *_test.cpp";
  }
}

// The readers above, on text where a wrong answer would let a fault through.
TEST(FloorsReader, KeepsStringsAndDropsComments) {
  EXPECT_EQ(WithoutComments("a // llama\nb"), "a \nb");
  EXPECT_EQ(WithoutComments("a /* x\ny */ b"), "a  \n b");
  EXPECT_EQ(WithoutComments("\"// kept\" '\"' // gone"), "\"// kept\" '\"' ");
  EXPECT_EQ(WithoutComments("1'000 // gone"), "1'000 ");
  EXPECT_EQ(WithoutComments("R\"(a // b)\" // gone"), "R\"(a // b)\" ");
  EXPECT_EQ(WithoutComments("\"a\\\"// kept\""), "\"a\\\"// kept\"");
}

TEST(FloorsReader, FindsNamesThatStandAlone) {
  const auto names = [](const std::string& text, const std::string& plugin) {
    for (const std::string& spelling : SpellingsOf(plugin)) {
      if (!LinesNaming(Lower(text), spelling).empty()) return true;
    }
    return false;
  };
  EXPECT_TRUE(names("use(\"llama\")", "llama"));
  EXPECT_TRUE(names("Llama model;", "llama"));
  EXPECT_FALSE(names("llamas", "llama"));
  EXPECT_TRUE(names("x = \"pipeline-1f1b\"", "pipeline-1f1b"));
  EXPECT_TRUE(names("pipeline_1f1b();", "pipeline-1f1b"));
  EXPECT_TRUE(names("Pipeline1F1B p;", "pipeline-1f1b"));
  EXPECT_FALSE(names("\"pipeline-1f1b-flush\"", "pipeline-1f1b"));
  EXPECT_FALSE(names("fsdp_shard", "fsdp"));
  EXPECT_FALSE(names("\"tensor\"", "tensor"));
  EXPECT_FALSE(names("if (zero) zero_stage", "zero"));
  EXPECT_TRUE(names("name == \"zero\"", "zero"));
}

}  // namespace
