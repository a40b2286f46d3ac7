#include "io/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace shardlab {
namespace {

constexpr const char* kText =
    "name = \"sample\"\n[strategy.tensor]\ndegree = 8\n[training]\nmicro_batch_size = 1\n[sweep]\n"
    "\"strategy.tensor.degree\" = [1, 2]\n[[hardware.tiers]]\nname = \"node\"\n";

Scenario Read(const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  Scenario scenario = ScenarioFromText(kText, "s.toml", sets, diagnostics);
  for (const Diagnostic& d : diagnostics.all()) ADD_FAILURE() << d.message;
  return scenario;
}

// The only diagnostic of one bad --set.
Diagnostic Refusal(const std::string& set) {
  Diagnostics diagnostics;
  const Scenario scenario = ScenarioFromText(kText, "s.toml", {set}, diagnostics);
  EXPECT_TRUE(scenario.overrides.empty()) << set;
  EXPECT_EQ(diagnostics.all().size(), 1u) << set;
  if (diagnostics.empty()) return {};
  EXPECT_EQ(diagnostics.all()[0].place.file, "--set");
  EXPECT_EQ(diagnostics.all()[0].place.line, 0);
  return diagnostics.all()[0];
}

TEST(Scenario, KeepsTextAndPlaces) {
  const Scenario scenario = Read({});
  EXPECT_EQ(scenario.file, "s.toml");
  EXPECT_EQ(scenario.text, kText);
  EXPECT_EQ(scenario.root.FindPath("strategy.tensor.degree")->place,
            (Place{"s.toml", 3, 10, "strategy.tensor.degree"}));
}

TEST(Scenario, SetReplacesWhereItStands) {
  const Scenario scenario = Read({"strategy.tensor.degree=4"});
  const Value* degree = scenario.root.FindPath("strategy.tensor.degree");
  EXPECT_EQ(degree->integer, 4);
  EXPECT_EQ(degree->place, (Place{"--set", 0, 0, "strategy.tensor.degree"}));
  EXPECT_EQ(degree->key_place, degree->place);
  EXPECT_EQ(scenario.root.table[1].first, "strategy");  // the order of the file stays
  ASSERT_EQ(scenario.overrides.size(), 1u);
  EXPECT_EQ(scenario.overrides[0].key, "strategy.tensor.degree");
  EXPECT_EQ(scenario.overrides[0].path.size(), 3u);
  EXPECT_EQ(scenario.overrides[0].value.integer, 4);
}

TEST(Scenario, SetMakesTables) {
  const Scenario scenario = Read({"strategy.zero.stage=1", "schedule.degree = 2"});
  EXPECT_EQ(scenario.root.FindPath("strategy.zero.stage")->integer, 1);
  EXPECT_EQ(scenario.root.FindPath("strategy.zero")->place,
            (Place{"--set", 0, 0, "strategy.zero"}));
  EXPECT_EQ(scenario.root.FindPath("strategy.tensor.degree")->integer, 8);
  EXPECT_EQ(scenario.root.FindPath("schedule.degree")->integer, 2);
  EXPECT_EQ(scenario.root.table.back().first, "schedule");
}

TEST(Scenario, SetValuesAreTomlElseStrings) {
  const auto value = [](const std::string& text) {
    return *Read({"training.x=" + text}).root.FindPath("training.x");
  };
  EXPECT_EQ(value("true").kind, Value::kBoolean);
  EXPECT_EQ(value("1.5").number, 1.5);
  EXPECT_EQ(value("[1, 2]").array.size(), 2u);
  EXPECT_EQ(value("{a = 1}").Find("a")->place.key, "training.x.a");
  EXPECT_EQ(value("\"8\"").text, "8");
  EXPECT_EQ(value("'8'").text, "8");
  EXPECT_EQ(value("80 GB").text, "80 GB");
  EXPECT_EQ(value("llama3.1-70b").text, "llama3.1-70b");
  EXPECT_EQ(value("").text, "");
  EXPECT_EQ(value("").kind, Value::kText);
  EXPECT_EQ(value("a=b").text, "a=b");
  EXPECT_EQ(value("1\nb = 2").text, "1\nb = 2");
  EXPECT_EQ(value("007").text, "007");
  EXPECT_EQ(value("1000000000000000000").integer, 1000000000000000000);
  EXPECT_EQ(value(std::string(500, '[')).kind, Value::kText);
}

TEST(Scenario, SetTakesQuotedKeys) {
  const Scenario scenario = Read({"sweep.\"strategy.tensor.degree\"=[4]", "expect.'a = b'=1"});
  const Value* sweep = scenario.root.Find("sweep");
  ASSERT_EQ(sweep->table.size(), 1u);
  EXPECT_EQ(sweep->table[0].second.array[0].integer, 4);
  EXPECT_EQ(scenario.overrides[0].key, "sweep.\"strategy.tensor.degree\"");
  EXPECT_EQ(scenario.root.Find("expect")->Find("a = b")->integer, 1);
}

TEST(Scenario, LaterSetsWin) {
  EXPECT_EQ(Read({"name=a", "name=b"}).root.Find("name")->text, "b");
  EXPECT_EQ(
      Read({"strategy={}", "strategy.zero.stage=3"}).root.FindPath("strategy.zero.stage")->integer,
      3);
  EXPECT_EQ(Read({"strategy={}", "strategy.zero.stage=3"}).root.FindPath("strategy.tensor"),
            nullptr);
}

TEST(Scenario, BadSets) {
  EXPECT_EQ(Refusal("training").message, "\"training\" has no '='");
  EXPECT_EQ(Refusal("").code, "set.syntax");
  EXPECT_EQ(Refusal("=1").message, "\"=1\" has no key before the '='");
  EXPECT_EQ(Refusal("  =1").code, "set.syntax");
  EXPECT_EQ(Refusal("a..b=1").message, "\"a..b\" is not a dotted key");
  EXPECT_EQ(Refusal("a b=1").code, "set.syntax");
  EXPECT_EQ(Refusal("[a]=1").code, "set.syntax");
  EXPECT_EQ(Refusal("\"a=1").message, "\"\"a=1\" has no '=' after its key (a quote is not closed)");
  EXPECT_EQ(Refusal("a=\xFF").code, "set.syntax");
  EXPECT_EQ(Refusal(std::string("a=\0", 3)).code, "set.syntax");
  EXPECT_EQ(Refusal(std::string(2000, 'k') + "=1").code, "set.syntax");
  std::string deep = "a";
  for (int i = 0; i < 5000; ++i) deep += ".a";
  EXPECT_EQ(Refusal(deep + "=1").code, "set.syntax");
  EXPECT_EQ(Refusal("training.x=99999999999999999999").code, "toml.integer");
}

TEST(Scenario, SetThroughWhatIsNoTable) {
  Diagnostic d = Refusal("training.micro_batch_size.x=1");
  EXPECT_EQ(d.code, "set.path");
  EXPECT_EQ(d.message,
            "cannot set training.micro_batch_size.x: training.micro_batch_size is a whole number, "
            "not a table");
  EXPECT_EQ(d.place.key, "training.micro_batch_size.x");
  ASSERT_EQ(d.other_places.size(), 1u);
  EXPECT_EQ(d.other_places[0], (Place{"s.toml", 5, 20, "training.micro_batch_size"}));
  EXPECT_EQ(Refusal("hardware.tiers.name=x").code, "set.path");
}

TEST(Scenario, ADateInASetIsNamed) {
  Diagnostics diagnostics;
  ScenarioFromText(kText, "s.toml", {"training.x=2020-01-01"}, diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].code, "toml.date");
  EXPECT_EQ(diagnostics.all()[0].place, (Place{"--set", 0, 0, "training.x"}));
}

TEST(Scenario, EveryBadSetIsTold) {
  Diagnostics diagnostics;
  ScenarioFromText("a = ", "s.toml", {"x", "=1", "b=1"}, diagnostics);
  EXPECT_EQ(diagnostics.all().size(), 3u);  // the file and two of the three
}

TEST(Scenario, ReadsFiles) {
  const auto path = std::filesystem::temp_directory_path() / "shardlab_scenario_test.toml";
  std::ofstream(path) << kText;
  Diagnostics diagnostics;
  const Scenario scenario = ReadScenario(path.string(), {"name=x"}, diagnostics);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(scenario.root.Find("name")->text, "x");
  std::filesystem::remove(path);
  const Scenario missing = ReadScenario(path.string(), {"oops"}, diagnostics);
  EXPECT_EQ(missing.root.kind, Value::kNone);
  EXPECT_EQ(missing.file, path.string());
  EXPECT_EQ(diagnostics.all().size(), 2u);
}

TEST(Scenario, SetAtPathForSweeps) {
  Scenario scenario = Read({});
  Diagnostics diagnostics;
  Value value = Value::Integer(2);
  value.place = {"s.toml", 7, 28, "sweep"};
  EXPECT_TRUE(SetAtPath(&scenario.root, {"strategy", "tensor", "degree"}, value, diagnostics));
  EXPECT_EQ(scenario.root.FindPath("strategy.tensor.degree")->integer, 2);
  EXPECT_FALSE(SetAtPath(&scenario.root, {"name", "x"}, value, diagnostics));
  EXPECT_EQ(diagnostics.all().size(), 1u);
  EXPECT_FALSE(SetAtPath(&scenario.root, {}, value, diagnostics));
}

}  // namespace
}  // namespace shardlab
