#include "io/sweep_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

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

// The most columns that SQLite holds as Debian builds it, less a few.
constexpr std::size_t kMostColumns = 1990;

std::string Quoted(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

absl::Status ErrorOf(sqlite3* database) { return absl::InternalError(sqlite3_errmsg(database)); }

absl::Status Execute(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return ErrorOf(database);
  return absl::OkStatus();
}

// One statement with its values; what SQLite says is asked for at the end of each step.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) : database_(database) {
    status_ = sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(std::int64_t value) {
    if (status_ == SQLITE_OK) status_ = sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& Bind(const std::string& value) {
    if (status_ == SQLITE_OK)
      status_ = sqlite3_bind_text(statement_, ++bound_, value.data(),
                                  static_cast<int>(value.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Bind(const Json& value) {
    if (value.is_string()) return Bind(value.get<std::string>());
    if (value.is_boolean()) return Bind(std::int64_t{value.get<bool>() ? 1 : 0});
    if (value.is_number_float()) {
      if (status_ == SQLITE_OK)
        status_ = sqlite3_bind_double(statement_, ++bound_, value.get<double>());
      return *this;
    }
    if (value.is_number()) return Bind(value.get<std::int64_t>());
    ++bound_;  // NULL
    return *this;
  }
  // True while there is a row.
  bool Step() {
    if (status_ != SQLITE_OK && status_ != SQLITE_ROW) return false;
    status_ = sqlite3_step(statement_);
    return status_ == SQLITE_ROW;
  }
  absl::Status Done() {
    while (status_ != SQLITE_DONE && Step()) {
    }
    return status_ == SQLITE_DONE ? absl::OkStatus() : ErrorOf(database_);
  }
  void Reset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    bound_ = 0;
    status_ = SQLITE_OK;
  }

  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text != nullptr
               ? std::string(text,
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
               : "";
  }
  Json Value(int column) const {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER: {
        const char* type = sqlite3_column_decltype(statement_, column);
        if (type != nullptr && std::string(type) == "BOOLEAN") return Integer(column) != 0;
        return Integer(column);
      }
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement_, column);
      case SQLITE_TEXT:
        return Text(column);
      default:
        return nullptr;
    }
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int status_ = SQLITE_OK, bound_ = 0;
};

// Rolled back unless it was committed.
class Transaction {
 public:
  explicit Transaction(sqlite3* database)
      : database_(database), begun_(Execute(database, "BEGIN IMMEDIATE")) {}
  ~Transaction() {
    if (begun_.ok() && !committed_) Execute(database_, "ROLLBACK").IgnoreError();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  const absl::Status& begun() const { return begun_; }
  absl::Status Commit() {
    absl::Status done = Execute(database_, "COMMIT");
    committed_ = done.ok();
    return done;
  }

 private:
  sqlite3* database_;
  absl::Status begun_;
  bool committed_ = false;
};

std::string ListToJson(const std::vector<std::string>& names) { return Json(names).dump(); }

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

void Note(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
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

absl::StatusOr<SweepStore> SweepStore::Open(const std::string& path, bool write) {
  if (!write && !std::filesystem::exists(path))
    return absl::NotFoundError(absl::StrCat("there is no file ", path));
  sqlite3* raw = nullptr;
  const int flags = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
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
  if (tables.Integer(0) == 0 && write) {
    // Killed here, the file is empty and is begun again.
    Transaction transaction(raw);
    if (!transaction.begun().ok()) return told(transaction.begun());
    absl::Status made =
        Execute(raw, absl::StrCat("PRAGMA application_id = ", kApplication,
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
  insert.Bind(ListToJson(sweep.keys)).Bind(ListToJson(sweep.columns));
  absl::Status done = insert.Done();
  sweep.id = sqlite3_last_insert_rowid(db);
  if (done.ok()) done = transaction.Commit();
  if (!done.ok()) return done;
  return sweep;
}

absl::Status SweepStore::Columns(const std::vector<Cell>& cells) {
  for (const auto& [name, value] : cells) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    if (known_.size() >= kMostColumns)
      return absl::ResourceExhaustedError("the store has too many columns; begin a new one");
    absl::Status added =
        Execute(database_.get(), absl::StrCat("ALTER TABLE rows ADD COLUMN ", Quoted(name),
                                              value.is_boolean() ? " BOOLEAN" : ""));
    if (!added.ok()) return added;
    known_.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status SweepStore::Append(const SweepPiece& piece, bool documents, StoredSweep* sweep) {
  sqlite3* db = database_.get();
  Transaction transaction(db);
  if (!transaction.begun().ok()) return transaction.begun();
  StoredSweep next = *sweep;
  next.next = piece.past;
  Add(piece.counts, &next.counts);
  const std::vector<std::string> known = known_;
  const auto fail = [&](const absl::Status& status) {
    known_ = known;  // what is rolled back
    return status;
  };
  for (const SweepRow& row : piece.rows) {
    std::vector<Cell> cells = row.keys;
    cells.insert(cells.end(), row.cells.begin(), row.cells.end());
    if (const absl::Status made = Columns(cells); !made.ok()) return fail(made);
    std::vector<std::string> names = {"sweep", "combination", "legal", "reason"};
    for (const auto& [name, value] : cells) names.push_back(Quoted(name));
    for (const auto& [name, value] : row.cells) Note(name, &next.columns);
    Statement insert(
        db, absl::StrCat("INSERT INTO rows (", absl::StrJoin(names, ","), ") VALUES (?",
                         absl::StrJoin(std::vector<std::string>(names.size(), ""), ",?"), ")"));
    insert.Bind(sweep->id).Bind(row.combination).Bind(std::int64_t{row.legal ? 1 : 0});
    insert.Bind(row.legal ? Json(nullptr) : Json(row.reason));
    for (const auto& [name, value] : cells) insert.Bind(value);
    if (const absl::Status done = insert.Done(); !done.ok()) return fail(done);
    if (!documents) continue;
    Statement whole(db, "INSERT INTO documents (sweep, combination, document) VALUES (?, ?, ?)");
    whole.Bind(sweep->id).Bind(row.combination).Bind(row.document);
    if (const absl::Status done = whole.Done(); !done.ok()) return fail(done);
  }
  for (const Json& constant : piece.provenance) {
    if (std::find(next.provenance.begin(), next.provenance.end(), constant) !=
        next.provenance.end())
      continue;
    next.provenance.push_back(constant);
    Statement insert(db, "INSERT INTO provenance (sweep, name, value, source) VALUES (?, ?, ?, ?)");
    insert.Bind(sweep->id).Bind(constant["name"]).Bind(constant["value"].dump());
    insert.Bind(constant["source"]);
    if (const absl::Status done = insert.Done(); !done.ok()) return fail(done);
  }
  Statement update(
      db,
      "UPDATE sweeps SET next = ?, considered = ?, illegal = ?, not_fitting = ?,"
      " pruned = ?, evaluated = ?, filtered = ?, columns = ? WHERE id = ? AND next = ?");
  update.Bind(next.next).Bind(next.counts.considered).Bind(next.counts.illegal);
  update.Bind(next.counts.not_fitting).Bind(next.counts.pruned).Bind(next.counts.evaluated);
  update.Bind(next.counts.filtered).Bind(ListToJson(next.columns)).Bind(sweep->id);
  update.Bind(sweep->next);
  if (const absl::Status done = update.Done(); !done.ok()) return fail(done);
  if (sqlite3_changes(db) != 1)
    return fail(absl::AbortedError("another process goes on with the same sweep"));
  if (const absl::Status done = transaction.Commit(); !done.ok()) return fail(done);
  *sweep = std::move(next);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SweepRow>> SweepStore::Rows(const StoredSweep& sweep) {
  std::vector<std::string> names = {"combination", "legal", "reason"};
  const std::size_t first = names.size();
  // Keys that no row has yet, and columns of a sweep without rows, do not exist.
  const auto add = [&](const std::string& name) {
    if (std::find(known_.begin() + kFixedColumns, known_.end(), name) != known_.end())
      names.push_back(Quoted(name));
  };
  for (const std::string& key : sweep.keys) add(key);
  const std::size_t keys = names.size() - first;
  for (const std::string& column : sweep.columns) add(column);
  Statement all(
      database_.get(),
      absl::StrCat("SELECT ", absl::StrJoin(names, ","),
                   " FROM rows WHERE sweep = ? AND combination < ? ORDER BY combination"));
  all.Bind(sweep.id).Bind(sweep.next);
  std::vector<SweepRow> rows;
  while (all.Step()) {
    SweepRow row;
    row.combination = all.Integer(0);
    row.legal = all.Integer(1) != 0;
    row.reason = all.Text(2);
    for (std::size_t i = first; i < names.size(); ++i) {
      const bool key = i < first + keys;
      const std::string& name = key ? sweep.keys[i - first] : sweep.columns[i - first - keys];
      Json value = all.Value(static_cast<int>(i));
      if (!value.is_null()) (key ? row.keys : row.cells).emplace_back(name, std::move(value));
    }
    rows.push_back(std::move(row));
  }
  if (const absl::Status done = all.Done(); !done.ok()) return done;
  return rows;
}

}  // namespace shardlab
