// Measurements as text: cells and their places, patterns of rules, values computed from columns.

#include "io/measurement.h"

#include <gtest/gtest.h>

#include "io/csv_table.h"
#include "io/measurement_rules.h"

namespace shardlab {
namespace {

CsvTable Parse(const std::string& text, Diagnostics* diagnostics) {
  return ParseCsv(text, "t.csv", *diagnostics);
}

TEST(CsvTable, CellsAreWhatRfc4180Says) {
  Diagnostics d;
  const CsvTable t = Parse(
      "\xef\xbb\xbf"
      "a,b,c\r\n1, \"x, \"\"y\"\"\" ,\r\n\r\n\"two\nlines\",,3\n",
      &d);
  EXPECT_TRUE(d.empty());
  ASSERT_EQ(t.header.size(), 3u);
  EXPECT_EQ(t.header[0].text, "a");
  ASSERT_EQ(t.rows.size(), 2u) << "a blank line is no row";
  EXPECT_EQ(t.rows[0].cells[1].text, "x, \"y\"");
  EXPECT_EQ(t.rows[0].cells[2].text, "");
  EXPECT_EQ(t.rows[1].line, 4);
  EXPECT_EQ(t.rows[1].cells[0].text, "two\nlines");
  EXPECT_EQ(t.rows[1].cells[2].text, "3");
  EXPECT_EQ(t.rows[1].cells[2].place.line, 5);
  EXPECT_EQ(t.rows[1].cells[2].place.column, 9);
  EXPECT_EQ(t.Column("c"), 2u);
  EXPECT_EQ(t.Column("d"), CsvTable::kNoColumn);
}

TEST(CsvTable, ColumnsCountCharacters) {
  Diagnostics d;
  const CsvTable t = Parse("a,b\n\xc3\xa4\xc3\xb6,1\n", &d);
  EXPECT_EQ(t.rows[0].cells[1].place.column, 4);
}

TEST(CsvTable, EveryMistakeIsTold) {
  Diagnostics d;
  const CsvTable t = Parse("a,,a\n1,2\n\"x\"y,2,3\n1,2,\"open", &d);
  EXPECT_EQ(d.all().size(), 5u);
  Diagnostics none;
  Parse("", &none);
  EXPECT_EQ(none.all().size(), 1u);
}

TEST(Measurement, NumbersAreOfTheirKind) {
  using Column = MeasurementColumn;
  EXPECT_EQ(ReadCell("8", Column::kCount), 8.0);
  EXPECT_EQ(ReadCell("0", Column::kWhole), 0.0);
  EXPECT_EQ(ReadCell("0.5", Column::kPositive), 0.5);
  for (const char* bad : {"", "x", "1x", "-1", "nan", "inf", "1e999", "0x8", "1,0", " 1"}) {
    for (const auto kind : {Column::kCount, Column::kWhole, Column::kPositive})
      EXPECT_FALSE(ReadCell(bad, kind)) << bad;
  }
  EXPECT_FALSE(ReadCell("0", Column::kCount));
  EXPECT_FALSE(ReadCell("1.5", Column::kWhole));
  EXPECT_FALSE(ReadCell("0", Column::kPositive));
}

Measurement Of(std::map<std::string, std::string> cells) {
  Measurement m;
  m.id = cells["id"];
  m.cells = std::move(cells);
  return m;
}

TEST(MeasurementRules, PatternsMatch) {
  const Measurement m = Of({{"id", "x-1"}, {"model", "GPT 175B"}, {"gpus", "64"}});
  const auto matches = [&](const char* column, const char* pattern) {
    return Matches({{column, {pattern}}}, m);
  };
  EXPECT_TRUE(matches("model", "GPT*"));
  EXPECT_TRUE(matches("model", "*175?"));
  EXPECT_TRUE(matches("model", "*"));
  EXPECT_FALSE(matches("model", "GPT"));
  EXPECT_FALSE(matches("model", "!GPT*"));
  EXPECT_TRUE(matches("tp", ""));
  EXPECT_FALSE(matches("tp", "?*"));
  EXPECT_TRUE(matches("gpus", ">8"));
  EXPECT_TRUE(matches("gpus", ">=64"));
  EXPECT_FALSE(matches("gpus", "<64"));
  EXPECT_FALSE(matches("tp", "<64")) << "a blank is no number";
  EXPECT_TRUE(Matches({{"model", {"Llama*", "GPT*"}}, {"gpus", {"64"}}}, m));
  EXPECT_FALSE(Matches({{"model", {"GPT*"}}, {"gpus", {"8"}}}, m));
}

TEST(MeasurementRules, ValuesAreComputedAndLaterRulesWin) {
  Diagnostics d;
  const MeasurementRules rules = MeasurementRulesFromText(
      "[[rule]]\ncolumns = { tp = 1, ffn = \"= 4 * hidden\" }\n[rule.scenario]\n"
      "\"model.ffn\" = \"= ffn\"\n\"model.vocabulary\" = \"= 128 * tp padding vocab\"\n"
      "\"model.name\" = \"= model\"\n\"strategy.data.degree\" = \"= gpus / tp\"\n"
      "\"model.experts\" = \"= experts\"\n\"model.tied\" = true\n"
      "[[source]]\nname = \"s\"\nwhen = { id = \"s-*\" }\nscenario = { \"model.tied\" = false }\n",
      "r.toml", d);
  ASSERT_TRUE(d.empty()) << d.all()[0].message;
  const RowScenario row = ScenarioOf(
      Of({{"id", "s-1"}, {"hidden", "64"}, {"vocab", "130"}, {"model", "M"}, {"gpus", "8"}}),
      rules);
  EXPECT_EQ(row.source, "s");
  EXPECT_EQ(row.filled.Text("ffn"), "256");
  EXPECT_EQ(row.toml,
            "name = \"s-1\"\n\n[model]\nffn = 256\nvocabulary = 256\nname = \"M\"\ntied = false\n\n"
            "[strategy.data]\ndegree = 8\n");
  EXPECT_EQ(ScenarioOf(Of({{"id", "other-7"}}), rules).source, "other");
}

}  // namespace
}  // namespace shardlab
