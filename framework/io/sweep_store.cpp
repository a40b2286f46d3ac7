#include "io/sweep_store.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "io/sqlite_statement.h"
#include "io/sweep_writer.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kApplication = 0x53484c42;  // "SHLB"
constexpr int kSchemaVersion = 1;
constexpr int kPatienceMilliseconds = 5000;  // with another process that writes

constexpr const char* kSchema =
    "CREATE TABLE sweeps (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, scenario_hash TEXT,"
    " scenario TEXT, program_version TEXT, combinations INTEGER, next INTEGER,"
    " considered INTEGER, illegal INTEGER, not_fitting INTEGER, pruned INTEGER,"
    " evaluated INTEGER, filtered INTEGER, keys TEXT, columns TEXT);"
    "CREATE TABLE rows (sweep INTEGER, combination INTEGER, legal INTEGER, reason TEXT,"
    " PRIMARY KEY (sweep, combination));"
    "CREATE TABLE documents (sweep INTEGER, combination INTEGER, document TEXT,"
    " PRIMARY KEY (sweep, combination));"
    "CREATE TABLE provenance (sweep INTEGER, name TEXT, value TEXT, source TEXT);";

constexpr std::size_t kFixedColumns = 4;  // of rows: sweep, combination, legal, reason

std::vector<std::string> ListFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  std::vector<std::string> names;
  if (json.is_array()) {
    for (const Json& name : json) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  return names;
}

StoredSweep ReadSweepRow(const Statement& s) {
  StoredSweep sweep;
  sweep.id = s.Integer(0);
  sweep.kind = s.Text(1);
  sweep.name = s.Text(2);
  sweep.scenario_hash = s.Text(3);
  sweep.scenario = s.Text(4);
  sweep.program_version = s.Text(5);
  sweep.combinations = s.Integer(6);
  sweep.next = s.Integer(7);
  sweep.counts = {s.Integer(8),  s.Integer(9),  s.Integer(11),
                  s.Integer(12), s.Integer(10), s.Integer(13)};
  sweep.keys = ListFromJson(s.Text(14));
  sweep.columns = ListFromJson(s.Text(15));
  return sweep;
}

}  // namespace

std::string ScenarioHash(const std::string& canonical) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : canonical) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return absl::StrFormat("%016x", hash);
}

void SweepStore::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

SweepStore::SweepStore(sqlite3* database) : database_(database) {}
SweepStore::SweepStore(SweepStore&& other) noexcept = default;
SweepStore& SweepStore::operator=(SweepStore&& other) noexcept = default;
SweepStore::~SweepStore() = default;

absl::StatusOr<SweepStore> SweepStore::Open(const std::string& path, bool write) {
  if (!write && !std::filesystem::exists(path))
    return absl::NotFoundError(absl::StrCat("there is no file ", path));
  sqlite3* raw = nullptr;
  // A store is used by one thread at a time: no lock for each of a million values.
  const int flags = SQLITE_OPEN_NOMUTEX |
                    (write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  SweepStore store(raw);
  const auto told = [&](const absl::Status& status) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " cannot be used as a store: ", status.message()));
  };
  if (opened != SQLITE_OK) return told(ErrorOf(raw));
  sqlite3_busy_timeout(raw, kPatienceMilliseconds);
  Statement tables(raw, "SELECT count(*) FROM sqlite_master");
  if (!tables.Step()) return told(ErrorOf(raw));
  const bool empty = tables.Integer(0) == 0;
  tables.Reset();  // a lock, while another process begins the file too
  if (empty && write) {
    // Killed here, the file is empty and is begun again.
    Transaction transaction(raw);
    if (!transaction.begun().ok()) return told(transaction.begun());
    // Another process may have been first.
    Statement again(raw, "SELECT count(*) FROM sqlite_master");
    const bool ours = again.Step() && again.Integer(0) == 0;
    again.Reset();
    absl::Status made =
        !ours
            ? absl::OkStatus()
            : Execute(raw, absl::StrCat("PRAGMA application_id = ", kApplication,
                                        "; PRAGMA user_version = ", kSchemaVersion, ";", kSchema));
    if (made.ok()) made = transaction.Commit();
    if (!made.ok()) return told(made);
  }
  Statement application(raw, "PRAGMA application_id"), version(raw, "PRAGMA user_version");
  if (!application.Step() || application.Integer(0) != kApplication)
    return told(absl::InvalidArgumentError("it is no store of sweeps"));
  if (!version.Step() || version.Integer(0) != kSchemaVersion)
    return told(absl::InvalidArgumentError("it was written by another version of shardlab"));
  Statement columns(raw, "SELECT name FROM pragma_table_info('rows')");
  while (columns.Step()) store.known_.push_back(columns.Text(0));
  return store;
}

absl::StatusOr<std::vector<StoredSweep>> SweepStore::List() {
  sqlite3* db = database_.get();
  std::vector<StoredSweep> sweeps;
  Statement all(db, "SELECT * FROM sweeps ORDER BY id");
  while (all.Step()) sweeps.push_back(ReadSweepRow(all));
  if (const absl::Status done = all.Done(); !done.ok()) return done;
  for (StoredSweep& sweep : sweeps) {
    Statement constants(db, "SELECT name, value, source FROM provenance WHERE sweep = ?");
    constants.Bind(sweep.id);
    while (constants.Step()) {
      sweep.provenance.push_back({{"name", constants.Text(0)},
                                  {"value", Json::parse(constants.Text(1), nullptr, false)},
                                  {"source", constants.Text(2)}});
    }
  }
  return sweeps;
}

absl::StatusOr<StoredSweep> SweepStore::Begin(const StoredSweep& wanted) {
  sqlite3* db = database_.get();
  Transaction transaction(db);
  if (!transaction.begun().ok()) return transaction.begun();
  absl::StatusOr<std::vector<StoredSweep>> sweeps = List();
  if (!sweeps.ok()) return sweeps.status();
  for (StoredSweep& sweep : *sweeps) {
    if (sweep.kind == wanted.kind && sweep.scenario == wanted.scenario &&
        sweep.program_version == wanted.program_version)
      return std::move(sweep);
  }
  StoredSweep sweep = wanted;
  Statement insert(
      db,
      "INSERT INTO sweeps (kind, name, scenario_hash, scenario, program_version,"
      " combinations, next, considered, illegal, not_fitting, pruned, evaluated,"
      " filtered, keys, columns) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, ?, ?)");
  insert.Bind(sweep.kind).Bind(sweep.name).Bind(sweep.scenario_hash).Bind(sweep.scenario);
  insert.Bind(sweep.program_version).Bind(sweep.combinations);
  const std::string keys = Json(sweep.keys).dump(), columns = Json(sweep.columns).dump();
  insert.Bind(keys).Bind(columns);
  absl::Status done = insert.Done();
  sweep.id = sqlite3_last_insert_rowid(db);
  if (done.ok()) done = transaction.Commit();
  if (!done.ok()) return done;
  return sweep;
}

absl::Status SweepStore::Append(SweepPiece piece, bool documents, StoredSweep* sweep) {
  if (writer_ == nullptr || writer_->taken().id != sweep->id ||
      writer_->taken().next != sweep->next)
    writer_ = std::make_unique<SweepWriter>(database_.get(), *sweep);
  writer_->Take(std::move(piece), documents);
  if (writer_->IsDue()) {
    std::vector<std::string> known = known_;
    if (absl::Status done = writer_->Store(&known); !done.ok()) {
      writer_ = nullptr;
      return done;
    }
    known_ = std::move(known);
  }
  sweep->next = writer_->taken().next;
  sweep->counts = writer_->taken().counts;
  if (sweep->columns.size() != writer_->taken().columns.size())
    sweep->columns = writer_->taken().columns;
  if (sweep->provenance.size() != writer_->taken().provenance.size())
    sweep->provenance = writer_->taken().provenance;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SweepRow>> SweepStore::Rows(const StoredSweep& sweep) {
  std::vector<SweepRow> rows;
  const absl::Status done = EachRow(sweep, [&](SweepRow row) {
    rows.push_back(std::move(row));
    return true;
  });
  if (!done.ok()) return done;
  return rows;
}

absl::Status SweepStore::EachRow(const StoredSweep& sweep,
                                 const std::function<bool(SweepRow)>& use) {
  std::vector<std::string> selected = {"combination", "legal", "reason"}, names;
  const std::size_t first = selected.size();
  // Keys that no row has yet, and columns of a sweep without rows, do not exist.
  const auto add = [&](const std::string& name) {
    if (std::find(known_.begin() + kFixedColumns, known_.end(), name) == known_.end()) return;
    selected.push_back(Quoted(name));
    names.push_back(name);
  };
  for (const std::string& key : sweep.keys) add(key);
  const std::size_t keys = names.size();
  for (const std::string& column : sweep.columns) add(column);
  Statement all(
      database_.get(),
      absl::StrCat("SELECT ", absl::StrJoin(selected, ","),
                   " FROM rows WHERE sweep = ? AND combination < ? ORDER BY combination"));
  all.Bind(sweep.id).Bind(sweep.next);
  SharedNames shared;
  while (all.Step()) {
    SweepRow row;
    row.combination = all.Integer(0);
    row.legal = all.Integer(1) != 0;
    row.reason = all.Text(2);
    Cells::NameList present;
    std::vector<Json> values;
    for (std::size_t i = 0; i <= names.size(); ++i) {
      if (i == keys) {
        row.keys = Cells(shared.Of(std::move(present)), std::move(values));
        present = {};
        values = {};
      }
      if (i == names.size()) break;
      Json value = all.Value(static_cast<int>(first + i));
      if (value.is_null()) continue;
      present.push_back(names[i]);
      values.push_back(std::move(value));
    }
    row.cells = Cells(shared.Of(std::move(present)), std::move(values));
    if (!use(std::move(row))) return absl::OkStatus();
  }
  return all.Done();
}

}  // namespace shardlab
