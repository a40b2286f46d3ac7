#include "io/sweep_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardlab {
namespace {

using Json = nlohmann::ordered_json;

// The most columns that SQLite holds as Debian builds it, less a few.
constexpr std::size_t kMostColumns = 1990;

// Of combinations that wait with their documents, tens of kilobytes each.
constexpr std::int64_t kMostDocuments = 512;

}  // namespace

SweepWriter::SweepWriter(sqlite3* database, const StoredSweep& stored)
    : database_(database), stored_(stored), taken_(stored) {
  for (const Json& constant : stored.provenance) IsNew(constant);
}

void SweepWriter::Take(SweepPiece piece, bool documents) {
  taken_.next = piece.past;
  Add(piece.counts, &taken_.counts);
  for (Json& constant : piece.provenance) {
    if (IsNew(constant)) taken_.provenance.push_back(std::move(constant));
  }
  for (SweepRow& row : piece.rows) {
    Note(row);
    if (!documents) row.document = std::string();  // rows wait long
  }
  documents_ = documents;
  pieces_.push_back(std::move(piece.rows));
}

bool SweepWriter::IsNew(const Json& constant) {
  std::vector<Json>& alike = constants_[constant["name"].get<std::string>()];
  if (std::find(alike.begin(), alike.end(), constant) != alike.end()) return false;
  alike.push_back(constant);
  return true;
}

bool SweepWriter::IsDue() const {
  const auto quarter = std::bit_floor(static_cast<std::uint64_t>(taken_.next) / 4);
  const std::int64_t most = documents_ ? kMostDocuments : SweepStore::kMostBuffered;
  const auto step = std::clamp(static_cast<std::int64_t>(quarter), kSweepPiece, most);
  return taken_.done() || taken_.next % step == 0;
}

absl::Status SweepWriter::Store(std::vector<std::string>* known) {
  Transaction transaction(database_);
  absl::Status done = transaction.begun();
  if (done.ok()) done = Columns(known);
  if (done.ok()) done = Rows();
  if (done.ok()) done = Constants();
  if (done.ok()) done = Update();
  if (done.ok()) done = transaction.Commit();
  if (!done.ok()) return done;
  pieces_.clear();
  stored_ = taken_;
  return done;
}

SweepWriter::Kind& SweepWriter::KindOf(const SweepRow& row) {
  for (Kind& kind : kinds_) {
    if (kind.keys == row.keys.shared_names() && kind.cells == row.cells.shared_names()) return kind;
  }
  for (Kind& kind : kinds_) {
    if (*kind.keys != row.keys.names() || *kind.cells != row.cells.names()) continue;
    // The list that is likely to come again.
    kind.keys = row.keys.shared_names();
    kind.cells = row.cells.shared_names();
    return kind;
  }
  Kind kind{row.keys.shared_names(), row.cells.shared_names(), nullptr, false, {}};
  for (const Cells* cells : {&row.keys, &row.cells}) {
    for (const Json& value : cells->values()) kind.boolean.push_back(value.is_boolean());
  }
  kinds_.push_back(std::move(kind));
  return kinds_.back();
}

void SweepWriter::Note(const SweepRow& row) {
  const std::size_t before = kinds_.size();
  const Kind& kind = KindOf(row);
  if (kinds_.size() == before) return;
  for (const std::string& name : *kind.cells) {
    if (std::find(taken_.columns.begin(), taken_.columns.end(), name) == taken_.columns.end())
      taken_.columns.push_back(name);
  }
}

absl::Status SweepWriter::Columns(std::vector<std::string>* known) {
  for (Kind& kind : kinds_) {
    if (kind.has_columns) continue;
    // Another process may have made some since the store was opened.
    known->clear();
    Statement columns(database_, "SELECT name FROM pragma_table_info('rows')");
    while (columns.Step()) known->push_back(columns.Text(0));
    if (absl::Status read = columns.Done(); !read.ok()) return read;
    std::size_t at = 0;
    for (const auto* names : {&*kind.keys, &*kind.cells}) {
      for (const std::string& name : *names) {
        const bool boolean = kind.boolean[at++];
        if (std::find(known->begin(), known->end(), name) != known->end()) continue;
        if (known->size() >= kMostColumns)
          return absl::ResourceExhaustedError("the store has too many columns; begin a new one");
        absl::Status added = Execute(
            database_,
            absl::StrCat("ALTER TABLE rows ADD COLUMN ", Quoted(name), boolean ? " BOOLEAN" : ""));
        if (!added.ok()) return added;
        known->push_back(name);
      }
    }
    kind.has_columns = true;
  }
  return absl::OkStatus();
}

absl::Status SweepWriter::Rows() {
  for (const std::vector<SweepRow>& rows : pieces_) {
    for (const SweepRow& row : rows) {
      absl::Status done = Insert(row);
      if (done.ok() && documents_) done = InsertDocument(row);
      if (!done.ok()) return done;
    }
  }
  return absl::OkStatus();
}

absl::Status SweepWriter::Insert(const SweepRow& row) {
  Kind& kind = KindOf(row);
  if (kind.insert == nullptr) {
    std::vector<std::string> names = {"sweep", "combination", "legal", "reason"};
    for (const auto* list : {&*kind.keys, &*kind.cells}) {
      for (const std::string& name : *list) names.push_back(Quoted(name));
    }
    kind.insert = std::make_unique<Statement>(
        database_,
        absl::StrCat("INSERT INTO rows (", absl::StrJoin(names, ","), ") VALUES (?",
                     absl::StrJoin(std::vector<std::string>(names.size(), ""), ",?"), ")"));
  }
  static const Json kNull;
  Statement& insert = *kind.insert;
  insert.Reset();
  insert.Bind(taken_.id).Bind(row.combination).Bind(std::int64_t{row.legal ? 1 : 0});
  if (row.legal) {
    insert.Bind(kNull);
  } else {
    insert.Bind(row.reason);
  }
  for (const Cells* cells : {&row.keys, &row.cells}) {
    for (const Json& value : cells->values()) insert.Bind(value);
  }
  absl::Status done = insert.Done();
  insert.Reset();
  return done;
}

absl::Status SweepWriter::InsertDocument(const SweepRow& row) {
  Statement whole(database_,
                  "INSERT INTO documents (sweep, combination, document) VALUES (?, ?, ?)");
  return whole.Bind(taken_.id).Bind(row.combination).Bind(row.document).Done();
}

absl::Status SweepWriter::Constants() {
  for (std::size_t i = stored_.provenance.size(); i < taken_.provenance.size(); ++i) {
    const Json& constant = taken_.provenance[i];
    const std::string value = constant["value"].dump();
    Statement insert(database_,
                     "INSERT INTO provenance (sweep, name, value, source) VALUES (?, ?, ?, ?)");
    insert.Bind(taken_.id).Bind(constant["name"]).Bind(value).Bind(constant["source"]);
    if (absl::Status done = insert.Done(); !done.ok()) return done;
  }
  return absl::OkStatus();
}

absl::Status SweepWriter::Update() {
  const SweepCounts& counts = taken_.counts;
  const std::string columns = Json(taken_.columns).dump();
  Statement update(
      database_,
      "UPDATE sweeps SET next = ?, considered = ?, illegal = ?, not_fitting = ?,"
      " pruned = ?, evaluated = ?, filtered = ?, columns = ? WHERE id = ? AND next = ?");
  update.Bind(taken_.next).Bind(counts.considered).Bind(counts.illegal);
  update.Bind(counts.not_fitting).Bind(counts.pruned).Bind(counts.evaluated);
  update.Bind(counts.filtered).Bind(columns).Bind(taken_.id).Bind(stored_.next);
  if (absl::Status done = update.Done(); !done.ok()) return done;
  if (sqlite3_changes(database_) != 1)
    return absl::AbortedError("another process goes on with the same sweep");
  return absl::OkStatus();
}

}  // namespace shardlab
