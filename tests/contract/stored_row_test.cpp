// What interface.md says of a stored row, read with SQLite alone: the scenario's varied keys and
// all scalar paths of plan, memory, time and throughput; hash, version and provenance once; no run,
// time or host in any table. What a row must hold is taken from `shardlab plan` of the same values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/program.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr const char kScenario[] =
    "name = \"8B\"\n[model]\nplugin = \"llama\"\npreset = \"llama3.1-8b\"\n"
    "[hardware]\nplugin = \"h100-dgx\"\nnodes = 2\n"
    "[training]\nsequence_length = 4096\nglobal_batch_size = 64\n";

// A cell as SQLite has it: its type and its value.
struct Stored {
  int type = SQLITE_NULL;
  Json value;
};
using StoredRow = std::map<std::string, Stored>;

std::vector<StoredRow> Query(const std::string& file, const std::string& sql) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
  std::vector<StoredRow> rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      Stored& stored = rows.back()[sqlite3_column_name(statement, i)];
      stored.type = sqlite3_column_type(statement, i);
      if (stored.type == SQLITE_INTEGER) stored.value = sqlite3_column_int64(statement, i);
      if (stored.type == SQLITE_FLOAT) stored.value = sqlite3_column_double(statement, i);
      if (stored.type == SQLITE_TEXT)
        stored.value = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
    }
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return rows;
}

std::vector<std::string> Texts(const std::string& file, const std::string& sql) {
  std::vector<std::string> texts;
  for (const StoredRow& row : Query(file, sql)) texts.push_back(row.begin()->second.value);
  return texts;
}

void Scalars(const Json& json, const std::string& path, std::map<std::string, Json>* scalars) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) Scalars(value, path + "." + key, scalars);
  } else if (!json.is_array() && !json.is_null()) {
    (*scalars)[path] = json;
  }
}

int TypeOf(const Json& value) {
  if (value.is_string()) return SQLITE_TEXT;
  return value.is_number_float() ? SQLITE_FLOAT : SQLITE_INTEGER;
}

class StoredRows : public ::testing::Test {
 protected:
  StoredRows() : inside_(folder_.path()) {
    WriteFile("plain.toml", kScenario);
    WriteFile("s.toml",
              absl::StrCat(kScenario,
                           "[sweep]\n\"strategy.tensor.degree\" = [1, 8]\n"
                           "\"strategy.tensor.sequence_parallel\" = [false, true]\n"
                           "\"schedule.degree\" = [1, 2, 3]\n"
                           "\"precision.recipe\" = [\"megatron-bf16\", \"pure-bf16\"]\n"));
  }
  static void Sweep(const std::string& file, const std::string& store) {
    const ProgramRun run = RunProgram({"sweep", file, "--store", store});
    ASSERT_EQ(run.status, 0) << run.err;
  }

 private:
  ScratchFolder folder_;
  WorkingDirectory inside_;
};

TEST_F(StoredRows, HoldTheKeysAndEveryScalarOfThePlan) {
  Sweep("s.toml", "s.db");
  EXPECT_THAT(Texts("s.db", "SELECT name FROM sqlite_master WHERE type = 'table'"),
              UnorderedElementsAre("sweeps", "rows", "documents", "provenance"));
  const std::vector<std::string> keys = {"strategy.tensor.degree",
                                         "strategy.tensor.sequence_parallel", "schedule.degree",
                                         "precision.recipe"};
  const std::set<std::string> fixed = {"sweep", "combination", "legal", "reason"};
  std::set<std::string> boolean;
  for (const std::string& name :
       Texts("s.db", "SELECT name FROM pragma_table_info('rows') WHERE type = 'BOOLEAN'"))
    boolean.insert(name);
  int legal = 0, illegal = 0;
  std::int64_t combination = 0;
  std::set<std::string> constants;
  for (const StoredRow& row : Query("s.db", "SELECT * FROM rows ORDER BY combination")) {
    EXPECT_EQ(row.at("sweep").value, 1);
    EXPECT_EQ(row.at("combination").value, combination++);  // none is lost where there is no filter
    std::vector<std::string> args = {"plan", "plain.toml", "--format", "json"};
    for (const std::string& key : keys) {
      Json value = row.at(key).value;
      if (boolean.count(key) > 0) value = value != 0;
      args.insert(args.end(), {"--set", absl::StrCat(key, "=", value.dump())});
    }
    const ProgramRun plan = RunProgram(args);
    std::map<std::string, Json> expected;
    if (row.at("legal").value == 0) {
      ++illegal;
      EXPECT_EQ(plan.status, 2);
      EXPECT_EQ(row.at("reason").type, SQLITE_TEXT);
      // Every mistake at once, as `plan` tells them.
      const std::vector<std::string> reasons =
          absl::StrSplit(row.at("reason").value.get<std::string>(), "; ");
      for (const std::string& reason : reasons)
        EXPECT_NE(plan.err.find("error: " + reason), std::string::npos) << reason << plan.err;
    } else {
      ++legal;
      ASSERT_EQ(plan.status, 0) << plan.err;
      EXPECT_EQ(row.at("legal").value, 1);
      EXPECT_EQ(row.at("reason").type, SQLITE_NULL);
      const Json document = Json::parse(plan.out);
      for (const char* part : {"plan", "memory", "time", "throughput"})
        Scalars(document[part], part, &expected);
      for (const Json& constant : document["provenance"]) constants.insert(constant.dump());
    }
    for (const auto& [name, stored] : row) {
      if (fixed.count(name) > 0 || std::count(keys.begin(), keys.end(), name) > 0) continue;
      const auto at = expected.find(name);
      if (at == expected.end()) {
        EXPECT_EQ(stored.type, SQLITE_NULL) << name << " of an illegal row";
        continue;
      }
      EXPECT_EQ(stored.type, TypeOf(at->second)) << name;
      EXPECT_EQ(boolean.count(name) > 0, at->second.is_boolean()) << name;
      const Json value =
          at->second.is_boolean() ? Json(at->second.get<bool>() ? 1 : 0) : at->second;
      EXPECT_EQ(stored.value, value) << name;
      expected.erase(at);
    }
    EXPECT_TRUE(expected.empty()) << expected.begin()->first << " has no column";
  }
  EXPECT_EQ(combination, 24);
  EXPECT_EQ(illegal, 8);  // 3 pipeline ranks for 32 layers
  EXPECT_EQ(legal, 16);
  EXPECT_TRUE(Query("s.db", "SELECT * FROM documents").empty());

  // Each constant that any plan used, once.
  std::multiset<std::string> stored;
  for (const StoredRow& row : Query("s.db", "SELECT * FROM provenance")) {
    stored.insert(Json({{"name", row.at("name").value},
                        {"value", Json::parse(row.at("value").value.get<std::string>())},
                        {"source", row.at("source").value}})
                      .dump());
  }
  EXPECT_EQ(stored, std::multiset<std::string>(constants.begin(), constants.end()));
}

TEST_F(StoredRows, HashAndVersionAreThereOnceAndNothingOfTheRun) {
  Sweep("s.toml", "s.db");
  const std::vector<StoredRow> sweeps = Query("s.db", "SELECT * FROM sweeps");
  ASSERT_EQ(sweeps.size(), 1u);
  const StoredRow& sweep = sweeps[0];
  EXPECT_EQ(sweep.at("scenario_hash").value.get<std::string>().size(), 16u);
  EXPECT_EQ(sweep.at("program_version").value, SHARDLAB_VERSION);
  EXPECT_EQ(sweep.at("kind").value, "sweep");
  for (const char* count : {"combinations", "next", "considered"})
    EXPECT_EQ(sweep.at(count).value, 24) << count;
  EXPECT_EQ(sweep.at("considered").value.get<int>(), sweep.at("illegal").value.get<int>() +
                                                         sweep.at("pruned").value.get<int>() +
                                                         sweep.at("evaluated").value.get<int>());
  EXPECT_THAT(Json::parse(sweep.at("keys").value.get<std::string>()),
              ElementsAre("strategy.tensor.degree", "strategy.tensor.sequence_parallel",
                          "schedule.degree", "precision.recipe"));
  // Another time, another folder, another file name: the same bytes.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const std::string first = ReadFile("s.db");
  const ScratchFolder other;
  std::filesystem::copy_file("s.toml", other.path() / "s.toml");
  const WorkingDirectory there(other.path());
  Sweep("s.toml", "elsewhere.db");
  EXPECT_EQ(ReadFile("elsewhere.db"), first);
}

}  // namespace
}  // namespace shardlab
