#pragma once
// `shardlab lesson` in-process, with progress in a folder of its own: what a test types and what
// comes back.
//
//   TEST_F(LessonCommandTest, Name) { EXPECT_EQ(Ask({"check", "zero-wire", "1.5"}).at("correct"),
//   true); }

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace shardlab {

class LessonCommandTest : public testing::Test {
 protected:
  using Json = nlohmann::ordered_json;

  void SetUp() override;
  void TearDown() override;
  // Exit status; `input` is what is typed at `run`.
  int Run(std::vector<std::string> args, const std::string& input = "");
  // The document of a call that must succeed.
  Json Ask(std::vector<std::string> args);
  std::filesystem::path File() const { return folder_ / "shardlab/lessons.json"; }

  std::filesystem::path folder_;
  std::string out_, err_;
};

}  // namespace shardlab
