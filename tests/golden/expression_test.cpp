#include "golden/expression.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"

namespace shardlab::golden {
namespace {

using json = nlohmann::ordered_json;

const json& Document(const std::string& id) {
  static const json kPlan = json::parse(R"({
    "memory": {"fits": true, "peak_bytes": 70,
               "ranks": [{"total_bytes": 70, "gradients_bytes": 7}, {"total_bytes": 50, "gradients_bytes": 5}]},
    "hardware": {"memory_bytes": 80},
    "communication": [{"axis": "tensor", "phase": "forward", "bytes": 3, "count": 2},
                      {"axis": "tensor", "phase": "input-gradient", "bytes": 4, "count": 2},
                      {"axis": "data", "phase": "reduce", "bytes": 50, "count": 1}]})");
  static const json kFamily = json::parse(R"([
    {"label": 1, "legal": true, "time": {"step_seconds": 0.3}, "memory": {"fits": false}},
    {"label": 2, "legal": true, "time": {"step_seconds": 0.1}, "memory": {"fits": true}},
    {"label": [3, 4], "legal": false}])");
  if (id == "plan") return kPlan;
  if (id == "family") return kFamily;
  throw ExpressionError("no document " + id);
}

double Value(const std::string& expression) { return Evaluate(expression, Document).value; }

TEST(Expression, Arithmetic) {
  EXPECT_EQ(Value("1 + 2 * 3"), 7);
  EXPECT_EQ(Value("(1 + 2) * 3"), 9);
  EXPECT_EQ(Value("8 - 2 - 1"), 5);
  EXPECT_EQ(Value("8 / 2 / 2"), 2);
  EXPECT_EQ(Value("-2 * -(3)"), 6);
  EXPECT_EQ(Value("1.5e3"), 1500);
  EXPECT_EQ(Value("ceil(1.2) + floor(1.8) + round(1.6) + abs(-1)"), 6);
  EXPECT_EQ(Value("max(1, 4, 2) - min(3, 2)"), 2);
}

TEST(Expression, References) {
  EXPECT_EQ(Value("plan:memory.peak_bytes / plan:hardware.memory_bytes"), 70.0 / 80);
  EXPECT_EQ(Value("plan:memory.ranks[1].total_bytes"), 50);
  EXPECT_EQ(Value("sum(plan:memory.ranks.total_bytes) / count(plan:memory.ranks.total_bytes)"), 60);
  EXPECT_EQ(Value("plan:memory.fits"), 1);
}

TEST(Expression, Selection) {
  EXPECT_EQ(Value("sum(plan:communication[axis=tensor].bytes)"), 7);
  EXPECT_EQ(Value("sum(plan:communication[axis=tensor,phase~gradient].bytes)"), 4);
  EXPECT_EQ(Value("sum(plan:communication[axis!=tensor].bytes)"), 50);
  EXPECT_EQ(Value("sum(plan:communication[axis=pipeline].bytes)"), 0);
  EXPECT_EQ(Value("count(plan:communication[count>=2])"), 2);
  EXPECT_EQ(Value("count(plan:communication[count<2])"), 1);
  EXPECT_EQ(Value("count(plan:communication[count>1,bytes<=3])"), 1);
  EXPECT_EQ(Value("count(family:[legal=true].label)"), 2);
  EXPECT_EQ(Value("max(family:[memory.fits=true].label)"), 2);
  EXPECT_EQ(Value("count(family:[time.step_seconds<=0.3].label)"), 2);
  EXPECT_EQ(Value("count(family:[time.step_seconds<0.3].label)"), 1);
  EXPECT_EQ(Select("family:[legal=false].label", Document), json::parse("[[3, 4]]"));
  EXPECT_EQ(Select("family:[legal=true].label", Document), json::parse("[1, 2]"));
}

TEST(Expression, EqualInAllButTheLastDigits) {
  const json document =
      json::parse(R"({"list": [{"x": 0.1}, {"x": 0.10000000000000003}, {"x": 0.1001}]})");
  const Documents documents = [&](const std::string&) -> const json& { return document; };
  EXPECT_EQ(Evaluate("count(d:list[x<=0.1])", documents).value, 2);
  EXPECT_EQ(Evaluate("count(d:list[x>0.1])", documents).value, 1);
}

TEST(Expression, CarriesTheRoundingOfBytes) {
  EXPECT_EQ(Evaluate("plan:memory.ranks[0].gradients_bytes", Document).error, 0.5);
  EXPECT_EQ(
      Evaluate("plan:memory.peak_bytes - plan:memory.ranks[0].gradients_bytes", Document).error,
      2.5);
  EXPECT_EQ(Evaluate("4 * plan:memory.ranks[0].gradients_bytes", Document).error, 2);
  EXPECT_EQ(Evaluate("plan:memory.peak_bytes / plan:hardware.memory_bytes", Document).error,
            2.0 / 80);
  EXPECT_EQ(Evaluate("sum(plan:communication.bytes)", Document).error, 1.5);
  EXPECT_EQ(Evaluate("plan:communication[0].count", Document).error, 0);
  EXPECT_EQ(Evaluate("ceil(plan:memory.peak_bytes / 60)", Document).error, 0);
}

TEST(Expression, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"", "1 +", "(1", "1 2", "plan", "plan:memory.nothing", "plan:memory.ranks[2].total_bytes",
        "plan:communication[axis].bytes", "plan:communication.bytes", "other:memory", "root(4)",
        "max(plan:communication[axis=none].bytes)", "1 + plan:communication[axis=tensor].bytes"}) {
    EXPECT_THROW(Evaluate(text, Document), ExpressionError) << text;
  }
  EXPECT_TRUE(std::isnan(Value("plan:communication[0].axis")));
}

}  // namespace
}  // namespace shardlab::golden
