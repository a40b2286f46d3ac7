// Hugging Face config.json to a plan's model: whose plugin, how many layers and parameters, and
// what is said of files that no plugin describes. The JSON files are re-typed facts of public
// configurations; the numbers are computed from their dimensions and agree with the model cards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "io/compose_scenario.h"
#include "support/plugins.h"

namespace shardlab {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = SHARDLAB_SOURCE_DIR "/tests/hf";

struct Imported {
  ComposedScenario composed;
  Diagnostics diagnostics;

  std::string Said() const {
    std::string all;
    for (const Diagnostic& d : diagnostics.all())
      absl::StrAppend(&all, d.code, " ", d.place.key, ": ", d.message, " (", d.hint, ")\n");
    return all;
  }
};

Imported Import(const std::string& model, const std::string& folder = kFolder) {
  const std::string text = absl::StrCat(
      "[model]\n", model,
      "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n[training]\nsequence_length = 1024\n"
      "global_batch_size = 64\n");
  Imported imported;
  const Scenario scenario =
      ScenarioFromText(text, folder + "/scenario.toml", {}, imported.diagnostics);
  imported.composed = ComposeScenario(BuiltPlugins(), scenario, &imported.diagnostics);
  return imported;
}

Imported ImportFile(const std::string& name, const std::string& more = "") {
  return Import(absl::StrCat("hf_config = \"", name, ".json\"\n", more));
}

// A JSON text of the test's own.
class OwnConfig {
 public:
  explicit OwnConfig(const std::string& json)
      : folder_(std::filesystem::temp_directory_path() /
                absl::StrCat("shardlab_hf_", ::getpid(), "_", ++made_)) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json") << json;
  }
  ~OwnConfig() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  Imported Import(const std::string& more = "") const {
    return shardlab::Import("hf_config = \"config.json\"\n" + more, folder_.string());
  }

 private:
  static inline int made_ = 0;
  std::filesystem::path folder_;
};

TEST(HfConfig, EveryFileToTheElement) {
  std::ifstream file(kFolder + "/expected.csv");
  std::string line;
  std::getline(file, line);
  int files = 0;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string config, plugin, layers, parameters, active;
    std::getline(cells, config, ',');
    std::getline(cells, plugin, ',');
    std::getline(cells, layers, ',');
    std::getline(cells, parameters, ',');
    std::getline(cells, active, ',');
    SCOPED_TRACE(config);
    ++files;
    const Imported imported = ImportFile(config);
    ASSERT_NE(imported.composed.composition, nullptr) << imported.Said();
    const ModelFacts& facts = imported.composed.composition->edited.program.facts;
    EXPECT_EQ(imported.composed.resolved["model"]["plugin"], plugin);
    EXPECT_EQ(facts.layers, std::stoi(layers));
    EXPECT_EQ(facts.parameters, std::stod(parameters));
    EXPECT_EQ(facts.active_parameters, std::stod(active));
  }
  EXPECT_EQ(files, 16);
}

TEST(HfConfig, KeysBesideItOverride) {
  const Imported imported = ImportFile("llama32_1b", "layers = 8\ntied = false\n");
  ASSERT_NE(imported.composed.composition, nullptr) << imported.Said();
  const ModelFacts& facts = imported.composed.composition->edited.program.facts;
  EXPECT_EQ(facts.layers, 8);
  EXPECT_EQ(facts.parameters, (1235814400.0 - 262668288 - 2048) / 2 + 2 * 262668288.0 + 2048);
}

TEST(HfConfig, TheVisionTowerIsSaidToBeLeftOut) {
  EXPECT_THAT(ImportFile("llama4_scout").Said(), HasSubstr("vision tower is not counted"));
}

TEST(HfConfig, EncoderDecodersAreRefused) {
  const Imported imported = ImportFile("t5");
  EXPECT_EQ(imported.composed.composition, nullptr);
  EXPECT_THAT(imported.Said(), HasSubstr("model_type \"t5\" is an encoder-decoder, which is not "
                                         "supported"));
}

TEST(HfConfig, UnknownTypesAndMissingKeysAreNamed) {
  const OwnConfig unknown("{\"model_type\": \"qwem3\", \"hidden_size\": 64}");
  EXPECT_THAT(unknown.Import().Said(), HasSubstr("no model plugin describes model_type \"qwem3\""));
  EXPECT_THAT(unknown.Import().Said(), HasSubstr("did you mean \"qwen3\"?"));
  EXPECT_THAT(unknown.Import("plugin = \"moe\"\n").Said(),
              HasSubstr("plugin moe does not describe model_type \"qwem3\""));

  const OwnConfig none("{\"hidden_size\": 64}");
  EXPECT_THAT(none.Import().Said(), HasSubstr("config.json has no model_type"));

  const OwnConfig missing("{\"model_type\": \"llama\", \"hidden_size\": 64, \"vocab_size\": 100}");
  const std::string said = missing.Import().Said();
  for (const char* key : {"num_hidden_layers", "num_attention_heads", "intermediate_size"}) {
    EXPECT_THAT(said, HasSubstr(absl::StrCat("config.json lacks ", key)));
  }
  EXPECT_EQ(said.find("lacks vocab_size"), std::string::npos);
  EXPECT_NE(missing.Import("layers = 2\nheads = 4\nffn = 128\n").composed.composition, nullptr);
}

TEST(HfConfig, WhatIsNoConfigIsSaid) {
  EXPECT_THAT(OwnConfig("{\"model_type\": \"llama\",\n  oops}").Import().Said(),
              HasSubstr("hf.json"));
  EXPECT_THAT(OwnConfig("[1, 2]").Import().Said(), HasSubstr("is a JSON object"));
  EXPECT_THAT(ImportFile("lama32_1b").Said(), HasSubstr("no such file"));
  EXPECT_THAT(ImportFile("gpt2", "preset = \"gpt2\"\n").Said(), HasSubstr("preset and hf_config"));
  EXPECT_THAT(Import("hf_config = 3\n").Said(), HasSubstr("must be a file name"));
  EXPECT_THAT(OwnConfig("{\"model_type\": \"gpt2\", \"n_layer\": \"two\", \"n_head\": 4, "
                        "\"n_embd\": 64, \"vocab_size\": 100}")
                  .Import()
                  .Said(),
              HasSubstr("n_layer"));
}

}  // namespace
}  // namespace shardlab
