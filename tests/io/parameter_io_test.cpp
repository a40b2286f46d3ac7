#include "io/parameter_io.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/plugin.h"
#include "io/toml_value.h"

namespace shardlab {
namespace {

// One parameter of each kind.
class Everything final : public Plugin {
 public:
  void Visit(ParameterVisitor& v) override {
    v.Boolean({"sequence_parallel", "cut the residual stream too"}, &sequence_parallel);
    v.Integer({"degree", "ranks that share each layer", 1, 65536}, &degree);
    v.Number({"efficiency", "of peak", 0, 1}, &efficiency);
    Parameter method{"method", "how keys travel"};
    method.choices = {"ring", "gather", "all-to-all"};
    v.Text(method, &method_);
    v.Text({"file", "any text"}, &file);
    v.Amount({"memory", "per device", 1e9}, Unit::kBytes, &memory);
    v.Amount({"latency", "of a hop"}, Unit::kSeconds, &latency);
    v.Integers({"layers", "a rank", 0, 1000}, &layers);
    v.IntegerOr({"shard", "ranks that hold one copy", 1}, "all", &shard);
    Parameter group{"group", "micro-batches a round", 1};
    group.automatic = "what divides";
    v.Integer(group, &group_);
    v.Raw({"tiers", "of the network"}, &tiers);
  }

  bool sequence_parallel = false;
  int degree = 1;
  double efficiency = 0.5;
  std::string method_ = "ring";
  std::string file;
  double memory = 80e9;
  double latency = 5e-6;
  std::vector<int> layers;
  int shard = 0;
  int group_ = 0;
  Value tiers;
};

struct Reading {
  Everything plugin;
  Diagnostics diagnostics;
  std::vector<Diagnostic> all() const { return diagnostics.all(); }
};

Value Table(const std::string& text) {
  Diagnostics diagnostics;
  Value value = ParseToml(text, "f.toml", diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << text;
  return value;
}

Reading Read(const std::string& text, const Value* defaults = nullptr) {
  const Value table = Table(text);
  Reading reading;
  ParameterReader reader(&table, {"f.toml", 1, 1, "strategy.x"}, {"plugin"}, &reading.diagnostics,
                         defaults);
  reading.plugin.Visit(reader);
  reader.Finish();
  return reading;
}

// The only diagnostic of a table with one mistake.
Diagnostic Refusal(const std::string& text) {
  const Reading reading = Read(text);
  EXPECT_EQ(reading.all().size(), 1u) << text;
  return reading.all().empty() ? Diagnostic() : reading.all()[0];
}

void ExpectRefusal(const std::string& text, const std::string& code, const std::string& message,
                   const std::string& hint = "") {
  const Diagnostic d = Refusal(text);
  EXPECT_EQ(d.code, code) << text;
  EXPECT_EQ(d.message, message) << text;
  EXPECT_EQ(d.hint, hint) << text;
  EXPECT_EQ(d.place.file, "f.toml");
  EXPECT_EQ(d.place.line, 1);
}

TEST(ParameterReader, ReadsEveryKind) {
  const Reading r = Read(
      "plugin = \"everything\"\nsequence_parallel = true\ndegree = 8\nefficiency = 1\nmethod = "
      "\"gather\"\n"
      "file = \"a.csv\"\nmemory = \"81559 MiB\"\nlatency = \"2 us\"\nlayers = [3, 0, 5]\nshard = "
      "16\ngroup = "
      "4\n"
      "tiers = [{name = \"node\"}]\n");
  EXPECT_TRUE(r.diagnostics.empty());
  EXPECT_TRUE(r.plugin.sequence_parallel);
  EXPECT_EQ(r.plugin.degree, 8);
  EXPECT_EQ(r.plugin.efficiency, 1.0);  // a whole number is a number
  EXPECT_EQ(r.plugin.method_, "gather");
  EXPECT_EQ(r.plugin.file, "a.csv");
  EXPECT_EQ(r.plugin.memory, 85520809984.0);
  EXPECT_EQ(r.plugin.latency, 2e-6);
  EXPECT_EQ(r.plugin.layers, (std::vector<int>{3, 0, 5}));
  EXPECT_EQ(r.plugin.shard, 16);
  EXPECT_EQ(r.plugin.group_, 4);
  EXPECT_EQ(r.plugin.tiers.array[0].Find("name")->text, "node");
}

TEST(ParameterReader, WithoutATableEverythingKeepsItsDefault) {
  Everything plugin;
  Diagnostics diagnostics;
  ParameterReader reader(nullptr, {"f.toml", 4, 2, "strategy.x"}, {}, &diagnostics);
  plugin.Visit(reader);
  reader.Finish();
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(plugin.degree, 1);
  EXPECT_FALSE(reader.IsGiven("degree"));
  EXPECT_EQ(reader.PlaceOf("degree"), (Place{"f.toml", 4, 2, "strategy.x"}));
}

TEST(ParameterReader, PlacesAndGiven) {
  const Value table = Table("degree = 8\nefficiency = \"wrong\"\n");
  const Value defaults = Table("shard = 4\n");
  Everything plugin;
  Diagnostics diagnostics;
  ParameterReader reader(&table, {"f.toml", 9, 9, "t"}, {}, &diagnostics, &defaults);
  plugin.Visit(reader);
  EXPECT_EQ(reader.PlaceOf("degree"), (Place{"f.toml", 1, 10, "degree"}));
  EXPECT_EQ(reader.PlaceOf("shard"), (Place{"f.toml", 9, 9, "t"}));
  EXPECT_TRUE(reader.IsGiven("degree"));
  EXPECT_TRUE(reader.IsGiven("efficiency"));  // wrongly, but the user wrote it
  EXPECT_FALSE(reader.IsGiven("shard"));      // a default is not given
  EXPECT_FALSE(reader.IsGiven("nothing"));
}

TEST(ParameterReader, DefaultsStandBehindTheUsersTable) {
  const Value defaults = Table("degree = 4\nmethod = \"gather\"\nunknown_to_this_plugin = 1\n");
  const Reading r = Read("degree = 8\n", &defaults);
  EXPECT_TRUE(r.diagnostics.empty());
  EXPECT_EQ(r.plugin.degree, 8);
  EXPECT_EQ(r.plugin.method_, "gather");

  Diagnostics diagnostics;
  Everything plugin;
  ParameterReader reader(nullptr, {}, {}, &diagnostics, &defaults);
  plugin.Visit(reader);
  reader.Finish();
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(plugin.degree, 4);
}

TEST(ParameterReader, AMistakeInTheDefaultsHasItsOwnPlace) {
  const Value defaults = Table("name = 1\ndegree = 0\n");
  const Reading r = Read("method = \"ring\"", &defaults);
  ASSERT_EQ(r.all().size(), 1u);
  EXPECT_EQ(r.all()[0].place, (Place{"f.toml", 2, 10, "degree"}));
}

TEST(ParameterReader, Booleans) {
  ExpectRefusal("sequence_parallel = 1", "value.kind",
                "sequence_parallel must be true or false, not 1", "write sequence_parallel = true");
  ExpectRefusal("sequence_parallel = \"false\"", "value.kind",
                "sequence_parallel must be true or false, not the string \"false\"",
                "write it without quotes: sequence_parallel = false");
  ExpectRefusal("sequence_parallel = []", "value.kind",
                "sequence_parallel must be true or false, not a list");
}

TEST(ParameterReader, Integers) {
  ExpectRefusal("degree = 0", "value.range", "degree must be from 1 to 65536, not 0");
  ExpectRefusal("degree = 65537", "value.range", "degree must be from 1 to 65536, not 65537");
  ExpectRefusal("degree = 4294967297", "value.range",
                "degree must be from 1 to 65536, not 4294967297");
  ExpectRefusal("degree = 8.0", "value.kind", "degree must be a whole number, not 8.0",
                "write degree = 8");
  ExpectRefusal("degree = 8.5", "value.kind", "degree must be a whole number, not 8.5");
  ExpectRefusal("degree = nan", "value.kind", "degree must be a whole number, not nan");
  ExpectRefusal("degree = \"8\"", "value.kind",
                "degree must be a whole number, not the string \"8\"", "write degree = 8");
  ExpectRefusal("degree = \"eight\"", "value.kind",
                "degree must be a whole number, not the string \"eight\"");
  ExpectRefusal("degree = true", "value.kind", "degree must be a whole number, not true");
  ExpectRefusal("degree = {}", "value.kind", "degree must be a whole number, not a table");
  EXPECT_EQ(Read("degree = 65536").plugin.degree, 65536);
  EXPECT_EQ(Read("degree = 0").plugin.degree, 1);  // a mistake leaves the default
}

TEST(ParameterReader, AnOpenRangeEndsWhereAnIntDoes) {
  ExpectRefusal("shard = 99999999999", "value.range",
                "shard must be from 1 to 2147483647, not 99999999999");
  ExpectRefusal("shard = -99999999999", "value.range",
                "shard must be from 1 to 2147483647, not -99999999999");
  EXPECT_EQ(Read("shard = 2147483647").plugin.shard, 2147483647);
}

TEST(ParameterReader, Numbers) {
  EXPECT_EQ(Read("efficiency = 0").plugin.efficiency, 0.0);
  ExpectRefusal("efficiency = 1.5", "value.range", "efficiency must be from 0 to 1, not 1.5");
  ExpectRefusal("efficiency = -1", "value.range", "efficiency must be from 0 to 1, not -1");
  ExpectRefusal("efficiency = inf", "value.finite", "efficiency must be a finite number, not inf");
  ExpectRefusal("efficiency = nan", "value.finite", "efficiency must be a finite number, not nan");
  ExpectRefusal("efficiency = \"0.5\"", "value.kind",
                "efficiency must be a number, not the string \"0.5\"",
                "write it without quotes: efficiency = 0.5");
  ExpectRefusal("efficiency = \"half\"", "value.kind",
                "efficiency must be a number, not the string \"half\"");
}

TEST(ParameterReader, Texts) {
  ExpectRefusal("method = \"gathr\"", "value.choice",
                "method must be \"ring\", \"gather\" or \"all-to-all\", not \"gathr\"",
                "did you mean \"gather\"?");
  ExpectRefusal("method = \"teleport\"", "value.choice",
                "method must be \"ring\", \"gather\" or \"all-to-all\", not \"teleport\"");
  ExpectRefusal("method = 1", "value.kind", "method must be a string, not 1",
                "legal values: \"ring\", \"gather\" or \"all-to-all\"");
  ExpectRefusal("file = 8", "value.kind", "file must be a string, not 8",
                "write it in quotes: file = \"8\"");
  ExpectRefusal("file = []", "value.kind", "file must be a string, not a list");
}

TEST(ParameterReader, Amounts) {
  ExpectRefusal("memory = 80", "value.unit",
                "memory must be a number of bytes with its unit, in quotes, not the bare number 80",
                "write memory = \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each)");
  ExpectRefusal("latency = 1.5", "value.unit",
                "latency must be a time with its unit, in quotes, not the bare number 1.5",
                "write latency = \"1.5 us\", \"1.5 ms\" or \"1.5 s\"");
  ExpectRefusal("memory = \"80\"", "value.unit", "memory has no unit (\"80\")",
                "write \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each)");
  ExpectRefusal("memory = \"80 gb\"", "value.unit", "memory has an unknown unit \"gb\"",
                "did you mean \"80 GB\"?");
  ExpectRefusal("memory = \"5 s\"", "value.unit",
                "memory must be a number of bytes, and \"5 s\" is a time",
                "write \"5 GB\" (10^9 bytes each) or \"5 GiB\" (2^30 bytes each)");
  ExpectRefusal("memory = \"1 MB\"", "value.range", "memory must be at least 1 GB, not 1 MB");
  ExpectRefusal("memory = true", "value.kind",
                "memory must be a number of bytes with its unit, in quotes, not true",
                "write memory = \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each)");
}

TEST(ParameterReader, Lists) {
  ExpectRefusal("layers = 3", "value.kind", "layers must be a list of whole numbers, not 3",
                "write layers = [3]");
  ExpectRefusal("layers = \"all\"", "value.kind",
                "layers must be a list of whole numbers, not the string \"all\"",
                "write layers = [1, 2, 3]");
  const Reading r = Read("layers = [1, \"2\", 3.5, 2000, 5]");
  ASSERT_EQ(r.all().size(), 3u);
  EXPECT_EQ(r.all()[0].message, "layers[1] must be a whole number, not the string \"2\"");
  EXPECT_EQ(r.all()[0].place, (Place{"f.toml", 1, 14, "layers[1]"}));
  EXPECT_EQ(r.all()[1].message, "layers[2] must be a whole number, not 3.5");
  EXPECT_EQ(r.all()[2].message, "layers[3] must be from 0 to 1000, not 2000");
  EXPECT_TRUE(r.plugin.layers.empty());
  EXPECT_TRUE(Read("layers = []").diagnostics.empty());
}

TEST(ParameterReader, WordOrNumber) {
  EXPECT_EQ(Read("shard = \"all\"").plugin.shard, 0);
  ExpectRefusal("shard = \"al\"", "value.kind",
                "shard must be a whole number or \"all\", not the string \"al\"",
                "did you mean \"all\"?");
  ExpectRefusal("shard = \"8\"", "value.kind",
                "shard must be a whole number or \"all\", not the string \"8\"", "write shard = 8");
  ExpectRefusal("shard = 0", "value.range", "shard must be at least 1, not 0");
  ExpectRefusal("shard = [1]", "value.kind", "shard must be a whole number or \"all\", not a list");
}

TEST(ParameterReader, UnknownKeys) {
  Diagnostic d = Refusal("degre = 8");
  EXPECT_EQ(d.code, "key.unknown");
  EXPECT_EQ(d.message, "unknown key \"degre\" in strategy.x");
  EXPECT_EQ(d.hint,
            "did you mean \"degree\"? legal here: sequence_parallel, degree, efficiency, method, "
            "file, memory, "
            "latency, layers, shard, group and tiers");
  EXPECT_EQ(d.place, (Place{"f.toml", 1, 1, "degre"}));
  EXPECT_EQ(Refusal("zzzzzzzz = 8").hint.substr(0, 10), "legal here");

  const Value table = Table("anything = 1\nplugin = \"x\"\n");
  Diagnostics diagnostics;
  ParameterReader reader(&table, {"f.toml", 1, 1, ""}, {"plugin"}, &diagnostics);
  reader.Finish();
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].message, "unknown key \"anything\"");
  EXPECT_EQ(diagnostics.all()[0].hint, "there are no parameters here");
}

TEST(ParameterReader, AWrongFileIsNotToldInFull) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "key_" + std::to_string(i) + " = 1\n";
  const Reading r = Read(text);
  ASSERT_EQ(r.all().size(), 101u);
  EXPECT_EQ(r.all().back().message, "and 400 more unknown keys");
  std::string list = "layers = [";
  for (int i = 0; i < 500; ++i) list += "-1, ";
  EXPECT_EQ(Read(list + "]").all().size(), 100u);
}

TEST(ParameterReader, EveryMistakeIsTold) {
  const Reading r = Read("degree = 0\nmethod = 3\nmemory = 80\nnonsense = 1\nefficiency = 7\n");
  EXPECT_EQ(r.all().size(), 5u);
}

TEST(ParameterReader, ATableThatIsNone) {
  const Value root = Table("x = 3");
  Diagnostics diagnostics;
  Everything plugin;
  ParameterReader reader(root.Find("x"), {"f.toml", 1, 1, "x"}, {}, &diagnostics);
  plugin.Visit(reader);
  reader.Finish();
  ASSERT_EQ(diagnostics.all().size(), 1u);
  EXPECT_EQ(diagnostics.all()[0].message, "x must be a table, not a whole number");
  EXPECT_EQ(diagnostics.all()[0].hint, "write [x] on a line of its own, its keys below");
}

TEST(ParameterReader, WhatWasRefusedOnceIsNotRefusedAgain) {
  Diagnostics diagnostics;
  const Value table =
      ParseToml("degree = 2020-01-01\nlayers = [1, 2020-01-01]\n", "f.toml", diagnostics);
  ASSERT_EQ(diagnostics.all().size(), 2u);
  Everything plugin;
  ParameterReader reader(&table, {}, {}, &diagnostics);
  plugin.Visit(reader);
  reader.Finish();
  EXPECT_EQ(diagnostics.all().size(), 2u);
  EXPECT_TRUE(plugin.layers.empty());
}

TEST(ParameterDocumenter, EveryKind) {
  Everything plugin;
  ParameterDocumenter documenter;
  plugin.Visit(documenter);
  const auto doc = [&](const std::string& name) -> ParameterDoc {
    for (const ParameterDoc& d : documenter.docs()) {
      if (d.name == name) return d;
    }
    ADD_FAILURE() << name;
    return {};
  };
  ASSERT_EQ(documenter.docs().size(), 11u);
  EXPECT_EQ(doc("sequence_parallel").type, "boolean");
  EXPECT_EQ(doc("sequence_parallel").DefaultText(), "false");
  EXPECT_EQ(doc("degree").type, "integer");
  EXPECT_EQ(doc("degree").DefaultText(), "1");
  EXPECT_EQ(doc("degree").RangeText(), "from 1 to 65536");
  EXPECT_EQ(doc("degree").description, "ranks that share each layer");
  EXPECT_EQ(doc("efficiency").type, "number");
  EXPECT_EQ(doc("efficiency").DefaultText(), "0.5");
  EXPECT_EQ(doc("method").type, "string");
  EXPECT_EQ(doc("method").DefaultText(), "\"ring\"");
  EXPECT_EQ(doc("method").choices.size(), 3u);
  EXPECT_EQ(doc("memory").type, "quantity");
  EXPECT_EQ(doc("memory").unit, "B");
  EXPECT_EQ(doc("memory").DefaultText(), "80 GB");
  EXPECT_EQ(doc("memory").RangeText(), "at least 1 GB");
  EXPECT_EQ(doc("latency").DefaultText(), "5 us");
  EXPECT_EQ(doc("layers").type, "list of integers");
  EXPECT_EQ(doc("layers").DefaultText(), "[]");
  EXPECT_EQ(doc("shard").type, "integer or \"all\"");
  EXPECT_EQ(doc("shard").DefaultText(), "\"all\"");
  EXPECT_EQ(doc("group").DefaultText(), "what divides");
  EXPECT_EQ(doc("tiers").type, "table");
  EXPECT_EQ(doc("tiers").DefaultText(), "none");
}

TEST(ParameterDocumenter, Json) {
  Everything plugin;
  ParameterDocumenter documenter;
  plugin.Visit(documenter);
  const auto json = [&](std::size_t i) { return ParameterDocToJson(documenter.docs()[i]).dump(); };
  EXPECT_EQ(json(1),
            "{\"name\":\"degree\",\"type\":\"integer\",\"unit\":\"\",\"default\":1,\"description\":"
            "\"ranks that share each layer\",\"minimum\":1,\"maximum\":65536}");
  EXPECT_EQ(json(5),
            "{\"name\":\"memory\",\"type\":\"quantity\",\"unit\":\"B\",\"default\":\"80 "
            "GB\",\"description\":"
            "\"per device\",\"minimum\":\"1 GB\"}");
  EXPECT_EQ(
      json(9),
      "{\"name\":\"group\",\"type\":\"integer\",\"unit\":\"\",\"default\":null,\"description\":"
      "\"micro-batches a round\",\"minimum\":1,\"automatic\":\"what divides\"}");
  EXPECT_NE(json(3).find("\"choices\":[\"ring\",\"gather\",\"all-to-all\"]"), std::string::npos);
}

TEST(ParameterResolver, WritesWhatHolds) {
  Everything plugin;
  plugin.layers = {1, 2};
  nlohmann::ordered_json object;
  ParameterResolver resolver(&object);
  plugin.Visit(resolver);
  EXPECT_EQ(
      object.dump(),
      "{\"sequence_parallel\":false,\"degree\":1,\"efficiency\":0.5,\"method\":\"ring\",\"file\":"
      "\"\","
      "\"memory\":\"80 GB\",\"latency\":\"5 us\",\"layers\":[1,2],\"shard\":\"all\",\"group\":null,"
      "\"tiers\":null}");
  plugin.group_ = 4;  // worked out since
  plugin.shard = 8;
  plugin.Visit(resolver);
  EXPECT_EQ(object["group"], 4);
  EXPECT_EQ(object["shard"], 8);
}

TEST(ParameterResolver, WhatItWritesReadsBackTheSame) {
  const Reading first = Read(
      "degree = 8\nmemory = \"81559 MiB\"\nlatency = \"1.7 ms\"\nefficiency = 0.37\nlayers = "
      "[4]\nshard = 2\n"
      "tiers = [{a = 1.0, b = \"x\"}]\ngroup = 2\n");
  Everything plugin = first.plugin;
  nlohmann::ordered_json object;
  ParameterResolver resolver(&object);
  plugin.Visit(resolver);
  // JSON scalars, lists of them and this object's keys are TOML as they stand, but for the nested
  // table.
  std::string toml;
  for (const auto& [key, value] : object.items()) {
    toml += key + " = " + (key == "tiers" ? std::string("[{a = 1.0, b = \"x\"}]") : value.dump()) +
            "\n";
  }
  Reading second = Read(toml);
  EXPECT_TRUE(second.diagnostics.empty());
  nlohmann::ordered_json again;
  ParameterResolver resolve_again(&again);
  second.plugin.Visit(resolve_again);
  EXPECT_EQ(object.dump(), again.dump());
  EXPECT_EQ(second.plugin.memory, first.plugin.memory);
  EXPECT_EQ(second.plugin.latency, first.plugin.latency);
}

TEST(ValueToJson, EveryKind) {
  const Value root = Table(
      "a = true\nb = 1\nc = 1.5\nd = \"x\"\ne = [1, [2]]\nf = {}\ng = nan\nh = {z = 1, y = 2}\n");
  EXPECT_EQ(ValueToJson(root).dump(),
            "{\"a\":true,\"b\":1,\"c\":1.5,\"d\":\"x\",\"e\":[1,[2]],\"f\":{},\"g\":null,\"h\":{"
            "\"z\":1,\"y\":2}}");
}

}  // namespace
}  // namespace shardlab
