#pragma once
// What the contract's tests plan: scenarios of both accountings in a folder of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/explain_text.h"
#include "io/toml_value.h"
#include "support/plugins.h"
#include "support/program.h"

namespace shardlab {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

inline constexpr const char kModelAndMachine[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n[hardware]\nplugin = "
    "\"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 128\n";

// Both accountings, one pipeline rank and two, with and without what fills every part of the
// document.
inline const std::vector<std::pair<std::string, std::string>>& Scenarios() {
  static const auto* const all = [] {
    auto* list = new std::vector<std::pair<std::string, std::string>>;
    for (const char* accounting : {"textbook", "operator"}) {
      const std::string head =
          absl::StrCat("accounting = \"", accounting, "\"\n", kModelAndMachine);
      list->emplace_back(absl::StrCat(accounting, "-plain"), head);
      list->emplace_back(
          absl::StrCat(accounting, "-full"),
          head +
              "[strategy.tensor]\ndegree = 4\nsequence_parallel = true\n[strategy.zero]\nstage = "
              "2\n"
              "[strategy.checkpointing]\nmode = \"full\"\nsegment = 2\n[schedule]\ndegree = 2\n"
              "layers = [15, 17]\n");
      list->emplace_back(absl::StrCat(accounting, "-zero3"), head + "[strategy.zero]\nstage = 3\n");
    }
    return list;
  }();
  return *all;
}

inline std::vector<std::string> SplitAt(const std::string& text, char at) {
  return absl::StrSplit(text, at);
}

// A folder with the scenarios, and the current directory there.
class Contract : public ::testing::Test {
 protected:
  Contract() : inside_(folder_.path()) {
    for (const auto& [name, text] : Scenarios()) WriteFile(name + ".toml", text);
    WriteFile("good.toml", kModelAndMachine);
    WriteFile("bad.toml", "accounting = \"textbok\"\n");
  }

  static Json Plan(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"plan", file, "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const ProgramRun run = RunProgram(args);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = Json::parse(run.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << run.out;
    return document;
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

}  // namespace shardlab
