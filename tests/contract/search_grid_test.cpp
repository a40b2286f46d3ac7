// How many plans has the default grid? Counted here a second time, from the rule's text, for the
// three searches of the benchmarks.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/program.h"

namespace shardlab {
namespace {

struct Space {
  long long devices, domain, layers, sequence, experts;  // experts 0: a dense model
};

// Of a rank's layers, rounded up; all of them are "full".
std::set<long long> Shares(long long layers) {
  std::set<long long> shares;
  for (const long long quarters : {1, 2, 3}) {
    const long long n = (layers * quarters + 3) / 4;
    if (n < layers) shares.insert(n);
  }
  return shares;
}

long long Count(const Space& s) {
  // Pipelines: (ways, layers of a rank). Stages divide the layers, else the layers and both ends.
  std::vector<std::pair<long long, long long>> pipelines = {{1, s.layers}};
  for (long long p = 2; p <= std::min(s.devices, s.layers + 2); ++p) {
    for (long long v = 1; v <= s.layers; ++v) {
      const long long spread = s.layers % (p * v) == 0         ? s.layers
                               : (s.layers + 2) % (p * v) == 0 ? s.layers + 2
                                                               : 0;
      // One chunk: 1F1B and ZB-H1; more: interleaved.
      if (spread > 0) pipelines.emplace_back(v == 1 ? 2 : 1, spread / p);
    }
  }
  long long of_pipelines = 0;
  for (const auto& [schedules, layers] : pipelines)
    of_pipelines += schedules * (3 + static_cast<long long>(Shares(layers).size()));

  const long long micro_batches = 4;
  const long long shardings =
      s.domain < s.devices ? 4 : 3;  // ZeRO 0, ZeRO 1, FSDP domain, FSDP all
  long long contexts = 0, meshes = 0;
  for (long long c = 1; c <= s.devices && s.sequence / c >= 1024; c *= 2) ++contexts;
  for (long long t = 1; t <= s.domain; t *= 2) {
    ++meshes;  // no expert parallelism
    for (long long e = 2; e <= std::min(s.experts, s.devices); e *= 2) {
      if (s.experts % e == 0) meshes += t > 1 ? 2 : 1;  // experts whole, or cut by t
    }
  }
  return of_pipelines * micro_batches * shardings * contexts * meshes;
}

long long Told(const std::string& scenario, const std::vector<std::string>& sets) {
  std::vector<std::string> args = {
      "search", absl::StrCat(SHARDLAB_SOURCE_DIR, "/scenarios/", scenario), "--count"};
  for (const std::string& set : sets) args.insert(args.end(), {"--set", set});
  const ProgramRun run = RunProgram(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return std::stoll(run.out);
}

TEST(SearchGrid, SizesOfTheBenchmarks) {
  EXPECT_EQ(Told("llama3.1-70b-32xh100.toml", {}), Count({32, 8, 80, 4096, 0}));
  EXPECT_EQ(Told("gpt3-175b-tp8-pp8-a100.toml", {"hardware.devices=64"}),
            Count({64, 8, 96, 2048, 0}));
  EXPECT_EQ(Told("llama3.1-405b-16384-gpus.toml", {}), Count({16384, 8, 126, 8192, 0}));
}

TEST(SearchGrid, SizesWithExpertsAndOnOneServer) {
  EXPECT_EQ(Told("mixtral-8x7b-ep8-32-gpus.toml", {}), Count({32, 8, 32, 4096, 8}));
  EXPECT_EQ(Told("llama3.1-70b-32xh100.toml", {"hardware.nodes=1"}), Count({8, 8, 80, 4096, 0}));
}

TEST(SearchGrid, AGoldenForEachBenchmark) {
  EXPECT_EQ(Count({32, 8, 80, 4096, 0}), 47232);
  EXPECT_EQ(Count({64, 8, 96, 2048, 0}), 54912);
  EXPECT_EQ(Count({16384, 8, 126, 8192, 0}), 126720);
}

TEST(SearchGrid, AnUnknownNameInWhenIsToldWithItsPlace) {
  ScratchFolder folder;
  WorkingDirectory inside(folder.path());
  WriteFile("search.toml",
            "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
            "[hardware]\nplugin = \"h100-dgx\"\nnodes = 1\n"
            "[training]\nsequence_length = 4096\nglobal_batch_size = 32\n"
            "[search]\nwhen = \"strategy.tensor.degre <= 4\"\n");
  const ProgramRun run = RunProgram({"search", "search.toml"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("search.toml:11:9"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("did you mean \"strategy.tensor.degree\"?"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace shardlab
