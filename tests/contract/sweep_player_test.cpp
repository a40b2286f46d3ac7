// Rows that share a composition: are they those of plans made one by one, whatever is varied? And
// is a piece, sent to another process, still the same?

#include "io/sweep_player.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "io/sweep_wire.h"
#include "support/program.h"

namespace shardlab {
namespace {

const PluginRegistry& Registry() {
  static const PluginRegistry registry = [] {
    Diagnostics diagnostics;
    return PluginRegistry::Load({SHARDLAB_BINARY_DIR "/plugins"}, diagnostics);
  }();
  return registry;
}

constexpr const char kDense[] =
    "[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 8192\nglobal_batch_size = 64\n";
constexpr const char kExperts[] =
    "[model]\nplugin = \"moe\"\npreset = \"mixtral-8x7b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 4\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 128\n";

struct Case {
  const char *name, *scenario, *sweep;
};
void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }

// Every kind of key that layouts do not depend on, beside every kind that they do.
const Case kCases[] = {
    {"degrees", kDense,
     "[strategy.tensor]\nsequence_parallel = true\n[sweep]\n\"strategy.tensor.degree\" = [1, 2, "
     "8]\n"
     "\"strategy.context.degree\" = [1, 2, 4]\n\"schedule.degree\" = [1, 2, 3, 4]\n"
     "\"training.micro_batch_size\" = [1, 2, 3]\n\"training.global_batch_size\" = [8, 64]\n"},
    {"schedules", kDense,
     "[sweep]\n\"schedule.plugin\" = [\"pipeline-1f1b\", \"pipeline-interleaved\", "
     "\"pipeline-zb-h1\", \"pipeline-zb-v\"]\n\"schedule.degree\" = [1, 2, 4, 8]\n"
     "\"training.micro_batch_size\" = [1, 2]\n\"strategy.tensor.degree\" = [1, 4]\n"},
    {"chunks", kDense,
     "[schedule]\nplugin = \"pipeline-interleaved\"\n[sweep]\n\"schedule.degree\" = [1, 2, 4]\n"
     "\"schedule.chunks\" = [1, 2, 3, 4]\n\"training.global_batch_size\" = [64, 128]\n"
     "\"schedule.balance\" = [\"even\", \"time\"]\n"},
    {"sharding", kDense,
     "[sweep]\n\"strategy.fsdp.shard\" = [\"all\", 8]\n\"strategy.tensor.degree\" = [1, 2]\n"
     "\"schedule.degree\" = [1, 2, 4]\n\"hardware.nodes\" = [1, 4]\n"
     "\"training.micro_batch_size\" = [1, 2]\n"},
    {"recomputation", kDense,
     "[sweep]\n\"strategy.checkpointing.mode\" = [\"none\", \"selective\", \"full\"]\n"
     "\"strategy.zero.stage\" = [0, 1, 2, 3]\n\"schedule.degree\" = [1, 2, 4]\n"
     "\"training.micro_batch_size\" = [1, 4]\n"},
    {"experts", kExperts,
     "[strategy.tensor]\nsequence_parallel = true\n[sweep]\n\"strategy.expert.degree\" = [1, 2, "
     "8]\n"
     "\"strategy.expert.tensor_degree\" = [1, 2]\n\"strategy.tensor.degree\" = [1, 2, 4]\n"
     "\"schedule.degree\" = [1, 2]\n\"training.micro_batch_size\" = [1, 2]\n"},
    {"textbook", kDense,
     "[strategy.zero]\nstage = 1\n[sweep]\n\"accounting\" = [\"textbook\", \"operator\"]\n"
     "\"strategy.tensor.degree\" = [1, 2, 16]\n\"schedule.degree\" = [1, 4]\n"
     "\"training.micro_batch_size\" = [1, 2]\n"},
    {"wrong values", kDense,
     "[sweep]\n\"strategy.tensor.degree\" = [1, 7, 64]\n\"schedule.degree\" = [1, 32, 33]\n"
     "\"training.micro_batch_size\" = [1, 1000]\n\"strategy.data.degree\" = [1, 4]\n"},
    {"conditions", kDense,
     "[sweep]\n\"strategy.tensor.degree\" = [1, 2, 4, 8]\n\"schedule.degree\" = [1, 2, 4]\n"
     "\"training.micro_batch_size\" = [1, 2]\n"
     "when = \"strategy.tensor.degree * schedule.degree * hardware.nodes <= 32\"\n"
     "[filter]\nkeep = \"memory.fits && schedule.degree > 1 && plan.precision.compute == "
     "'bf16'\"\n"},
    {"conditions of whole documents", kDense,
     "[sweep]\n\"strategy.tensor.degree\" = [1, 2, 4, 8]\n\"schedule.degree\" = [1, 2]\n"
     "[filter]\nkeep = \"memory.ranks[0].total_bytes < 60e9 && model.layers == 32\"\n"},
};

class Layouts : public ::testing::TestWithParam<Case> {};

TEST_P(Layouts, GiveTheRowsOfPlansMadeAlone) {
  std::string text = absl::StrCat(GetParam().scenario, GetParam().sweep);
  for (std::size_t at; (at = text.find('\'')) != std::string::npos;) text.replace(at, 1, "\\\"");
  Diagnostics diagnostics;
  const Scenario scenario = ScenarioFromText(text, "s.toml", {}, diagnostics);
  const std::optional<Sweep> sweep = ReadSweep(Registry(), scenario, &diagnostics);
  for (const Diagnostic& d : diagnostics.all()) ADD_FAILURE() << d.message;
  ASSERT_TRUE(sweep.has_value());
  SweepOrders orders;
  SweepPlayer shared(*sweep, false, &orders), alone(*sweep, true, &orders);
  SweepCounts all;
  for (std::int64_t first = 0; first < sweep->table.size(); first += kSweepPiece) {
    const std::int64_t past = std::min(sweep->table.size(), first + kSweepPiece);
    const SweepPiece got = shared.Play(first, past);
    SweepPiece expected = alone.Play(first, past);
    for (SweepRow& row : expected.rows) row.document.clear();
    EXPECT_EQ(got.counts, expected.counts);
    EXPECT_EQ(got.provenance, expected.provenance);
    ASSERT_EQ(got.rows.size(), expected.rows.size());
    for (std::size_t i = 0; i < got.rows.size(); ++i) {
      const SweepRow &a = got.rows[i], &b = expected.rows[i];
      EXPECT_EQ(a.legal, b.legal) << a.combination << a.reason << b.reason;
      EXPECT_EQ(a.reason, b.reason) << a.combination;
      EXPECT_EQ(a.keys, b.keys) << a.combination;
      ASSERT_EQ(a.cells.names(), b.cells.names()) << a.combination;
      for (std::size_t c = 0; c < a.cells.size(); ++c)
        EXPECT_EQ(a.cells.values()[c], b.cells.values()[c])
            << a.combination << " " << a.cells.names()[c];
    }
    // To the last bit, and in whatever process.
    const absl::StatusOr<SweepPiece> sent = PieceFromBytes(PieceToBytes(got));
    ASSERT_TRUE(sent.ok()) << sent.status();
    EXPECT_EQ(*sent, got);
    Add(got.counts, &all);
  }
  EXPECT_GT(all.evaluated, 0);
}

INSTANTIATE_TEST_SUITE_P(Sweeps, Layouts, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& tested) {
                           std::string name = tested.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(SweepWire, WhatIsNoPieceIsRefused) {
  SweepPiece piece;
  piece.first = 128;
  piece.past = 256;
  piece.problem = "a word among numbers";
  piece.provenance.push_back({{"name", "x"}, {"value", 0.1}, {"source", "y"}});
  const auto names = std::make_shared<const Cells::NameList>(Cells::NameList{"a", "b"});
  SweepRow row;
  row.combination = 130;
  row.legal = true;
  row.cells = Cells(names, {1.0 / 3, "two"});
  row.document = "{}";
  piece.rows = {row};
  const std::string bytes = PieceToBytes(piece);
  const absl::StatusOr<SweepPiece> read = PieceFromBytes(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, piece);
  EXPECT_FALSE(PieceFromBytes("").ok());
  for (std::size_t size = 1; size < bytes.size(); ++size)
    EXPECT_FALSE(PieceFromBytes(bytes.substr(0, size)).ok()) << size;
  // One value too few for its names.
  row.cells = Cells(names, {1});
  piece.rows = {row};
  EXPECT_FALSE(PieceFromBytes(PieceToBytes(piece)).ok());
}

}  // namespace
}  // namespace shardlab
