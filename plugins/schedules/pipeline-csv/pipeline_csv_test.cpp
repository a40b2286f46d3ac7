#include "pipeline_csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardlab::pipeline_csv {
namespace {

// "0F1": chunk, op, micro-batch; a pair "0F1+1B0".
std::string Text(const std::vector<Work>& list) {
  std::string text;
  const auto one = [](const Work& w) {
    return std::to_string(w.chunk) + Name(w.kind) + std::to_string(w.micro_batch);
  };
  for (const Work& w : list) {
    text += text.empty() ? "" : " ";
    text += w.kind == WorkKind::kFB ? one(w.Forward()) + "+" + one(w.Backward()) : one(w);
  }
  return text;
}

// Made from this text and initialised, as a scenario would.
OrderOfFile Read(const std::string& text, Diagnostics* diagnostics) {
  class Reader final : public ParameterVisitor {
   public:
    void Boolean(const Parameter&, bool*) override {}
    void Integer(const Parameter&, int*) override {}
    void Number(const Parameter&, double*) override {}
    void Text(const Parameter&, std::string* value) override { *value = "a.csv"; }
    void Amount(const Parameter&, Unit, double*) override {}
    void Integers(const Parameter&, std::vector<int>*) override {}
    void IntegerOr(const Parameter&, const std::string&, int*) override {}
    void Raw(const Parameter&, Value*) override {}
  } reader;
  OrderOfFile schedule;
  schedule.Visit(reader);
  InitContext context;
  context.diagnostics = diagnostics;
  context.place_of = [](const std::string&) { return Place(); };
  context.read_user_text = [&text](const std::string&) { return std::optional(text); };
  schedule.Init(context);
  return schedule;
}

TEST(OrderOfFile, RanksStagesAndMicroBatchesAreTheFiles) {
  Diagnostics diagnostics;
  const OrderOfFile schedule = Read("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", &diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  const ScheduleShape shape{2, 2, 1};
  EXPECT_EQ(schedule.Refusal(shape), "");
  EXPECT_EQ(schedule.DefaultChunks(), 2);
  EXPECT_EQ(schedule.Stages(shape), 4);
  EXPECT_EQ(schedule.StageOf(shape, 0, 1), 3);
  EXPECT_EQ(Text(schedule.Order(shape)[1]), "0F0 1F0 1B0 0B0");
  EXPECT_EQ(schedule.Refusal({2, 1, 4}),
            "a.csv has 2 ranks, 2 chunks and 1 micro-batch; the plan has 2 ranks, 1 chunk and 4 "
            "micro-batches: set chunks to its chunks, or read another order");
}

TEST(OrderOfFile, WhatIsNoOrderIsToldAtItsCell) {
  Diagnostics diagnostics;
  EXPECT_EQ(Read("0F0,0Q0\n", &diagnostics).Refusal({1, 1, 1}),
            "a.csv holds no order that can be played");
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].message, "\"0Q0\" is no op");
  EXPECT_EQ(diagnostics.all()[0].place, (Place{"a.csv", 1, 5, ""}));
}

TEST(OrderOfFile, WithoutAFileNothingIsLegal) {
  EXPECT_EQ(OrderOfFile().Refusal({2, 1, 4}),
            "pipeline-csv needs a file: write order = \"FILE.csv\"");
}

}  // namespace
}  // namespace shardlab::pipeline_csv
