#include "io/plugin_template.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text.h"
#include "io/plugin_kinds.h"
#include "io/plugin_template_texts.h"

namespace shardlab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCMakeLists = R"TEXT(cmake_minimum_required(VERSION 3.25)
project(@FILE@ CXX)
if(NOT COMMAND shardlab_add_plugin)  # it is there when this folder is built inside shardlab
  find_package(shardlab CONFIG REQUIRED)
endif()
shardlab_add_plugin(@NAME@ @FILE@.cpp)
)TEXT";

constexpr const char* kReadme = R"TEXT(# @NAME@

| | |
|---|---|
| kind | @KIND@ |
| class | `@CLASS@` in `@FILE@.cpp` |
| parameters | `shardlab plugins show @NAME@ --plugins build/plugins` |

## Idea

@IDEA@

## Formula

@FORMULA@

## Source

Where the idea and every number come from: a paper with its section, a data sheet, a measurement, or
"assumed".

## Limits

@LIMITS@

## Commands

```
cmake -B build && cmake --build build
shardlab plugins check build/plugins/@NAME@/@NAME@.so
shardlab plan example.toml --plugins build/plugins
@COMMANDS@```

`test.sh` runs them: `example.toml` says in `[expect]` what must come out. Where shardlab is not in a
standard place, the first command needs `-DCMAKE_PREFIX_PATH=<its prefix>`.
)TEXT";

constexpr const char* kTest = R"TEXT(#!/usr/bin/env bash
# Builds the plugin, tries it in a process of its own and plans the example, whose [expect] must hold.
# SHARDLAB: the program, if it is not on the path; CMAKE_PREFIX_PATH: where shardlab is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
shardlab=${SHARDLAB:-shardlab}

if ! { cmake -B build && cmake --build build; } > build.log 2>&1; then
  cat build.log >&2
  exit 1
fi
rm build.log
"$shardlab" plugins check build/plugins/@NAME@/@NAME@.so
"$shardlab" plan example.toml --plugins build/plugins > /dev/null
@COMMANDS@echo "@NAME@: ok"
)TEXT";

bool IsName(const std::string& name) {
  if (name.empty() || !absl::ascii_islower(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(u) && !absl::ascii_isdigit(u) && c != '-') return false;
  }
  return true;
}

absl::Status Check(const std::string& kind, const std::string& name, const fs::path& folder) {
  if (FindKind(kind) == nullptr) {
    const std::string near = Nearest(kind, KindNames());
    return absl::InvalidArgumentError(
        absl::StrCat("there is no kind of plugin ", kind,
                     near.empty() ? absl::StrCat(" (there are ", Enumerate(KindNames()), ")")
                                  : absl::StrCat(", did you mean ", near, "?")));
  }
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" cannot be a plugin's name (small letters, digits and -, a letter first)"));
  }
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder, ignored))) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder.string(), " exists already, nothing is written"));
  }
  return absl::OkStatus();
}

absl::Status Write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  return out ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat(file.string(), " cannot be written"));
}

// "shardlab schedule ..." as a line of the README, and of the test with its program in a variable.
std::string CommandLines(const char* commands, bool test) {
  std::string lines;
  for (const absl::string_view command : absl::StrSplit(commands, '\n', absl::SkipEmpty())) {
    if (test) {
      const std::string line = absl::StrReplaceAll(command, {{"shardlab ", "\"$shardlab\" "}});
      absl::StrAppend(&lines, line, " > /dev/null\n");
    } else {
      absl::StrAppend(&lines, command, "\n");
    }
  }
  return lines;
}

// The class goes into a header, in a namespace of its own, so that a test can include it; the entry
// stays behind.
std::pair<std::string, std::string> SplitSource(const std::string& text, const std::string& stem) {
  const std::size_t entry = text.find("SHARDLAB_PLUGIN(");
  const std::string space = absl::StrCat("shardlab::", stem);
  std::string header =
      absl::StrReplaceAll(text.substr(0, entry),
                          {{"namespace {", absl::StrCat("namespace ", space, " {")},
                           {"}  // namespace\n\n", absl::StrCat("}  // namespace ", space, "\n")}});
  // The comment that opens the file stands below the guard, as in every header.
  header.insert(0, "#pragma once\n");
  std::string source = absl::StrCat("#include \"", stem, ".h\"\n\n", text.substr(entry));
  const std::size_t name = source.find(", ") + 2;  // SHARDLAB_PLUGIN("name", Class, ...
  source.insert(name, absl::StrCat(space, "::"));
  const std::size_t description = source.find(", \"", name);
  source.replace(description, 2, ",\n                ");
  return {std::move(header), std::move(source)};
}

}  // namespace

std::string PluginFileStem(const std::string& name) {
  return absl::StrReplaceAll(name, {{"-", "_"}});
}

std::string PluginClassName(const std::string& name) {
  std::string result;
  bool begins = true;
  for (const char c : name) {
    if (c != '-') result += begins ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c;
    begins = c == '-';
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> WritePluginTemplate(const std::string& kind,
                                                             const std::string& name,
                                                             const std::string& parent) {
  const fs::path folder = fs::path(parent) / name;
  if (absl::Status ok = Check(kind, name, folder); !ok.ok()) return ok;
  const TemplateTexts& texts = TextsOfKind(kind);

  const auto fill = [&](const std::string& text, bool test) {
    const std::string whole =
        absl::StrReplaceAll(text, {{"@IDEA@", texts.idea},
                                   {"@FORMULA@", texts.formula},
                                   {"@LIMITS@", texts.limits},
                                   {"@COMMANDS@", CommandLines(texts.commands, test)}});
    return absl::StrReplaceAll(whole, {{"@NAME@", name},
                                       {"@FILE@", PluginFileStem(name)},
                                       {"@CLASS@", PluginClassName(name)},
                                       {"@KIND@", kind}});
  };

  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return absl::UnavailableError(
        absl::StrCat(folder.string(), " cannot be made: ", failed.message()));
  }
  const auto [header, source] = SplitSource(fill(texts.source, false), PluginFileStem(name));
  const std::vector<std::pair<std::string, std::string>> files = {
      {PluginFileStem(name) + ".h", header},         {PluginFileStem(name) + ".cpp", source},
      {"CMakeLists.txt", fill(kCMakeLists, false)},  {"README.md", fill(kReadme, false)},
      {"example.toml", fill(texts.scenario, false)}, {"test.sh", fill(kTest, true)},
  };
  std::vector<std::string> written;
  for (const auto& [file, text] : files) {
    if (absl::Status ok = Write(folder / file, text); !ok.ok()) return ok;
    written.push_back((folder / file).string());
  }
  fs::permissions(folder / "test.sh",
                  fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, failed);
  return written;
}

}  // namespace shardlab
